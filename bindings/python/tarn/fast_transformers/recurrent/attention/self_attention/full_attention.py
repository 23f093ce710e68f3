# SPDX-License-Identifier: MIT
"""Softmax attention with a growing cache."""
from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor

from ....attention.full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention
from ....attention_registry import RecurrentAttentionRegistry
from ..._utils import check_state


class RecurrentFullAttention(SoftmaxAttention):
    """The state is [keys, values], tensors (N, H, S, E) and (N, H, S, D)."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                state: Optional[List[Tensor]] = None,
                memory: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query and key (N, H, E), value (N, H, D): the output (N, H, D) and the next state."""
        state = check_state(state, memory)
        keys, values = key.unsqueeze(2), value.unsqueeze(2)
        if state is not None:
            if len(state[0]) != len(query):
                raise ValueError(f"state is of {len(state[0])} sequences; query has {len(query)}")
            keys, values = torch.cat([state[0], keys], 2), torch.cat([state[1], values], 2)
        weights = torch.softmax(self._scale(query) * torch.einsum("nhe,nhse->nhs", query, keys), -1)
        y = torch.einsum("nhs,nhsd->nhd", self.dropout(weights), values)
        return y.contiguous(), [keys, values]


RecurrentAttentionRegistry.register("full", RecurrentFullAttention, SOFTMAX_PARAMETERS)
