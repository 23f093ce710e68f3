# SPDX-License-Identifier: MIT
"""Softmax attention to the neighbours of a position, in plain torch."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from ..attention_registry import AttentionRegistry, Int
from ..events import AttentionEvent
from .full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention


class LocalAttention(SoftmaxAttention):
    """Position i attends to the local_context keys from i - local_context // 2 on. Time and memory
    are linear in the length. The mask must be full or causal."""

    def __init__(self, local_context: int, softmax_temp: Optional[float] = None,
                 attention_dropout: float = 0.1, event_dispatcher: Any = "") -> None:
        super().__init__(softmax_temp, attention_dropout, event_dispatcher)
        self.local_context = local_context

    def _windows(self, x: Tensor) -> Tensor:
        """(N, S, ...) as (N, S, ..., W): the neighbours of each position, zeros past the ends."""
        before = self.local_context // 2
        ends = [0, 0] * (x.dim() - 2) + [before, self.local_context - 1 - before]
        return F.pad(x, ends).unfold(1, self.local_context, 1)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        if queries.shape[1] != keys.shape[1]:
            raise ValueError(f"keys: has {keys.shape[1]} positions; it must have those of queries, "
                             f"{queries.shape[1]}")
        seen = self._windows(key_lengths.bool_matrix.to(keys.device).float()) > 0
        if bool(attn_mask.lower_triangular):
            seen = seen & (torch.arange(self.local_context, device=keys.device)
                           <= self.local_context // 2)
        elif not bool(attn_mask.all_ones):
            seen = seen & self._of_matrix(attn_mask.bool_matrix.to(keys.device))
        scale = queries.shape[-1] ** -0.5 if self.softmax_temp is None else self.softmax_temp
        scores = scale * torch.einsum("nlhe,nlhew->nlhw", queries, self._windows(keys))
        weights = torch.softmax(scores.masked_fill(~seen.unsqueeze(2), float("-inf")), -1)
        weights = self.dropout(weights.masked_fill(~seen.any(-1)[:, :, None, None], 0.0))
        self.event_dispatcher.dispatch(AttentionEvent(self, weights))
        return torch.einsum("nlhw,nlhdw->nlhd", weights, self._windows(values)).contiguous()

    def _of_matrix(self, matrix: Tensor) -> Tensor:
        """The windows (1, L, W) of a mask (L, L) along its diagonal."""
        L = matrix.shape[-1]
        places = (torch.arange(L, device=matrix.device).view(-1, 1) - self.local_context // 2
                  + torch.arange(self.local_context, device=matrix.device))
        inside = (places >= 0) & (places < L)
        return (matrix.gather(1, places.clamp(0, L - 1)) & inside).unsqueeze(0)


AttentionRegistry.register("local", LocalAttention,
                           [("local_context", Int)] + SOFTMAX_PARAMETERS)
