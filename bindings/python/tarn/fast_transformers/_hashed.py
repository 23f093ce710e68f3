# SPDX-License-Identifier: MIT
"""Reformer's attention in torch, as tarn's `lsh` defines it, where tarn has no form of it: with
dropout of the weights, in other precisions, on other devices.

    L_i = log sum_r sum_{j in J_r(i)} exp(s_ij)        y_i = sum_r sum_j drop(exp(s_ij - L_i)) v_j

J_r(i) are the keys of the chunk of i and of the chunk before, when round r sorts positions by
hash; a query does not see itself unless it sees nothing else."""
from __future__ import annotations

import math
from typing import Callable, List, NamedTuple, Optional

import torch
from torch import Tensor


class _Round(NamedTuple):
    order: Tensor  # (N, H, C, chunk): positions, sorted by hash
    scores: Tensor  # (N, H, C, chunk, 2 chunk); -inf where a query does not see a key


def _with_before(x: Tensor, fill: float) -> Tensor:
    """(N, H, C, chunk, ...): each chunk and the one before it, (N, H, C, 2 chunk, ...)."""
    first = torch.full_like(x[:, :, :1], fill)
    return torch.cat([x, torch.cat([first, x[:, :, :-1]], 2)], 3)


def _gather(x: Tensor, order: Tensor) -> Tensor:
    """Rows of x (N, H, L, E) in an order (N, H, C, chunk)."""
    flat = order.flatten(2).unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])
    return x.gather(2, flat).view(*order.shape, x.shape[-1])


def _order(q: Tensor, there: Tensor, planes: Tensor, chunk: int) -> Tensor:
    """Positions sorted by hash, those that are not there last, in whole chunks."""
    projected = q.detach() @ planes
    bucket = torch.cat([projected, -projected], -1).argmax(-1)
    bucket = bucket.masked_fill(~there, 2 * planes.shape[-1])
    order = bucket.sort(dim=-1, stable=True).indices
    return order.view(*order.shape[:2], order.shape[2] // chunk, chunk)


def _round(q: Tensor, k: Tensor, there: Tensor, planes: Tensor, chunk: int,
           causal: bool) -> _Round:
    order = _order(q, there, planes, chunk)
    keys = _with_before(order, -1)
    seen = _with_before(there.gather(2, order.flatten(2)).view_as(order), 0)
    queries = order.unsqueeze(-1)
    hidden = ~seen.unsqueeze(-2) | (keys.unsqueeze(-2) == queries)
    if causal:
        hidden = hidden | (keys.unsqueeze(-2) > queries)
    scores = _gather(q, order) @ _with_before(_gather(k, order), 0.0).transpose(-1, -2)
    return _Round(order, scores.masked_fill(hidden, -math.inf))


def _back(x: Tensor, order: Tensor) -> Tensor:
    """(N, H, C, chunk, ...) in the order of positions, (N, H, L, ...)."""
    place = order.flatten(2).argsort(-1)
    rows = x.flatten(2, 3)
    return rows.gather(2, place.view(*place.shape, *[1] * (rows.dim() - 3)).expand_as(rows))


def _padded(x: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, 0, 0, length - x.shape[2]))


def attention(queries: Tensor, values: Tensor, lengths: Optional[Tensor], *, rounds: int,
              planes: int, chunk: int, causal: bool, scale: float,
              dropout: Callable[[Tensor], Tensor],
              generator: Optional[torch.Generator] = None) -> Tensor:
    """Queries (N, L, H, E) and values (N, L, H, M) give (N, L, H, M); planes: half the buckets;
    generator: of the hashes, None for torch's own."""
    N, L, H, E = queries.shape
    chunk = min(chunk, L)
    room = -(-L // chunk) * chunk
    q, v = _padded(queries.transpose(1, 2), room), _padded(values.transpose(1, 2), room)
    counts = torch.full((N,), L, device=q.device) if lengths is None else lengths.to(q.device)
    there = torch.arange(room, device=q.device) < counts.view(N, 1, 1)
    there = there.expand(N, H, room)
    k = scale * q / (q.square().sum(-1, keepdim=True) + 1e-6 * E).sqrt()
    made: List[_Round] = [
        _round(q, k, there, torch.randn(E, planes, generator=generator, dtype=q.dtype,
                                        device=q.device), chunk, causal)
        for _ in range(rounds)]
    total = torch.stack([_back(one.scores.logsumexp(-1), one.order) for one in made]).logsumexp(0)
    blind = torch.isneginf(total)  # sees itself alone
    y = torch.where(blind.unsqueeze(-1), v, torch.zeros_like(v))
    total = total.masked_fill(blind, 0.0)
    for one in made:
        sums = _gather(total.unsqueeze(-1), one.order)
        weights = dropout((one.scores - sums).exp())
        y = y + _back(weights @ _with_before(_gather(v, one.order), 0.0), one.order)
    y = y * there.unsqueeze(-1)
    return y[:, :, :L].transpose(1, 2)
