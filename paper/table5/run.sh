#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [OPTION...] - the seconds of Table 5 for a single image into mnist.jsonl, cifar.jsonl and the
# page. Options are of both commands, as in --budget 2.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tarn=${TARN:-$page/../../build/release/tarn}
out=${OUT:-$page}

for set in mnist cifar; do
    "$tarn" bench image --preset $set-paper --batch 1 --threads 2 --budget 240 --repeat 2 --json \
        "$@" >"$out/$set.jsonl.tmp"
    mv "$out/$set.jsonl.tmp" "$out/$set.jsonl"
done
[ "$out" != "$page" ] || "$page/../../tools/paper_pages.py" write "$page"
