# SPDX-License-Identifier: MIT
"""Softmax attention with a growing cache."""
from __future__ import annotations

from typing import List, Optional, Tuple

from torch import Tensor

from .....torch._exact import softmax_step
from ....attention.full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention
from ....attention_registry import RecurrentAttentionRegistry
from ..._utils import check_state


class RecurrentFullAttention(SoftmaxAttention):
    """The state is [keys, values], tensors (N, H, S, E) and (N, H, S, D)."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                state: Optional[List[Tensor]] = None,
                memory: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query and key (N, H, E), value (N, H, D): the output (N, H, D) and the next state."""
        state = check_state(state, memory, query)
        return softmax_step(query, key, value, state, self.softmax_temp, self.dropout)


RecurrentAttentionRegistry.register("full", RecurrentFullAttention, SOFTMAX_PARAMETERS)
