# SPDX-License-Identifier: MIT
"""Transformers that process one position at a time, with the parameters of the parallel ones."""
from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from torch import Tensor, nn

from .._layers import Activation, FeedForward, lengths_for
from ..events import EventDispatcher
from ._utils import check_state


class RecurrentTransformerEncoderLayer(FeedForward):
    def __init__(self, attention: nn.Module, d_model: int, d_ff: Optional[int] = None,
                 dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"attention": attention}, d_model, d_ff, dropout, activation,
                         event_dispatcher)

    def forward(self, x: Tensor, state: Any = None, memory: Any = None) -> Tuple[Tensor, Any]:
        """x (N, F): the output (N, F) and the next state."""
        y, state = self.attention(x, x, x, check_state(state, memory))
        return self.norm2(self._feed(self.norm1(x + self.dropout(y)))), state


class RecurrentTransformerEncoder(nn.Module):
    """The state is a list with those of the layers."""

    def __init__(self, layers: Sequence[nn.Module], norm_layer: Optional[nn.Module] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm_layer
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def forward(self, x: Tensor, state: Optional[List[Any]] = None,
                memory: Any = None) -> Tuple[Tensor, List[Any]]:
        states = check_state(state, memory) or [None] * len(self.layers)
        after = []
        for layer, before in zip(self.layers, states):
            x, left = layer(x, before)
            after.append(left)
        return x if self.norm is None else self.norm(x), after


class RecurrentTransformerDecoderLayer(FeedForward):
    def __init__(self, self_attention: nn.Module, cross_attention: nn.Module, d_model: int,
                 d_ff: Optional[int] = None, dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"self_attention": self_attention, "cross_attention": cross_attention},
                         d_model, d_ff, dropout, activation, event_dispatcher)

    def forward(self, x: Tensor, memory: Tensor, memory_length_mask: Any = None,
                state: Any = None) -> Tuple[Tensor, List[Any]]:
        """x (N, F), memory (N, S, F)."""
        own, cross = state or (None, None)
        y, own = self.self_attention(x, x, x, state=own)
        x = self.norm1(x + self.dropout(y))
        y, cross = self.cross_attention(x, memory, memory, lengths_for(memory, memory_length_mask),
                                        state=cross)
        return self.norm3(self._feed(self.norm2(x + self.dropout(y)))), [own, cross]


class RecurrentTransformerDecoder(nn.Module):
    def __init__(self, layers: Sequence[nn.Module], norm_layer: Optional[nn.Module] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm_layer
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def forward(self, x: Tensor, memory: Tensor, memory_length_mask: Any = None,
                state: Optional[List[Any]] = None) -> Tuple[Tensor, List[Any]]:
        after = []
        for layer, before in zip(self.layers, state or [None] * len(self.layers)):
            x, left = layer(x, memory, memory_length_mask=memory_length_mask, state=before)
            after.append(left)
        return x if self.norm is None else self.norm(x), after
