# SPDX-License-Identifier: MIT
"""The projections around a recurrent attention."""
from __future__ import annotations

from typing import Any, Tuple

from torch import Tensor

from ....attention.attention_layer import AttentionLayer
from ....events import QKVEvent
from ..._utils import check_state


class RecurrentAttentionLayer(AttentionLayer):
    def forward(self, query: Tensor, key: Tensor, value: Tensor,  # type: ignore[override]
                state: Any = None, memory: Any = None) -> Tuple[Tensor, Any]:
        """query, key and value (N, F): the output (N, F) and the next state."""
        state = check_state(state, memory)
        q, k, v = (projection(x).unflatten(-1, (self.n_heads, -1)) for projection, x in
                   ((self.query_projection, query), (self.key_projection, key),
                    (self.value_projection, value)))
        self.event_dispatcher.dispatch(QKVEvent(self, q, k, v))
        y, state = self.inner_attention(q, k, v, state)
        return self.out_projection(y.flatten(-2)), state
