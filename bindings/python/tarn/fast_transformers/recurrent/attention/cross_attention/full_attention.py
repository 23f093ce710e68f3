# SPDX-License-Identifier: MIT
"""Softmax attention to a whole memory."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ....attention.full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention
from ....attention_registry import RecurrentCrossAttentionRegistry


class RecurrentCrossFullAttention(SoftmaxAttention):
    """The state is [keys, values]."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, key_lengths: Any,
                state: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query (N, H, E), keys (N, S, H, E), values (N, S, H, D)."""
        keys, values = (keys, values) if state is None else state
        scores = self._scale(query) * torch.einsum("nhe,nshe->nsh", query, keys)
        if not bool(key_lengths.all_ones):
            scores = scores + key_lengths.additive_matrix[:, :, None].to(scores.dtype)
        weights = self.dropout(torch.softmax(scores, 1))
        y = torch.einsum("nsh,nshd->nhd", weights, values)
        return y.contiguous(), [keys, values]


RecurrentCrossAttentionRegistry.register("full", RecurrentCrossFullAttention, SOFTMAX_PARAMETERS)
