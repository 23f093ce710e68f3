#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [OPTION...] - measures the seconds per epoch of Table 3; writes epochs.jsonl and the page.
# Options are passed to tarn bench speech: --repeat 1. Takes minutes on an idle machine of two cores.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tarn=${TARN:-$page/../../build/release/tarn}
out=${OUT:-$page}

"$tarn" bench speech --preset speech-paper --threads 2 --lengths 800,2400 --frames 9600 --repeat 4 \
    --json "$@" >"$out/epochs.jsonl.tmp"
mv "$out/epochs.jsonl.tmp" "$out/epochs.jsonl"
[ "$out" != "$page" ] || "$page/../../tools/paper_speech.py" write "$page"
