#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/run_notebooks.sh [--write] - runs docs/notebooks/*.ipynb from the first cell to the last with
# the library of build/release-gcc, or of TARN_LIBRARY, and fails if a cell does. --write stores the
# outputs in the notebooks.
#
# TARN_NOTEBOOK_PYTHON is a Python with nbclient, ipykernel, numpy and matplotlib; otherwise these
# are installed from PyPI into build/notebooks. Exit status 77: PyPI cannot be reached.
set -eu
cd "$(dirname "$0")/.."
write=false
case "$*" in
'') ;;
--write) write=true ;;
*) echo "usage: tools/run_notebooks.sh [--write]" >&2 && exit 2 ;;
esac
python=${TARN_NOTEBOOK_PYTHON:-}
if [ -z "$python" ]; then
    python3 -m venv build/notebooks
    python=$PWD/build/notebooks/bin/python
    "$python" -m pip install -q nbclient ipykernel numpy matplotlib 2>build/notebooks/log || {
        cat build/notebooks/log >&2
        echo "PyPI cannot be reached to install nbclient"
        exit 77
    }
fi
export TARN_LIBRARY="${TARN_LIBRARY:-$PWD/build/release-gcc/libtarn.so}"
export PYTHONPATH="$PWD/bindings/python" PYTHONDONTWRITEBYTECODE=1 IPYTHONDIR="$PWD/build/ipython"
"$python" - $write docs/notebooks/*.ipynb <<'END'
import os
import sys

import nbformat
from nbclient import NotebookClient

write, paths = sys.argv[1] == "true", sys.argv[2:]
for path in paths:
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3", record_timing=False,
                   resources={"metadata": {"path": os.path.dirname(path)}}).execute()
    assert any(cell.get("outputs") for cell in book.cells), f"{path} has no outputs"
    book.metadata.language_info = {"name": "python"}  # not the version of this machine
    if write:
        nbformat.write(book, path)
    size = len(nbformat.writes(book))
    assert size < 200_000, f"{path} has {size} bytes with its outputs; it must have less than 200,000"
    print(f"{path}: {len(book.cells)} cells, {size} bytes")
END
