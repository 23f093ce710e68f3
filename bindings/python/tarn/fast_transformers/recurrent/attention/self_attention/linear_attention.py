# SPDX-License-Identifier: MIT
"""Linear attention as a recurrent network, (16) to (20)."""
from __future__ import annotations

from typing import List, Optional, Tuple

from torch import Tensor

from .....torch._exact import linear_step
from ....attention.linear_attention import LINEAR_PARAMETERS, FeatureMapAttention
from ....attention_registry import RecurrentAttentionRegistry
from ..._utils import check_state


class RecurrentLinearAttention(FeatureMapAttention):
    """The state is [S, Z], tensors (N, H, E, D) and (N, H, E), which a step does not change: it
    returns new ones, and gradients flow through them. The feature map is drawn when a sequence
    begins."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                state: Optional[List[Tensor]] = None,
                memory: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query and key (N, H, E), value (N, H, D): the output (N, H, D) and the next state."""
        state = check_state(state, memory, query)
        if state is None:
            self.feature_map.new_feature_map(query.device)
        q, k = self.feature_map.forward_queries(query), self.feature_map.forward_keys(key)
        return linear_step(q, k, value, state, self.eps)


for _name in ("linear", "causal-linear"):
    RecurrentAttentionRegistry.register(_name, RecurrentLinearAttention, LINEAR_PARAMETERS)
