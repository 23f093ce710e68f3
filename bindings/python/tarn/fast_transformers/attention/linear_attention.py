# SPDX-License-Identifier: MIT
"""Linear attention without a causal mask, (4) to (6)."""
from __future__ import annotations

from typing import Any, Callable, Optional

from torch import Tensor, nn

from ..._errors import UnsupportedError
from .. import _attend
from ..attention_registry import (AttentionRegistry, Callable as CallableSpec,
                                  EventDispatcherInstance, Int, Optional as OptionalSpec)
from ..events import EventDispatcher
from ..feature_maps import elu_feature_map


class FeatureMapAttention(nn.Module):
    """What attentions with a feature map share. feature_map: a factory, from query_dimensions to a
    map; None: elu_feature_map."""

    def __init__(self, query_dimensions: int, feature_map: Optional[Callable[[int], Any]] = None,
                 eps: float = 1e-6, event_dispatcher: Any = "") -> None:
        super().__init__()
        self.feature_map = (feature_map or elu_feature_map)(query_dimensions)
        self.eps = eps
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)


class LinearAttention(FeatureMapAttention):
    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        """queries (N, L, H, E), keys (N, S, H, E) and values (N, S, H, D) give (N, L, H, D)."""
        if not bool(attn_mask.all_ones):
            raise UnsupportedError("LinearAttention does not support arbitrary attention masks; use "
                                   "causal-linear for a causal one")
        return _attend.linear(queries, keys, values, self.feature_map, False, key_lengths, self.eps)


LINEAR_PARAMETERS = [("query_dimensions", Int), ("feature_map", OptionalSpec(CallableSpec)),
                     ("event_dispatcher", OptionalSpec(EventDispatcherInstance, ""))]
AttentionRegistry.register("linear", LinearAttention, LINEAR_PARAMETERS)
