# SPDX-License-Identifier: MIT
"""Softmax attention to the keys with the highest scores, in plain torch."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ...torch._exact import softmax_of
from .. import _attend
from ..attention_registry import AttentionRegistry, Int, Optional as OptionalSpec
from ..events import AttentionEvent
from .full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention


class ExactTopKAttention(SoftmaxAttention):
    """Each query attends to the topk keys with the highest scores."""

    def __init__(self, topk: int = 32, softmax_temp: Optional[float] = None,
                 attention_dropout: float = 0.1, event_dispatcher: Any = "") -> None:
        super().__init__(softmax_temp, attention_dropout, event_dispatcher)
        self.topk = topk

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        scores = torch.einsum("nlhe,nshe->nhls", queries, keys)
        hidden = _attend.additive(queries, keys, attn_mask, key_lengths)
        scores = scores if hidden is None else scores + hidden
        best, places = scores.topk(min(self.topk, keys.shape[1]), -1)
        top = torch.full_like(scores, float("-inf")).scatter(-1, places, best)
        blind = (top == float("-inf")).all(-1, keepdim=True)
        weights = self.dropout(softmax_of(self._scale(queries) * top, blind))
        self.event_dispatcher.dispatch(AttentionEvent(self, weights))
        return torch.einsum("nhls,nshd->nlhd", weights, values).contiguous()


AttentionRegistry.register("exact-topk", ExactTopKAttention,
                           [("topk", OptionalSpec(Int, 32))] + SOFTMAX_PARAMETERS)
