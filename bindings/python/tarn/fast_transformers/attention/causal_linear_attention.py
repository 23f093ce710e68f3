# SPDX-License-Identifier: MIT
"""Causal linear attention, (8) to (12)."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..._errors import UnsupportedError
from .. import _attend
from ..attention_registry import AttentionRegistry
from ..causal_product import causal_dot_product
from ..masking import FullMask
from .linear_attention import LINEAR_PARAMETERS, LinearAttention


def causal_linear(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """The numerator alone, for tensors (N, L, H, E) to which a feature map has been applied."""
    return causal_dot_product(*(x.transpose(1, 2) for x in (Q, K, V))).transpose(1, 2).contiguous()


class CausalLinearAttention(LinearAttention):
    """With fewer keys than queries the missing ones are zero; with more, the last are not seen."""

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        if not bool(attn_mask.lower_triangular):
            raise UnsupportedError("CausalLinearAttention only supports full lower triangular masks")
        L, S = queries.shape[1], keys.shape[1]
        if L < S:
            keys, values = keys[:, :L], values[:, :L]
            key_lengths = FullMask(key_lengths.bool_matrix[:, :L])
        if L > S:
            keys, values = (torch.cat([x, x.new_zeros(x.shape[0], L - S, *x.shape[2:])], 1)
                            for x in (keys, values))
            seen = key_lengths.bool_matrix
            key_lengths = FullMask(torch.cat([seen, seen.new_zeros(seen.shape[0], L - S)], 1))
        return _attend.linear(queries, keys, values, self.feature_map, True, key_lengths, self.eps)


AttentionRegistry.register("causal-linear", CausalLinearAttention, LINEAR_PARAMETERS)
