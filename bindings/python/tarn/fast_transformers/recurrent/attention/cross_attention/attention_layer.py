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
        q = self._heads(self.query_projection, query)
        k = v = None
        if state is None:
            k = self._heads(self.key_projection, keys)
            v = self._heads(self.value_projection, values)
        self.event_dispatcher.dispatch(QKVEvent(self, q, k, v))  # type: ignore[arg-type]
        y, state = self.inner_attention(q, k, v, key_lengths, state=state)
        return self.out_projection(y.flatten(-2)), state
