# SPDX-License-Identifier: MIT
"""Transformers over whole sequences, post-norm, (1)."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from torch import Tensor, nn

from ._layers import Activation, FeedForward, lengths_for, mask_for
from .events import EventDispatcher


class TransformerEncoderLayer(FeedForward):
    """attention: an AttentionLayer. d_ff: width of the hidden units, 4 d_model by default."""

    def __init__(self, attention: nn.Module, d_model: int, d_ff: Optional[int] = None,
                 dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"attention": attention}, d_model, d_ff, dropout, activation,
                         event_dispatcher)

    def forward(self, x: Tensor, attn_mask: Any = None, length_mask: Any = None) -> Tensor:
        """x (N, L, F). The masks default to every key and whole sequences."""
        lengths = lengths_for(x, length_mask)
        y = self.attention(x, x, x, attn_mask=mask_for(x, x, attn_mask), query_lengths=lengths,
                           key_lengths=lengths)
        found: Tensor = self.norm2(self._feed(self.norm1(x + self.dropout(y))))
        return found


class TransformerEncoder(nn.Module):
    def __init__(self, layers: Sequence[nn.Module], norm_layer: Optional[nn.Module] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm_layer
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def forward(self, x: Tensor, attn_mask: Any = None, length_mask: Any = None) -> Tensor:
        attn_mask, length_mask = mask_for(x, x, attn_mask), lengths_for(x, length_mask)
        for layer in self.layers:
            x = layer(x, attn_mask=attn_mask, length_mask=length_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoderLayer(FeedForward):
    def __init__(self, self_attention: nn.Module, cross_attention: nn.Module, d_model: int,
                 d_ff: Optional[int] = None, dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"self_attention": self_attention, "cross_attention": cross_attention},
                         d_model, d_ff, dropout, activation, event_dispatcher)

    def forward(self, x: Tensor, memory: Tensor, x_mask: Any = None, x_length_mask: Any = None,
                memory_mask: Any = None, memory_length_mask: Any = None) -> Tensor:
        """x (N, L, F), memory (N, S, F)."""
        lengths = lengths_for(x, x_length_mask)
        y = self.self_attention(x, x, x, attn_mask=mask_for(x, x, x_mask), query_lengths=lengths,
                                key_lengths=lengths)
        x = self.norm1(x + self.dropout(y))
        y = self.cross_attention(x, memory, memory, attn_mask=mask_for(x, memory, memory_mask),
                                 query_lengths=lengths,
                                 key_lengths=lengths_for(memory, memory_length_mask))
        found: Tensor = self.norm3(self._feed(self.norm2(x + self.dropout(y))))
        return found


class TransformerDecoder(nn.Module):
    def __init__(self, layers: Sequence[nn.Module], norm_layer: Optional[nn.Module] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm_layer
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def forward(self, x: Tensor, memory: Tensor, x_mask: Any = None, x_length_mask: Any = None,
                memory_mask: Any = None, memory_length_mask: Any = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, x_mask=x_mask, x_length_mask=x_length_mask,
                      memory_mask=memory_mask, memory_length_mask=memory_length_mask)
        return x if self.norm is None else self.norm(x)
