#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [OPTION...] - measures the images/s of Tables 2 and 4b; writes throughput.jsonl and the pages of
# this table and of Table 5. Options are passed to tarn bench image: --budget 2.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tarn=${TARN:-$page/../../build/release/tarn}
out=${OUT:-$page}

"$tarn" bench image --preset cifar-paper --threads 2 --budget 40 --json \
    --method linear:1,linear:16,linear:128,stateful-softmax:1,stateful-softmax:8,softmax:1,lsh-1:1,lsh-4:1 \
    "$@" >"$out/throughput.jsonl.tmp"
mv "$out/throughput.jsonl.tmp" "$out/throughput.jsonl"
[ "$out" != "$page" ] || "$page/../../tools/paper_pages.py" write "$page" "$page/../table5"
