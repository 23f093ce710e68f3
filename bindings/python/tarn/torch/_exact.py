# SPDX-License-Identifier: MIT
"""Attention by its definition in plain torch: float64, any mask, dropout of the weights, steps with
gradients. Quadratic in the length, and differentiable as often as torch can."""
from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

import torch
from torch.nn import functional as F

from .._arrays import chosen_rows
from .._errors import InvalidArgument
from ._tensors import doubles

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


def softmax_of(scores: Tensor, blind: Tensor, dim: int = -1) -> Tensor:
    """The softmax of scores; 0 for blind queries, all of whose scores are -inf. Their scores are
    replaced first: the gradient of a row of NaN would be NaN, although none of it is used."""
    return torch.softmax(scores.masked_fill(blind, 0.0), dim).masked_fill(blind, 0.0)


def softmax_weights(queries: Tensor, keys: Tensor, scale: Optional[float],
                    additive: Optional[Tensor] = None) -> Tensor:
    """The matrix (N, H, L, S); 0 for queries without keys."""
    scale = queries.shape[-1] ** -0.5 if scale is None else scale
    scores = torch.einsum("nlhe,nshe->nhls", queries, keys)
    if additive is None:
        return torch.softmax(scale * scores, -1)
    blind = (additive == float("-inf")).all(-1, keepdim=True)
    return softmax_of(scale * (scores + additive), blind)


def softmax(queries: Tensor, keys: Tensor, values: Tensor, causal: bool,
            lengths: Optional[Tensor] = None, scale: Optional[float] = None) -> Tensor:
    """(2)."""
    seen = _seen(queries, keys, causal, lengths)
    additive = None if seen is None else torch.zeros(
        seen.shape, dtype=queries.dtype, device=keys.device).masked_fill(~seen, float("-inf"))
    return torch.einsum("nhls,nshd->nlhd", softmax_weights(queries, keys, scale, additive), values)


# ---- Step by step ---------------------------------------------------------------


def linear_step(query: Tensor, key: Tensor, value: Tensor, state: Optional[List[Tensor]],
                eps: float = 1e-6) -> Tuple[Tensor, List[Tensor]]:
    """(18) to (20) for a query and a key to which a feature map has been applied; the state is
    [S, Z], tensors (N, H, E, D) and (N, H, E), and is not changed."""
    product = key.unsqueeze(-1) * value.unsqueeze(-2)
    S, Z = (product, key) if state is None else (state[0] + product, state[1] + key)
    y = torch.einsum("nhe,nhed->nhd", query, S)
    return y / ((query * Z).sum(-1, keepdim=True) + eps), [S, Z]


def softmax_step(query: Tensor, key: Tensor, value: Tensor, state: Optional[List[Tensor]],
                 scale: Optional[float] = None, dropout: Callable[[Tensor], Tensor] = lambda w: w
                 ) -> Tuple[Tensor, List[Tensor]]:
    """(2) for one query; the state is [keys, values], tensors (N, H, S, E) and (N, H, S, D)."""
    keys, values = key.unsqueeze(2), value.unsqueeze(2)
    if state is not None:
        keys, values = torch.cat([state[0], keys], 2), torch.cat([state[1], values], 2)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    weights = torch.softmax(scale * torch.einsum("nhe,nhse->nhs", query, keys), -1)
    return torch.einsum("nhs,nhsd->nhd", dropout(weights), values).contiguous(), [keys, values]


class ExactState:
    """What a recurrent module keeps of float64 sequences: tensors, with their gradients. Indexes as
    tarn.AttentionState does."""

    def __init__(self, kind: str, feature_map: Optional[str], longest: int) -> None:
        self.kind, self.feature_map, self.longest = kind, feature_map, longest
        self._tensors: Optional[List[Tensor]] = None
        self._sizes = (0, 0, 0)  # heads, width of keys, width of values
        self._feature_map: Any = None  # of torch's, as drawn for this sequence

    def step(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The next position: query and key (N, H, E), value (N, H, D), to which a feature map of
        torch's has been applied."""
        name, options = options_of(self.kind)
        before = self._tensors
        if before is None:
            self._sizes = (query.shape[1], query.shape[2], value.shape[2])
        batch, (H, E, D) = len(query) if before is None else len(self), self._sizes
        for argument, tensor, width in ("query", query, E), ("key", key, E), ("value", value, D):
            doubles(argument, tensor, "NHD" if tensor is value else "NHE", (batch, H, width))
        if name == "linear":
            phi = feature_map_of(self.feature_map)
            y, self._tensors = linear_step(phi(query), phi(key), value, before,
                                           options.get("eps", 1e-6))
            return y
        if before is not None and before[0].shape[2] >= self.longest:
            raise InvalidArgument(f"state: is full: it has {self.longest} positions")
        y, self._tensors = softmax_step(query, key, value, before, options.get("scale") or None)
        return y

    def copy(self) -> "ExactState":
        return self[:]

    def __len__(self) -> int:
        return 0 if self._tensors is None else len(self._tensors[0])

    def __getitem__(self, sequences: Any) -> "ExactState":
        """Some sequences: state[2], state[1:], state[[0, 0, 3]], state[mask]."""
        other = ExactState(self.kind, self.feature_map, self.longest)
        chosen = chosen_rows("sequences", len(self), sequences)
        other._tensors = self._tensors and [t[chosen] for t in self._tensors]
        other._feature_map, other._sizes = self._feature_map, self._sizes
        return other


FEATURE_MAPS: "dict[str, Callable[[Tensor], Tensor]]" = {
    "elu": lambda x: F.elu(x) + 1, "relu": torch.relu, "identity": lambda x: x}


def feature_map_of(name: Optional[str]) -> Callable[[Tensor], Tensor]:
    phi = FEATURE_MAPS.get(name or "elu")
    if phi is None:
        raise InvalidArgument(f"feature_map: '{name}' is not available for torch.float64; "
                              f"available: {', '.join(FEATURE_MAPS)}")
    return phi


def options_of(kind: str) -> Tuple[str, "dict[str, float]"]:
    """The name of a kind and its options: "linear:eps=0.1"."""
    name, _, options = kind.partition(":")
    pairs = (option.partition("=") for option in options.split(",") if option)
    return name, {key.strip(): float(value) for key, _, value in pairs}
