# SPDX-License-Identifier: MIT
"""Transformers over whole sequences, post-norm, (1)."""
from __future__ import annotations

from typing import Any

from torch import Tensor

from ._layers import DecoderLayer, EncoderLayer, Stack, lengths_for, mask_for


class TransformerEncoderLayer(EncoderLayer):
    def forward(self, x: Tensor, attn_mask: Any = None, length_mask: Any = None) -> Tensor:
        """x (N, L, F). The masks default to every key and whole sequences."""
        lengths = lengths_for(x, length_mask)
        y = self.attention(x, x, x, attn_mask=mask_for(x, x, attn_mask), query_lengths=lengths,
                           key_lengths=lengths)
        found: Tensor = self.norm2(self._feed(self.norm1(x + self.dropout(y))))
        return found


class TransformerEncoder(Stack):
    def forward(self, x: Tensor, attn_mask: Any = None, length_mask: Any = None) -> Tensor:
        attn_mask, length_mask = mask_for(x, x, attn_mask), lengths_for(x, length_mask)
        for layer in self.layers:
            x = layer(x, attn_mask=attn_mask, length_mask=length_mask)
        return self._normed(x)


class TransformerDecoderLayer(DecoderLayer):
    def forward(self, x: Tensor, memory: Tensor, x_mask: Any = None, x_length_mask: Any = None,
                memory_mask: Any = None, memory_length_mask: Any = None) -> Tensor:
        """x (N, L, F), memory (N, S, F)."""
        lengths = lengths_for(x, x_length_mask)
        y = self.self_attention(x, x, x, attn_mask=mask_for(x, x, x_mask), query_lengths=lengths,
                                key_lengths=lengths)
        x = self.norm1(x + self.dropout(y))
        y = self.cross_attention(x, memory, memory, attn_mask=mask_for(x, memory, memory_mask),
                                 query_lengths=lengths,
                                 key_lengths=lengths_for(memory, memory_length_mask))
        found: Tensor = self.norm3(self._feed(self.norm2(x + self.dropout(y))))
        return found


class TransformerDecoder(Stack):
    def forward(self, x: Tensor, memory: Tensor, x_mask: Any = None, x_length_mask: Any = None,
                memory_mask: Any = None, memory_length_mask: Any = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, memory, x_mask=x_mask, x_length_mask=x_length_mask,
                      memory_mask=memory_mask, memory_length_mask=memory_length_mask)
        return self._normed(x)
