# SPDX-License-Identifier: MIT
"""Softmax attention to the neighbours of a position, in plain torch."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ...torch._exact import softmax_of
from .. import _attend
from ..attention_registry import AttentionRegistry, Int
from ..events import AttentionEvent
from ..local_product.local_product_cpu import (diagonal, local_weighted_average, products,
                                               seen_keys)
from .full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention


class LocalAttention(SoftmaxAttention):
    """Position i attends to the local_context keys from i - local_context // 2 on. Time and memory
    are linear in the length with a full or causal mask; another mask is a matrix."""

    def __init__(self, local_context: int, softmax_temp: Optional[float] = None,
                 attention_dropout: float = 0.1, event_dispatcher: Any = "") -> None:
        super().__init__(softmax_temp, attention_dropout, event_dispatcher)
        self.local_context = local_context

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        q, k, v = (x.transpose(1, 2) for x in (queries, keys, values))
        seen = self._seen(queries, keys, attn_mask, key_lengths).unsqueeze(1)
        scores = self._scale(queries) * products(q, k, self.local_context)
        scores = scores.masked_fill(~seen, float("-inf"))
        weights = self.dropout(softmax_of(scores, ~seen.any(-1, keepdim=True)))
        self.event_dispatcher.dispatch(AttentionEvent(self, weights))
        return local_weighted_average(weights, v).transpose(1, 2).contiguous()

    def _seen(self, queries: Tensor, keys: Tensor, attn_mask: Any, key_lengths: Any) -> Tensor:
        """(N, L, W)"""
        W = self.local_context
        _attend.check_size("key_lengths", key_lengths, "(N, S)", *keys.shape[:2])
        seen = seen_keys(key_lengths.bool_matrix.to(queries.device), queries.shape[1], W)
        if bool(attn_mask.all_ones):
            return seen
        if bool(attn_mask.lower_triangular):
            return seen & (torch.arange(W, device=queries.device) <= W // 2)
        _attend.check_size("attn_mask", attn_mask, "(L, S)", queries.shape[1], keys.shape[1])
        return seen & diagonal(attn_mask.bool_matrix.to(queries.device), W)


AttentionRegistry.register("local", LocalAttention,
                           [("local_context", Int)] + SOFTMAX_PARAMETERS)
