# SPDX-License-Identifier: MIT
"""Softmax attention within hash buckets, as in Reformer."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ..._errors import UnsupportedError
from .. import _attend, _hashed
from ..attention_registry import AttentionRegistry, Bool, Int, Optional as OptionalSpec
from .full_attention import SOFTMAX_PARAMETERS, SoftmaxAttention


class ReformerAttention(SoftmaxAttention):
    """The keys are the queries, normalised. bits: half the number of buckets. masked: causal. Hashes
    are drawn anew for every call in training, from torch's generator, and stay the same in
    evaluation. Any length is allowed. Dropout of the weights is torch's."""

    def __init__(self, chunk_size: int = 32, bits: int = 8, rounds: int = 4, masked: bool = False,
                 softmax_temp: Optional[float] = None, attention_dropout: float = 0.1,
                 event_dispatcher: Any = "") -> None:
        super().__init__(softmax_temp, attention_dropout, event_dispatcher)
        self.chunk_size, self.bits, self.rounds, self.masked = chunk_size, bits, rounds, masked

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, attn_mask: Any,
                query_lengths: Any, key_lengths: Any) -> Tensor:
        if not bool(attn_mask.all_ones) and not (self.masked and bool(attn_mask.lower_triangular)):
            raise UnsupportedError("ReformerAttention does not support arbitrary attention masks; "
                                   "use masked=True for a causal one")
        simple, lengths = _attend.simple_lengths(key_lengths, keys)
        if not simple:
            raise UnsupportedError("key_lengths: masks keys in the middle; only keys at the end can "
                                   "be masked")
        scale = self._scale(queries)
        if not _attend.on_tarn(queries, values) or self._drops():
            hashes = None if self.training else torch.Generator(queries.device).manual_seed(0)
            return _hashed.attention(queries, values, lengths, rounds=self.rounds,
                                     planes=self.bits, chunk=self.chunk_size, causal=self.masked,
                                     scale=scale, dropout=self.dropout, generator=hashes)
        if self.softmax_temp is not None:  # the scale of queries changes neither hashes nor keys
            queries = queries * (scale * queries.shape[-1] ** 0.5)
        seed = int(torch.randint(2**62, ()).item()) if self.training else 0
        kind = f"lsh:rounds={self.rounds},chunk={self.chunk_size},buckets={2 * self.bits}"
        return _attend.attention(queries, None, values, kind, self.masked, None, lengths, seed)


AttentionRegistry.register("reformer", ReformerAttention, [
    ("chunk_size", OptionalSpec(Int, 32)), ("bits", OptionalSpec(Int, 63)),
    ("rounds", OptionalSpec(Int, 4)), ("masked", OptionalSpec(Bool, False))] + SOFTMAX_PARAMETERS)
