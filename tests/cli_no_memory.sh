#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_no_memory.sh TARN MAKE_MODELS FAIL_MALLOC - whichever allocation of a command fails, alone or
# with all after it, it prints what it should, or exits with code 1 and says that there is no memory.
set -u
tarn=$1
make_models=$2
library=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
mkdir "$folder/models"
"$make_models" "$folder/models" || exit 1
model=$folder/models/linear.safetensors
LD_PRELOAD=$library "$tarn" version >/dev/null 2>&1 || { echo "nothing can be preloaded" && exit 77; }

# try REST STEP COMMAND...: every STEP-th allocation, until nothing fails any more
try() {
    rest=$1
    step=$2
    shift 2
    "$tarn" "$@" >"$folder/expected" || { echo "tarn $* fails" && failed=1 && return; }
    n=0
    good=0
    while [ $n -lt 3000 ]; do
        env ${rest:+FAIL_REST=1} FAIL_AT=$n LD_PRELOAD="$library" "$tarn" "$@" >"$folder/out" 2>"$folder/err"
        code=$?
        if [ $code -eq 0 ]; then
            cmp -s "$folder/out" "$folder/expected" || { echo "tarn $*, allocation $n: code 0, other output" && failed=1; }
            good=$((good + 1))
        elif [ $code -ne 1 ] || ! grep -qi 'memory' "$folder/err"; then
            echo "tarn $*, allocation $n: code $code: $(head -c 200 "$folder/err")"
            failed=1
        else
            good=0
        fi
        [ $good -ge 12 ] && break
        n=$((n + step))
    done
    echo "tarn $*: up to allocation $n${rest:+, each with all after it}"
}

for rest in '' 1; do
    try "$rest" 3 inspect "$model"
    try "$rest" 11 inspect --json --tensors "$model"
done
exit $failed
