# SPDX-License-Identifier: MIT
"""The structs of _structs.py are those of the C compiler, byte for byte.

TARN_STRUCT_LAYOUTS names the program of tests/struct_layouts.c, which prints them."""
import ctypes
import os
import subprocess

import pytest

from tarn import _structs


@pytest.mark.skipif("TARN_STRUCT_LAYOUTS" not in os.environ, reason="no TARN_STRUCT_LAYOUTS")
def test_structs_are_laid_out_as_in_c():
    printed = subprocess.run([os.environ["TARN_STRUCT_LAYOUTS"]], text=True, check=True,
                             capture_output=True).stdout.split("\n")
    in_c = {name: tuple(map(int, numbers)) for name, *numbers in
            (line.split() for line in printed if line)}
    in_python = {}
    for name, struct in _structs.structs().items():
        in_python[name] = (ctypes.sizeof(struct),)
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            in_python[f"{name}.{field}"] = (place.offset, place.size)
    assert in_python == in_c
