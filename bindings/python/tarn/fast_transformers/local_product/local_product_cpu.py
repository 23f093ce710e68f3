# SPDX-License-Identifier: MIT
"""The functions of the original's extension, in plain torch, on any device. Query l and place w of its
window meet key l - W // 2 + w; W is local_context."""
from __future__ import annotations

from typing import Callable, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F


def windows(x: Tensor, queries: int, local_context: int) -> Tensor:
    """Rows (..., S, E) as (..., L, E, W), zeros where there is no row; a view of a padded copy."""
    before = local_context // 2
    some = max(queries, 1)  # a window is not larger than what it moves over
    after = some + local_context - 1 - before - x.shape[-2]  # below 0: rows that nobody sees
    return F.pad(x, (0, 0, before, after)).unfold(-2, local_context, 1)[..., :queries, :, :]


def seen_keys(matrix: Tensor, queries: int, local_context: int) -> Tensor:
    """A bool mask of keys (N, S) as (N, L, W)."""
    return windows(matrix.float().unsqueeze(-1), queries, local_context).squeeze(-2) > 0


def diagonal(matrix: Tensor, local_context: int) -> Tensor:
    """The windows (L, W) of a matrix (L, S); places without a key repeat the nearest one's."""
    L, S = matrix.shape
    places = (torch.arange(L, device=matrix.device).view(-1, 1) - local_context // 2
              + torch.arange(local_context, device=matrix.device))
    return matrix.gather(1, places.clamp(0, S - 1))


def products(queries: Tensor, keys: Tensor, local_context: int) -> Tensor:
    """Of queries (N, H, L, E) and keys (N, H, S, E): (N, H, L, W), 0 where there is no key."""
    near = windows(keys, queries.shape[2], local_context)
    return torch.einsum("nhle,nhlew->nhlw", queries, near)


def local_dot_product(queries: Tensor, keys: Tensor, attn_mask: Tensor, key_lengths: Tensor,
                      local_context: int) -> Tensor:
    """The products plus attn_mask (L, S); -1e24 where there is no key."""
    seen = torch.arange(keys.shape[2], device=keys.device) < key_lengths.view(-1, 1)
    near = seen_keys(seen, queries.shape[2], local_context).unsqueeze(1)
    found = products(queries, keys, local_context) + diagonal(attn_mask, local_context)
    return found.masked_fill(~near, -1e24)


def local_weighted_average(attention: Tensor, values: Tensor) -> Tensor:
    """Weights (N, H, L, W) and values (N, H, S, D) give (N, H, L, D)."""
    near = windows(values, attention.shape[2], attention.shape[3])
    return torch.einsum("nhlw,nhldw->nhld", attention, near)


def _gradients(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor,
               grad: Tensor) -> Tuple[Tensor, Tensor]:
    with torch.enable_grad():
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        da, db = torch.autograd.grad(function(a, b), (a, b), grad)
    return da, db


def local_dot_backward(queries: Tensor, keys: Tensor, key_lengths: Tensor, grad: Tensor,
                       local_context: int) -> Tuple[Tensor, Tensor]:
    """The gradients of queries and keys from that of the products."""
    mask = queries.new_zeros(queries.shape[2], keys.shape[2])
    return _gradients(lambda q, k: local_dot_product(q, k, mask, key_lengths, local_context),
                      queries, keys, grad)


def local_weighted_average_backward(attention: Tensor, values: Tensor,
                                    grad: Tensor) -> Tuple[Tensor, Tensor]:
    """The gradients of weights and values from that of the average."""
    return _gradients(local_weighted_average, attention, values, grad)
