# SPDX-License-Identifier: MIT
"""The projections around an attention."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from torch import Tensor, nn

from ..events import EventDispatcher, QKVEvent


class AttentionLayer(nn.Module):
    """d_keys, d_values: widths per head, d_model / n_heads by default."""

    def __init__(self, attention: nn.Module, d_model: int, n_heads: int,
                 d_keys: Optional[int] = None, d_values: Optional[int] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        d_keys, d_values = d_keys or d_model // n_heads, d_values or d_model // n_heads
        self.inner_attention = attention
        self.query_projection = nn.Linear(d_model, d_keys * n_heads)
        self.key_projection = nn.Linear(d_model, d_keys * n_heads)
        self.value_projection = nn.Linear(d_model, d_values * n_heads)
        self.out_projection = nn.Linear(d_values * n_heads, d_model)
        self.n_heads = n_heads
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def _heads(self, projection: nn.Module, x: Tensor) -> Tensor:
        """(..., F) as (..., H, E)."""
        y: Tensor = projection(x)
        return y.view(*y.shape[:-1], self.n_heads, y.shape[-1] // self.n_heads)

    def _projected(self, queries: Tensor, keys: Tensor,
                   values: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        q = self._heads(self.query_projection, queries)
        k = self._heads(self.key_projection, keys)
        v = self._heads(self.value_projection, values)
        self.event_dispatcher.dispatch(QKVEvent(self, q, k, v))
        return q, k, v

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        """queries (N, L, F), keys and values (N, S, F) give (N, L, F)."""
        q, k, v = self._projected(queries, keys, values)
        y = self.inner_attention(q, k, v, attn_mask, query_lengths, key_lengths)
        found: Tensor = self.out_projection(y.flatten(-2))
        return found
