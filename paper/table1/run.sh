#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [OPTION...] - the images/s of Tables 1 and 4a, and the memory of 10,000 images at once, into
# throughput.jsonl, memory.jsonl and the page. Options are of both commands, as in --budget 2.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tarn=${TARN:-$page/../../build/release/tarn}
out=${OUT:-$page}

"$tarn" bench image --preset mnist-paper --threads 2 --budget 120 --repeat 2 --json \
    --method linear:1,linear:16,linear:256,stateful-softmax:1,stateful-softmax:16,stateful-softmax:64,softmax:1,lsh-1:1,lsh-4:1 \
    "$@" >"$out/throughput.jsonl.tmp"
"$tarn" bench image --preset mnist-paper --threads 2 --budget 30 --json --method linear:10000 \
    "$@" >"$out/memory.jsonl.tmp"
mv "$out/throughput.jsonl.tmp" "$out/throughput.jsonl"
mv "$out/memory.jsonl.tmp" "$out/memory.jsonl"
[ "$out" != "$page" ] || "$page/../../tools/paper_pages.py" write "$page"
