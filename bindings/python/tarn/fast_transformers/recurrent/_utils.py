# SPDX-License-Identifier: MIT
"""`memory`, the former name of `state`."""
from __future__ import annotations

import warnings
from typing import Any


def check_state(state: Any = None, memory: Any = None) -> Any:
    if memory is None:
        return state
    warnings.warn("'memory' is deprecated; use 'state'", DeprecationWarning, stacklevel=3)
    if state is not None:
        raise ValueError("state and memory are both given; give only one of them")
    return memory
