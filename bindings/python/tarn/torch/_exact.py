# SPDX-License-Identifier: MIT
"""Attention by its definition in plain torch: float64, any mask, dropout of the weights. Quadratic in
the length, and differentiable as often as torch can."""
from __future__ import annotations

from typing import Callable, Optional, Tuple

import torch
from torch.nn import functional as F

Tensor = torch.Tensor


def _seen(queries: Tensor, keys: Tensor, causal: bool, lengths: Optional[Tensor]) -> Optional[Tensor]:
    """A bool tensor that broadcasts to (N, H, L, S), True where a key is visible; None: all are."""
    L, S = queries.shape[1], keys.shape[1]
    seen = torch.ones(L, S, dtype=torch.bool, device=keys.device).tril() if causal else None
    if lengths is None:
        return seen
    known = (torch.arange(S, device=keys.device) < lengths.view(-1, 1))[:, None, None]
    return known if seen is None else known & seen


def linear(queries: Tensor, keys: Tensor, values: Tensor, causal: bool,
           lengths: Optional[Tensor] = None, eps: float = 1e-6) -> Tensor:
    """(4) and (8) for queries and keys to which a feature map has been applied."""
    weights = torch.einsum("nlhe,nshe->nhls", queries, keys)
    seen = _seen(queries, keys, causal, lengths)
    if seen is not None:
        weights = weights.masked_fill(~seen, 0.0)
    found = torch.einsum("nhls,nshd->nlhd", weights, values)
    return found / (weights.sum(-1).transpose(1, 2).unsqueeze(-1) + eps)


def softmax_weights(queries: Tensor, keys: Tensor, scale: Optional[float],
                    additive: Optional[Tensor] = None) -> Tensor:
    """The matrix (N, H, L, S); 0 for queries without keys."""
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("nlhe,nshe->nhls", queries, keys)
    if additive is None:
        return torch.softmax(scale * scores, -1)
    weights = torch.softmax(scale * (scores + additive), -1)
    return weights.masked_fill((additive == float("-inf")).all(-1, keepdim=True), 0.0)


def softmax(queries: Tensor, keys: Tensor, values: Tensor, causal: bool,
            lengths: Optional[Tensor] = None, scale: Optional[float] = None) -> Tensor:
    """(2)."""
    seen = _seen(queries, keys, causal, lengths)
    additive = None if seen is None else torch.zeros(
        seen.shape, dtype=queries.dtype, device=keys.device).masked_fill(~seen, float("-inf"))
    return torch.einsum("nhls,nshd->nlhd", softmax_weights(queries, keys, scale, additive), values)


FEATURE_MAPS: "dict[str, Callable[[Tensor], Tensor]]" = {
    "elu": lambda x: F.elu(x) + 1, "relu": torch.relu, "identity": lambda x: x}


def options_of(kind: str) -> Tuple[str, "dict[str, float]"]:
    """The name of a kind and its options: "linear:eps=0.1"."""
    name, _, options = kind.partition(":")
    pairs = (option.partition("=") for option in options.split(",") if option)
    return name, {key.strip(): float(value) for key, _, value in pairs}
