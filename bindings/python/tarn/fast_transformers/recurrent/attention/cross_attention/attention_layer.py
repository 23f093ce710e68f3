# SPDX-License-Identifier: MIT
"""The projections around a recurrent attention to a memory, which is projected once."""
from __future__ import annotations

from typing import Any, Tuple

from torch import Tensor

from ....attention.attention_layer import AttentionLayer
from ....events import QKVEvent


class RecurrentCrossAttentionLayer(AttentionLayer):
    def forward(self, query: Tensor, keys: Tensor, values: Tensor,  # type: ignore[override]
                key_lengths: Any, state: Any = None) -> Tuple[Tensor, Any]:
        """query (N, F), keys and values (N, S, F), which are read only if there is no state."""
        q = self.query_projection(query).unflatten(-1, (self.n_heads, -1))
        k = v = None
        if state is None:
            k, v = (projection(x).unflatten(-1, (self.n_heads, -1)) for projection, x in
                    ((self.key_projection, keys), (self.value_projection, values)))
        self.event_dispatcher.dispatch(QKVEvent(self, q, k, v))  # type: ignore[arg-type]
        y, state = self.inner_attention(q, k, v, key_lengths, state=state)
        return self.out_projection(y.flatten(-2)), state
