# SPDX-License-Identifier: MIT
"""The projections around a recurrent attention."""
from __future__ import annotations

from typing import Any, Tuple

from torch import Tensor

from ....attention.attention_layer import AttentionLayer
from ..._utils import check_state


class RecurrentAttentionLayer(AttentionLayer):
    def forward(self, query: Tensor, key: Tensor, value: Tensor,  # type: ignore[override]
                state: Any = None, memory: Any = None) -> Tuple[Tensor, Any]:
        """query, key and value (N, F): the output (N, F) and the next state."""
        state = check_state(state, memory)
        y, state = self.inner_attention(*self._projected(query, key, value), state)
        return self.out_projection(y.flatten(-2)), state
