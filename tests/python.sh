#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/python.sh LIBRARY LAYOUTS KINDS PROGRAM - the Python package on a shared library, by the
# first Python that has NumPy and pytest; LAYOUTS is the program of struct_layouts.c, KINDS the
# library with the attention kinds of the tests, PROGRAM tarn. Tests with torch run where that
# Python has it.
# TARN_TEST_PYTHON=PATH chooses the Python.
set -u
cd "$(dirname "$0")/../bindings/python/tests" || exit 1
export TARN_LIBRARY="$1" TARN_STRUCT_LAYOUTS="$2" TARN_PROGRAM="$4"
export PYTHONPATH=.. PYTHONDONTWRITEBYTECODE=1

for python in ${TARN_TEST_PYTHON:-python3 /usr/bin/python3}; do
    if "$python" -c 'import sys, numpy, pytest; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        "$python" -m pytest -q -p no:cacheprovider . || exit 1
        TARN_LIBRARY="$3" exec "$python" -m pytest -q -p no:cacheprovider test_kinds.py
    fi
done
echo "no Python 3.9 with numpy and pytest"
exit 77
