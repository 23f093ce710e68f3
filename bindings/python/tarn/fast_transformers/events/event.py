# SPDX-License-Identifier: MIT
"""Events: what a module reports while it runs."""
from __future__ import annotations

from typing import Any

from torch import Tensor


class Event:
    """source: the module that dispatched it."""

    def __init__(self, source: Any) -> None:
        self.source = source


class AttentionEvent(Event):
    """An attention matrix (N, H, L, S) was computed."""

    def __init__(self, source: Any, attention_matrix: Tensor) -> None:
        super().__init__(source)
        self.attention_matrix = attention_matrix


class QKVEvent(Event):
    """Queries, keys and values were projected."""

    def __init__(self, source: Any, queries: Tensor, keys: Tensor, values: Tensor) -> None:
        super().__init__(source)
        self.queries, self.keys, self.values = queries, keys, values
