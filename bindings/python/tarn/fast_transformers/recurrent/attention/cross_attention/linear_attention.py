# SPDX-License-Identifier: MIT
"""Linear attention to a whole memory, summed once: (4) to (6)."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

from ....attention.linear_attention import LINEAR_PARAMETERS, FeatureMapAttention
from ....attention_registry import RecurrentCrossAttentionRegistry


class RecurrentCrossLinearAttention(FeatureMapAttention):
    """The state is [S, Z], tensors (N, H, D, E) and (N, H, E)."""

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
