# SPDX-License-Identifier: MIT
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example):
    done = subprocess.run([sys.executable, str(example)], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
