#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [OPTION...] - measures the images/s of Tables 1 and 4a and the memory of 10,000 images at once;
# writes throughput.jsonl, memory.jsonl, bf16.jsonl and the pages of this table and of Table 5. Options
# are passed to tarn bench image: --budget 2.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tarn=${TARN:-$page/../../build/release/tarn}
out=${OUT:-$page}

bench() {
    file=$1
    shift
    "$tarn" bench image --preset mnist-paper --threads 2 --json "$@" >"$out/$file.tmp"
    mv "$out/$file.tmp" "$out/$file"
}

bench throughput.jsonl --budget 20 --repeat 2 \
    --method linear:1,linear:16,linear:128,linear:256,stateful-softmax:1,stateful-softmax:16,stateful-softmax:64,softmax:1,lsh-1:1,lsh-4:1 \
    "$@"
bench bf16.jsonl --budget 20 --repeat 6 --precision bf16 --method linear:1 "$@"
bench memory.jsonl --budget 20 --method linear:10000 "$@"
[ "$out" != "$page" ] || "$page/../../tools/paper_pages.py" write "$page" "$page/../table5"
