# SPDX-License-Identifier: MIT
"""Softmax attention to a whole memory."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from .....torch._exact import softmax_of
from ....attention.full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention
from ....attention_registry import RecurrentCrossAttentionRegistry


class RecurrentCrossFullAttention(SoftmaxAttention):
    """The state is [keys, values]."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, key_lengths: Any,
                state: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query (N, H, E), keys (N, S, H, E), values (N, S, H, D)."""
        keys, values = (keys, values) if state is None else state
        scores = self._scale(query) * torch.einsum("nhe,nshe->nsh", query, keys)
        seen = key_lengths.bool_matrix.to(scores.device).unsqueeze(-1)
        weights = softmax_of(scores.masked_fill(~seen, float("-inf")), ~seen.any(1, keepdim=True), 1)
        y = torch.einsum("nsh,nshd->nhd", self.dropout(weights), values)
        return y.contiguous(), [keys, values]


RecurrentCrossAttentionRegistry.register("full", RecurrentCrossFullAttention, SOFTMAX_PARAMETERS)
