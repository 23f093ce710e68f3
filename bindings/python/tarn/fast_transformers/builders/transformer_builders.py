# SPDX-License-Identifier: MIT
"""Builders of transformers. Parameters that are not theirs are given to their attention builders:
builder.attention_dropout = 0, or builder.attention.feature_map = Favor.factory()."""
from __future__ import annotations

from typing import Any, Callable, Dict

from torch import nn

from .._layers import Activation, activation_of
from ..attention import AttentionLayer
from ..recurrent.attention import RecurrentAttentionLayer, RecurrentCrossAttentionLayer
from ..recurrent.transformers import (RecurrentTransformerDecoder,
                                      RecurrentTransformerDecoderLayer,
                                      RecurrentTransformerEncoder,
                                      RecurrentTransformerEncoderLayer)
from ..transformers import (TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
                            TransformerEncoderLayer)
from .attention_builders import (AttentionBuilder, BaseAttentionBuilder, RecurrentAttentionBuilder,
                                 RecurrentCrossAttentionBuilder)
from .base import BaseBuilder

# Parameters of all transformers, with the widths per head, and their defaults.
_COMMON: Dict[str, Any] = {
    "n_layers": 4, "n_heads": 4, "feed_forward_dimensions": 1024, "query_dimensions": 64,
    "value_dimensions": 64, "dropout": 0.1, "activation": "relu", "final_normalization": True,
    "event_dispatcher": ""}
_SHARED = ("query_dimensions", "event_dispatcher")  # with the attentions


class BaseTransformerBuilder(BaseBuilder):
    """_attentions: the attributes that are attention builders, with their classes. For each there is
    a parameter NAME_type, the name of an attention."""

    n_layers: int
    n_heads: int
    feed_forward_dimensions: int
    query_dimensions: int
    value_dimensions: int
    dropout: float
    activation: Activation
    final_normalization: bool
    event_dispatcher: Any
    _attentions: Dict[str, Callable[[], BaseAttentionBuilder]] = {}
    _layer_class: Any
    _transformer_class: Any

    def __init__(self) -> None:
        for name, builder_class in self._attentions.items():
            object.__setattr__(self, name, builder_class())
            object.__setattr__(self, name + "_type", "full")
        for name, value in _COMMON.items():
            setattr(self, name, value)

    def _builders(self) -> Dict[str, BaseAttentionBuilder]:
        return {name: getattr(self, name) for name in self._attentions}

    def __setattr__(self, key: str, value: Any) -> None:
        if key == "activation":
            activation_of(value)
        if key in _COMMON:
            object.__setattr__(self, key, value)
        elif key in {name + "_type" for name in self._attentions}:
            self._set_type(key, value)
        if key in _SHARED or not hasattr(type(self), key) and key not in self.__dict__:
            self._set_in_attentions(key, value)

    def _set_type(self, key: str, value: str) -> None:
        builder = self._builders()[key[:-len("_type")]]
        if not builder.validate_attention_type(value):
            raise ValueError(f"{value!r} is not an available attention type; available: "
                             f"{', '.join(builder.available_attentions)}")
        object.__setattr__(self, key, value)

    def _set_in_attentions(self, key: str, value: Any) -> None:
        known = [builder for builder in self._builders().values()
                 if builder._registry.contains_parameter(key)]
        if not known:
            raise AttributeError(f"{key!r} is not a valid attention parameter name")
        for builder in known:
            setattr(builder, key, value)

    def _attention_layer(self, name: str, layer_class: Any) -> nn.Module:
        inner = self._builders()[name].get(getattr(self, name + "_type"))
        made: nn.Module = layer_class(
            inner, self.value_dimensions * self.n_heads, self.n_heads,
            d_keys=self.query_dimensions, d_values=self.value_dimensions,
            event_dispatcher=self.event_dispatcher)
        return made

    def _layer_attentions(self) -> "list[nn.Module]":
        raise NotImplementedError

    def get(self) -> nn.Module:
        width = self.value_dimensions * self.n_heads
        layers = [self._layer_class(*self._layer_attentions(), width,
                                    self.feed_forward_dimensions, self.dropout, self.activation,
                                    event_dispatcher=self.event_dispatcher)
                  for _ in range(self.n_layers)]
        norm = nn.LayerNorm(width) if self.final_normalization else None
        made: nn.Module = self._transformer_class(layers, norm,
                                                  event_dispatcher=self.event_dispatcher)
        return made


class BaseTransformerEncoderBuilder(BaseTransformerBuilder):
    _attention_layer_class: Any

    def _layer_attentions(self) -> "list[nn.Module]":
        return [self._attention_layer("attention", self._attention_layer_class)]


class TransformerEncoderBuilder(BaseTransformerEncoderBuilder):
    """builder.attention is an AttentionBuilder, builder.attention_type the name of an attention."""

    _attentions = {"attention": AttentionBuilder}
    _attention_layer_class = AttentionLayer
    _layer_class, _transformer_class = TransformerEncoderLayer, TransformerEncoder


class RecurrentEncoderBuilder(BaseTransformerEncoderBuilder):
    _attentions = {"attention": RecurrentAttentionBuilder}
    _attention_layer_class = RecurrentAttentionLayer
    _layer_class, _transformer_class = (RecurrentTransformerEncoderLayer,
                                        RecurrentTransformerEncoder)


class BaseTransformerDecoderBuilder(BaseTransformerBuilder):
    _self_attention_layer_class: Any
    _cross_attention_layer_class: Any

    def _layer_attentions(self) -> "list[nn.Module]":
        return [self._attention_layer("self_attention", self._self_attention_layer_class),
                self._attention_layer("cross_attention", self._cross_attention_layer_class)]


class TransformerDecoderBuilder(BaseTransformerDecoderBuilder):
    """builder.self_attention and builder.cross_attention are attention builders; their types are
    builder.self_attention_type and builder.cross_attention_type."""

    _attentions = {"self_attention": AttentionBuilder, "cross_attention": AttentionBuilder}
    _self_attention_layer_class = _cross_attention_layer_class = AttentionLayer
    _layer_class, _transformer_class = TransformerDecoderLayer, TransformerDecoder


class RecurrentDecoderBuilder(BaseTransformerDecoderBuilder):
    _attentions = {"self_attention": RecurrentAttentionBuilder,
                   "cross_attention": RecurrentCrossAttentionBuilder}
    _self_attention_layer_class = RecurrentAttentionLayer
    _cross_attention_layer_class = RecurrentCrossAttentionLayer
    _layer_class, _transformer_class = (RecurrentTransformerDecoderLayer,
                                        RecurrentTransformerDecoder)
