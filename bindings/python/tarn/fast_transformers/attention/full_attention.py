# SPDX-License-Identifier: MIT
"""Softmax attention (2)."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ...torch import _exact
from .. import _attend
from ..attention_registry import (AttentionRegistry, EventDispatcherInstance, Float,
                                  Optional as OptionalSpec, Spec)
from ..events import AttentionEvent, EventDispatcher

SOFTMAX_PARAMETERS: List[Tuple[str, Spec]] = [
    ("softmax_temp", OptionalSpec(Float)),
    ("attention_dropout", OptionalSpec(Float, 0.1)),
    ("event_dispatcher", OptionalSpec(EventDispatcherInstance, ""))]


class SoftmaxAttention(nn.Module):
    """What attentions with a softmax share. softmax_temp: factor of q.k; None: 1 / sqrt(E)."""

    def __init__(self, softmax_temp: Optional[float] = None, attention_dropout: float = 0.1,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.softmax_temp = softmax_temp
        self.dropout = nn.Dropout(attention_dropout)
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def _scale(self, queries: Tensor) -> float:
        width: int = queries.shape[-1]
        return width ** -0.5 if self.softmax_temp is None else self.softmax_temp

    def _drops(self) -> bool:
        return self.training and self.dropout.p > 0


class FullAttention(SoftmaxAttention):
    """By tarn, in tiles, where no weights are dropped, nobody listens to the matrix, and the mask is
    full or causal; by torch, with the matrix, elsewhere."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        """queries (N, L, H, E), keys (N, S, H, E) and values (N, S, H, D) give (N, L, H, D)."""
        if not self._drops() and not self.event_dispatcher.has_listeners:
            found = _attend.softmax_on_tarn(queries, keys, values, attn_mask, key_lengths,
                                            self.softmax_temp)
            if found is not None:
                return found
        hidden = _attend.additive(queries, keys, attn_mask, key_lengths)
        weights = self.dropout(_exact.softmax_weights(queries, keys, self.softmax_temp, hidden))
        self.event_dispatcher.dispatch(AttentionEvent(self, weights))
        return torch.einsum("nhls,nshd->nlhd", weights, values).contiguous()


AttentionRegistry.register("full", FullAttention, SOFTMAX_PARAMETERS)
