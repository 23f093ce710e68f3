# SPDX-License-Identifier: MIT
"""python -m tarn ..., and the command `tarn` of pip: the program itself."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Optional


def program() -> Optional[str]:
    """TARN_PROGRAM if it is set; otherwise the program of the wheel; otherwise the system's."""
    named = os.environ.get("TARN_PROGRAM")
    inside = Path(__file__).with_name("bin") / "tarn"
    if named or inside.exists():
        return named or str(inside)
    found = shutil.which("tarn")
    itself = found is not None and os.path.realpath(found) == os.path.realpath(sys.argv[0])
    return None if itself else found


def main() -> None:
    path = program()
    if path is None:
        sys.exit("tarn: cannot find the program tarn: install it, or set TARN_PROGRAM to its path")
    try:
        os.execv(path, ["tarn", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"tarn: {path}: {error.strerror}")


if __name__ == "__main__":
    main()
