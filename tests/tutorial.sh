#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/tutorial.sh CC FOLDER TRAIN_COPY - the programs of docs/tutorial.md: that in C compiles
# against the library in FOLDER and runs a model that the example TRAIN_COPY trained, that in
# Python compiles.
set -eu
cc=$1 lib=$2 train_copy=$3
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

block() { # FENCE FIRST: the block of code whose first line is FIRST
    awk -v fence="\`\`\`$1" -v first="$2" '
        inside && /^```/ { exit }
        inside { print }
        opened && $0 == first { inside = 1; print }
        { opened = $0 == fence }' "$root/docs/tutorial.md"
}

block c '#include <stdio.h>' >"$folder/repeat.c"
grep -q tarn_engine_prefill "$folder/repeat.c"
"$cc" -Wall -Wextra -Werror "$folder/repeat.c" -o "$folder/repeat" -I"$root/include" -L"$lib" \
    -ltarn -Wl,-rpath,"$lib"
"$train_copy" "$folder/model.safetensors" >"$folder/out"
"$folder/repeat" "$folder/model.safetensors" >"$folder/out"
cat "$folder/out"
grep -Eqx '([0-9]+ ){8}' "$folder/out"
grep -Eqx 'a stream has [0-9]+ bytes' "$folder/out"

command -v python3 >/dev/null || { echo "no python3" && exit 77; }
block python 'import torch' >"$folder/learn.py"
grep -q CausalLinearAttention "$folder/learn.py"
python3 -m py_compile "$folder/learn.py"
