# SPDX-License-Identifier: MIT
"""Softmax attention for short sequences, another one for long ones."""
from __future__ import annotations

from typing import Any, Optional

from torch import Tensor, nn

from ..attention_registry import AttentionRegistry, Int, Optional as OptionalSpec
from .full_attention import SOFTMAX_PARAMETERS, FullAttention


class ConditionalFullAttention(nn.Module):
    """other_attention is used if there are more than length_limit queries or keys."""

    def __init__(self, other_attention: nn.Module, length_limit: int = 512,
                 softmax_temp: Optional[float] = None, attention_dropout: float = 0.1,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.full_attention = FullAttention(softmax_temp, attention_dropout, event_dispatcher)
        self.other_attention = other_attention
        self.length_limit = length_limit

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        longest = max(queries.shape[1], keys.shape[1])
        chosen = self.other_attention if longest > self.length_limit else self.full_attention
        found: Tensor = chosen(queries, keys, values, attn_mask, query_lengths, key_lengths)
        return found


AttentionRegistry.register("conditional-full", ConditionalFullAttention,
                           [("length_limit", OptionalSpec(Int, 512))] + SOFTMAX_PARAMETERS)
