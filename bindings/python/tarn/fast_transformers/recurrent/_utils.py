# SPDX-License-Identifier: MIT
"""States: their number, their batch, and `memory`, their former name."""
from __future__ import annotations

import warnings
from typing import Any, List, Optional, Tuple

from torch import Tensor

from .._layers import Stack


def check_state(state: Any = None, memory: Any = None, query: Optional[Tensor] = None) -> Any:
    """The one that is given; with a query (N, ...), of as many sequences."""
    if memory is not None:
        warnings.warn("'memory' is deprecated; use 'state'", DeprecationWarning, stacklevel=3)
        if state is not None:
            raise ValueError("state and memory are both given; give only one of them")
        state = memory
    if state is not None and query is not None and len(state[0]) != len(query):
        raise ValueError(f"state is of {len(state[0])} sequences; query has {len(query)}")
    return state


class RecurrentStack(Stack):
    """Its state is a list with those of the layers."""

    def _advance(self, x: Tensor, states: Optional[List[Any]],
                 *others: Any) -> Tuple[Tensor, List[Any]]:
        """others: what all layers read besides x."""
        states = states or [None] * len(self.layers)
        if len(states) != len(self.layers):
            raise ValueError(f"state is of {len(states)} layers; there are {len(self.layers)}")
        after = []
        for layer, before in zip(self.layers, states):
            x, left = layer(x, *others, state=before)
            after.append(left)
        return self._normed(x), after
