# SPDX-License-Identifier: MIT
"""Linear attention to a whole memory, summed once: (4) to (6)."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ....attention.linear_attention import LINEAR_PARAMETERS
from ....attention_registry import RecurrentCrossAttentionRegistry
from ....events import EventDispatcher
from ....feature_maps import elu_feature_map


class RecurrentCrossLinearAttention(nn.Module):
    """The state is [S, Z], tensors (N, H, D, E) and (N, H, E)."""

    def __init__(self, query_dimensions: int, feature_map: Optional[Callable[[int], Any]] = None,
                 eps: float = 1e-6, event_dispatcher: Any = "") -> None:
        super().__init__()
        self.feature_map = (feature_map or elu_feature_map)(query_dimensions)
        self.eps = eps
        self.event_dispatcher = EventDispatcher.get(event_dispatcher)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, key_lengths: Any,
                state: Optional[List[Tensor]] = None) -> Tuple[Tensor, List[Tensor]]:
        """query (N, H, E), keys (N, S, H, E), values (N, S, H, D). Keys and values are read only if
        there is no state."""
        if state is None:
            self.feature_map.new_feature_map(query.device)
            k = self.feature_map.forward_keys(keys)
            k = k * key_lengths.float_matrix[:, :, None, None].to(k.dtype)
            state = [torch.einsum("nshe,nshd->nhde", k, values), k.sum(1)]
        S, Z = state
        q = self.feature_map.forward_queries(query)
        y = torch.einsum("nhe,nhde->nhd", q, S)
        return y / ((q * Z).sum(-1, keepdim=True) + self.eps), state


RecurrentCrossAttentionRegistry.register("linear", RecurrentCrossLinearAttention,
                                         LINEAR_PARAMETERS)
