#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/read_files.sh TARN - another program reads models, checkpoints and states by docs/formats.md
# alone, verifies their checksums, and finds damage where tarn does.
set -u
command -v python3 >/dev/null || { echo "no python3" && exit 77; }
tarn=$1
reader=$(dirname "$0")/read_files.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "read_files: $*"
    failed=1
}

# reads FILE PATTERN
reads() {
    python3 "$reader" "$1" >"$folder/out" 2>&1 || fail "$1: $(cat "$folder/out")"
    grep -Eq "$2" "$folder/out" || fail "$1: $(cat "$folder/out"); expected $2"
}

"$tarn" train copy --preset tiny --length 16 --steps 6 --save-every 3 --out "$folder/run" >/dev/null 2>&1 ||
    fail "no training"
model=$folder/run/model.safetensors
"$tarn" generate "$model" --prompt "1 2 3" -n 4 --streams 2 --save-state "$folder/state" >/dev/null 2>&1 ||
    fail "no state"
"$tarn" export "$model" --precision bf16 "$folder/exported.safetensors" >/dev/null 2>&1 || fail "no export"
reads "$model" ': model, verified, [0-9]+ tensors of [0-9]+ values, [0-9]+ layers$'
reads "$folder/exported.safetensors" ': model, verified'
reads "$folder/run/checkpoint-0000000006.safetensors" ': checkpoint, verified.* 6 updates by radam$'
reads "$folder/state" ': state of model [0-9a-f]{16}, verified, streams at \[6, 6\]$'

# Damage of a byte of data, of a checksum and of other metadata, and a byte too few.
size=$(wc -c <"$model")
for edit in data sum text; do
    cp "$model" "$folder/edited"
    case $edit in
    data) printf '\377' | dd of="$folder/edited" bs=1 seek=$((size - 3)) conv=notrunc status=none ;;
    sum) sed 's/\(__metadata__\\":\\"\)./\1x/' "$model" >"$folder/edited" ;;
    text) sed 's/\\"layers\\":/\\"leyers\\":/' "$model" >"$folder/edited" ;;
    esac
    cmp -s "$model" "$folder/edited" && fail "$edit: nothing was edited"
    python3 "$reader" "$folder/edited" >/dev/null 2>&1 && fail "$edit: the reader does not find it"
    "$tarn" inspect "$folder/edited" 2>&1 | grep -q 'is damaged' || fail "$edit: tarn does not find it"
done
head -c $((size - 1)) "$model" >"$folder/edited"
python3 "$reader" "$folder/edited" >/dev/null 2>&1 && fail "the reader does not find a missing byte"

# Files without checksums are read, by both.
sed 's/tarn_crc32/xarn_crc32/' "$model" >"$folder/edited"
reads "$folder/edited" ': model, no checksums'
"$tarn" inspect "$folder/edited" >/dev/null || fail "tarn does not read a file without checksums"
# A name with a character that reverses the direction of text is printed without it.
sed 's/tarn_crc32/xarn_crc32/;s/"tarn":/"torn":/;s/predictor.bias/pred\xe2\x80\xaeor.bias/g' "$model" >"$folder/edited"
"$tarn" inspect "$folder/edited" >"$folder/out" || fail "a name with U+202E is not read"
grep -q 'pred?or.bias' "$folder/out" || fail "U+202E is not replaced"
LC_ALL=C grep -q "$(printf '\342\200\256')" "$folder/out" && fail "U+202E is printed"
exit $failed
