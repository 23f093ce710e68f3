#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/peers.sh LIBRARY - bench/peers with tarn as the only subject, in small sizes, by the first
# Python that has NumPy; every other peer's file is at least Python.
set -eu
bench=$(cd "$(dirname "$0")/../bench/peers" && pwd)
export TARN_LIBRARY="$1" PYTHONPATH="$bench/../../bindings/python" PYTHONDONTWRITEBYTECODE=1

for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "no Python 3.9 with numpy"; exit 77; }

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
for file in "$bench"/*.py; do
    "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file"
done

"$python" "$bench/compare.py" --small --rounds 2 --seconds 0.01 --threads 1 --out "$made/results.jsonl" \
    --only train generate-1 linear --subjects tarn 'tarn, bf16 weights' 2>"$made/log" ||
    { cat "$made/log"; exit 1; }
[ "$(grep -c '"calls"' "$made/results.jsonl")" -eq 8 ]

# A result that is not tarn's is not measured.
PYTHONPATH="$PYTHONPATH:$bench" "$python" - "$made" <<'END'
import pathlib, sys, numpy as np
from compare import disagreement
from subjects import named
from workloads import WORKLOADS
folder, work, peer = pathlib.Path(sys.argv[1]), WORKLOADS[0], named("PyTorch")

def worst(loss):
    np.savez(folder / f"answer-{work.name}-tarn.npz", loss=5.0, bias=np.ones(3))
    np.savez(folder / f"answer-{work.name}-{peer.name}.npz", loss=loss, bias=np.ones(3))
    return disagreement(peer, work, folder)[0]

assert worst(5.001) <= 1.0
assert not worst(5.2) <= 1.0
assert not worst(float("nan")) <= 1.0
END

page=$made/page.md
for block in ratios spread machine absent; do
    printf '<!-- begin: peers %s -->\n<!-- end: peers %s -->\n' $block $block
done >"$page"
"$python" "$bench/pages.py" "$made/results.jsonl" "$page"
[ "$(grep -c 'generation, one stream' "$page")" -eq 2 ]
grep -q 'tokens/s' "$page"
