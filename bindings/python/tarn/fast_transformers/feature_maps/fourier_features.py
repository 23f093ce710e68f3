# SPDX-License-Identifier: MIT
"""Random features: of exp(-|x - y|^2 / 2) by Rahimi and Recht 2007, of exp(x.y) by Choromanski et al.
2020, and of any function of random projections."""
from __future__ import annotations

import math
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .base import FeatureMap


def orthogonal_random_matrix_(w: Tensor) -> None:
    """Fills a matrix (rows, columns) with columns that are orthogonal in groups of as many as there
    are rows, and as long as columns of a normal distribution."""
    rows, columns = w.shape
    for first in range(0, columns, rows):
        count = min(rows, columns - first)
        block = torch.linalg.qr(torch.randn(rows, rows, device=w.device, dtype=w.dtype))[0]
        lengths = torch.randn(rows, count, device=w.device, dtype=w.dtype).norm(dim=0)
        w[:, first:first + count] = block[:, :count] * lengths


class RandomFourierFeatures(FeatureMap):
    """n_dims: number of features, query_dimensions by default. softmax_temp: squared scale of the
    inputs, 1 / sqrt(query_dimensions) by default. redraw: number of sequences that share random
    numbers. deterministic_eval: do not redraw in evaluation."""

    omega: Tensor
    softmax_temp: float

    def __init__(self, query_dimensions: int, n_dims: Optional[int] = None,
                 softmax_temp: Optional[float] = None, orthogonal: bool = False, redraw: int = 1,
                 deterministic_eval: bool = False) -> None:
        super().__init__(query_dimensions)
        self.query_dimensions = query_dimensions
        self.n_dims = n_dims or query_dimensions
        self.softmax_temp = query_dimensions ** -0.5 if softmax_temp is None else softmax_temp
        self.orthogonal, self.redraw = orthogonal, redraw
        self.deterministic_eval = deterministic_eval
        self.register_buffer("omega", torch.zeros(query_dimensions, self.n_dims // 2))
        self._calls = -1

    def new_feature_map(self, device: Any) -> None:
        if self.deterministic_eval and not self.training:
            return
        self._calls += 1
        if self._calls % self.redraw != 0:
            return
        omega = torch.zeros(self.omega.shape, dtype=self.omega.dtype, device=device)
        if self.orthogonal:
            orthogonal_random_matrix_(omega)
        else:
            omega.normal_()
        self.omega = omega

    def _projected(self, x: Tensor) -> Tensor:
        return (x * math.sqrt(self.softmax_temp)) @ self.omega

    def forward(self, x: Tensor) -> Tensor:
        u = self._projected(x)
        return torch.cat([torch.cos(u), torch.sin(u)], -1) * math.sqrt(2 / self.n_dims)


class SmoothedRandomFourierFeatures(RandomFourierFeatures):
    """With a constant feature, `smoothing`: n_dims counts it."""

    def __init__(self, query_dimensions: int, n_dims: Optional[int] = None,
                 softmax_temp: Optional[float] = None, orthogonal: bool = False,
                 smoothing: float = 1.0, redraw: int = 1,
                 deterministic_eval: bool = False) -> None:
        super().__init__(query_dimensions, (n_dims or query_dimensions) - 1, softmax_temp,
                         orthogonal, redraw, deterministic_eval)
        self.smoothing = smoothing

    def forward(self, x: Tensor) -> Tensor:
        constant = torch.full_like(x[..., :1], self.smoothing)
        return torch.cat([super().forward(x), constant], -1)


class Favor(RandomFourierFeatures):
    """Positive features of the softmax kernel. stabilize: subtracts the largest |x|^2 of a sequence
    (N, L, H, E) in the exponent."""

    def __init__(self, query_dimensions: int, n_dims: Optional[int] = None,
                 softmax_temp: Optional[float] = None, orthogonal: bool = True,
                 stabilize: bool = False, redraw: int = 1,
                 deterministic_eval: bool = False) -> None:
        super().__init__(query_dimensions, n_dims, softmax_temp, orthogonal, redraw,
                         deterministic_eval)
        self.stabilize = stabilize

    def forward(self, x: Tensor) -> Tensor:
        u = self._projected(x)
        squares = self.softmax_temp * x.square().sum(-1, keepdim=True)
        offset = squares / 2
        if self.stabilize:
            offset = offset + squares.max(1, keepdim=True)[0]
        return torch.cat([torch.exp(u - offset), torch.exp(-u - offset)], -1) / math.sqrt(self.n_dims)


class GeneralizedRandomFeatures(RandomFourierFeatures):
    """kernel_fn of n_dims random projections."""

    def __init__(self, query_dimensions: int, n_dims: Optional[int] = None,
                 softmax_temp: Optional[float] = 1.0, orthogonal: bool = True,
                 kernel_fn: Callable[[Tensor], Tensor] = torch.relu, redraw: int = 1,
                 deterministic_eval: bool = False) -> None:
        super().__init__(query_dimensions, 2 * (n_dims or query_dimensions), softmax_temp,
                         orthogonal, redraw, deterministic_eval)
        self.kernel_fn = kernel_fn

    def forward(self, x: Tensor) -> Tensor:
        return self.kernel_fn(self._projected(x))
