#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/peers.sh LIBRARY - bench/peers: packages installed by a Python that has none, without a
# network; then tarn as the only subject, in small sizes, by the first Python that has NumPy; every
# other peer's file is at least Python.
set -eu
bench=$(cd "$(dirname "$0")/../bench/peers" && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

# ---- On a fresh machine -------------------------------------------------------

# Without site-packages (-S) nothing is installed but this pip, which only leaves the metadata of an
# installed package, and refuses the packages in REFUSED.
mkdir -p "$made/fresh/pip"
: >"$made/fresh/pip/__init__.py"
cat >"$made/fresh/pip/__main__.py" <<'END'
import os, pathlib, sys
package = sys.argv[-1]
if package in os.environ.get("REFUSED", "").split():
    sys.exit(f"ERROR: No matching distribution found for {package}")
about = pathlib.Path(__file__).parents[1] / f"{package.replace('-', '_')}-1.0.dist-info"
about.mkdir()
(about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
END

install() { # FOLDER
    mkdir -p "$1"
    PYTHONPATH=$made/fresh PYTHONDONTWRITEBYTECODE=1 python3 -S "$bench/install.py" "$1" \
        >"$1/said" 2>&1
}

if python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    ! REFUSED=numpy install "$made/none" || { echo "goes on without NumPy"; exit 1; }
    grep -q 'cannot install numpy, which is required' "$made/none/said" ||
        { cat "$made/none/said"; exit 1; }
    [ ! -e "$made/none/installed.jsonl" ]
    REFUSED=optax install "$made/all" || { cat "$made/all/said"; exit 1; }
    for package in torch jax pytorch-fast-transformers; do
        grep -q "\"$package\", \"installed\": \"1.0\", \"failures\": \[\]" \
            "$made/all/installed.jsonl"
    done
    grep -q '"optax", "installed": null, .*No matching distribution' "$made/all/installed.jsonl"
    [ -d "$made/fresh/numpy-1.0.dist-info" ]
fi

# ---- tarn alone ---------------------------------------------------------------

export TARN_LIBRARY="$1" PYTHONPATH="$bench/../../bindings/python" PYTHONDONTWRITEBYTECODE=1

for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' 2>/dev/null && break
    python=
done
[ -n "$python" ] || { echo "no Python 3.9 with numpy"; exit 77; }

for file in "$bench"/*.py; do
    "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file"
done

"$python" "$bench/compare.py" --small --rounds 2 --seconds 0.01 --threads 1 --out "$made/results.jsonl" \
    --only train generate-1 generate-1-bf16 linear --subjects tarn 2>"$made/log" ||
    { cat "$made/log"; exit 1; }
[ "$(grep -c '"calls"' "$made/results.jsonl")" -eq 8 ]

# What beside_torch.py measures of tarn.
PYTHONPATH="$PYTHONPATH:$bench" "$python" -c '
import beside_torch
for make in beside_torch.WORKS.values():
    make(1)()'

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
for block in ratios spread limits machine absent; do
    printf '<!-- begin: peers %s -->\n<!-- end: peers %s -->\n' $block $block
done >"$page"
"$python" "$bench/pages.py" "$made/results.jsonl" "$page"
[ "$(grep -c 'generation, one stream |' "$page")" -eq 3 ]
grep -q 'tokens/s' "$page"
