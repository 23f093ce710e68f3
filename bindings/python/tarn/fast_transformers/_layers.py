# SPDX-License-Identifier: MIT
"""What parallel and recurrent transformers share: how layers are made, the feed-forward part,
activations, default masks."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Union

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .events import EventDispatcher
from .masking import FullMask, LengthMask

Function = Callable[[Tensor], Tensor]
Activation = Union[str, Function]
ACTIVATIONS: Dict[str, Function] = {"relu": F.relu, "gelu": F.gelu}


def activation_of(activation: Activation) -> Function:
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"{activation!r} is not one of the available activation types "
                         f"{list(ACTIVATIONS)}")
    return ACTIVATIONS[activation]


def mask_for(queries: Tensor, keys: Tensor, mask: Any) -> Any:
    """Every key for every query, unless there is a mask."""
    return mask or FullMask(queries.shape[1], keys.shape[1], device=queries.device)


def lengths_for(x: Tensor, mask: Any) -> Any:
    """Whole sequences, unless there is a mask."""
    return mask or LengthMask(torch.full((x.shape[0],), x.shape[1], dtype=torch.int64,
                                         device=x.device), max_len=x.shape[1])


class FeedForward(nn.Module):
    """The second half of a layer. Dropout is applied to its hidden units too, which tarn's own
    block does not do. The attentions come first, so that optimizers number the parameters as in a
    checkpoint; each has a norm, and so has this half."""

    norm1: nn.Module
    norm2: nn.Module
    norm3: nn.Module

    def __init__(self, attentions: Dict[str, nn.Module], d_model: int, d_ff: Optional[int],
                 dropout: float, activation: Activation, event_dispatcher: Any) -> None:
        super().__init__()
        for name, attention in attentions.items():
            setattr(self, name, attention)
        self.linear1 = nn.Linear(d_model, d_ff or 4 * d_model)
        self.linear2 = nn.Linear(d_ff or 4 * d_model, d_model)
        for i in range(len(attentions) + 1):
            setattr(self, f"norm{i + 1}", nn.LayerNorm(d_model))
        self.dropout = nn.Dropout(dropout)
        self.activation = activation_of(activation)
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def _feed(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.linear1(x)))
        found: Tensor = x + self.dropout(self.linear2(hidden))
        return found


class EncoderLayer(FeedForward):
    """attention: an AttentionLayer. d_ff: width of the hidden units, 4 d_model by default."""

    attention: nn.Module

    def __init__(self, attention: nn.Module, d_model: int, d_ff: Optional[int] = None,
                 dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"attention": attention}, d_model, d_ff, dropout, activation,
                         event_dispatcher)


class DecoderLayer(FeedForward):
    """As EncoderLayer, with a second attention, to a memory."""

    self_attention: nn.Module
    cross_attention: nn.Module

    def __init__(self, self_attention: nn.Module, cross_attention: nn.Module, d_model: int,
                 d_ff: Optional[int] = None, dropout: float = 0.1, activation: Activation = "relu",
                 event_dispatcher: Any = "") -> None:
        super().__init__({"self_attention": self_attention, "cross_attention": cross_attention},
                         d_model, d_ff, dropout, activation, event_dispatcher)


class Stack(nn.Module):
    """Layers, and a norm of their output if there is one."""

    def __init__(self, layers: Sequence[nn.Module], norm_layer: Optional[nn.Module] = None,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm_layer
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def _normed(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)
