#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/python_torch.sh BUILD - what the Python package promises with torch and fast_transformers, by
# the library of BUILD: types (mypy), all tests of the package, and the authors' own tests through
# tarn.fast_transformers.install().
#
# TARN_TORCH_PYTHON is a Python with torch, pytorch-fast-transformers, pytest and mypy; otherwise that
# of bench/peers/run.sh is used, which is installed from PyPI into build/peers. The authors' tests are
# those of their source package on PyPI, or of TARN_AUTHORS_TESTS, the folder tests/ of a checkout of
# theirs, which has more. Exit status 77: PyPI cannot be reached.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo "usage: tests/python_torch.sh BUILD" >&2 && exit 2; }
build=$(cd "$1" && pwd)
peers=$PWD/build/peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=${TARN_TORCH_PYTHON:-}
if [ -z "$python" ]; then
    python=$peers/venv/bin/python
    mkdir -p "$peers"
    "$python" -m pip --version >/dev/null 2>&1 || python3 -m venv --clear "$peers/venv"
    [ -s "$peers/installed.jsonl" ] || "$python" bench/peers/install.py "$peers"
    "$python" -m pip install -q pytest mypy
fi
"$python" -c 'import torch, fast_transformers, pytest, mypy' ||
    { echo "no Python with torch, fast_transformers, pytest and mypy" && exit 77; }

"$python" -m mypy --cache-dir "$work/mypy"
TARN_TEST_PYTHON=$python sh tests/python.sh "$build/libtarn.so" "$build/tests/struct_layouts" \
    "$build/tests/libtarn_kinds_shared.so" "$build/tarn"

theirs=${TARN_AUTHORS_TESTS:-}
if [ -z "$theirs" ]; then
    "$python" -m pip download -q --no-deps --no-binary :all: --no-build-isolation -d "$work" \
        pytorch-fast-transformers==0.4.0 || { echo "their source package cannot be fetched" && exit 77; }
    tar -xzf "$work"/pytorch*.tar.gz -C "$work"
    theirs=$(echo "$work"/pytorch*/tests)
fi
# Left out by name: clustered attentions with their modules, attention-free transformers, CUDA.
export TARN_LIBRARY="$build/libtarn.so" PYTHONPATH="$PWD/bindings/python" PYTHONDONTWRITEBYTECODE=1
cd "$theirs"
"$python" -c '
import sys, pytest, tarn.fast_transformers
tarn.fast_transformers.install()
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-rfs", *sys.argv[1:]]))' \
    --ignore aggregate --ignore clustering --ignore hashing --ignore sparse_product \
    --ignore-glob '*_gpu.py' --ignore-glob '*_cuda.py' --ignore-glob '*aft*' \
    --ignore attention/test_clustered_transformer.py --import-mode importlib \
    -k 'not test_clustered_attention_forward and not test_attention_composition' .
