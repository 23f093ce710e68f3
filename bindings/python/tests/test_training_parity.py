# SPDX-License-Identifier: MIT
"""Training curves lie on PyTorch's: a short version of paper/parity."""
import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
FOLDER = pathlib.Path(__file__).resolve().parents[3] / "paper" / "parity"
sys.path.insert(0, str(FOLDER))
import parity  # noqa: E402


@pytest.mark.parametrize("name", parity.CASES)
def test_losses_are_those_of_torch(name):
    assert parity.lies_on(parity.compare(name, 12))


def test_another_curve_is_noticed():
    double = np.linspace(3.0, 2.0, 50)
    single = double * (1 + 1e-7)
    assert parity.lies_on(np.array([double * (1 + 2e-7), single, double]))
    drifting = double * (1 + np.linspace(0.0, 1e-3, 50))
    assert not parity.lies_on(np.array([drifting, single, double]))
    assert not parity.lies_on(np.array([double + 1e-3, single, double]))
