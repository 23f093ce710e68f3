# SPDX-License-Identifier: MIT
"""Transformers that process one position at a time, with the parameters of the parallel ones."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from torch import Tensor

from .._layers import DecoderLayer, EncoderLayer, lengths_for
from ._utils import RecurrentStack, check_state


class RecurrentTransformerEncoderLayer(EncoderLayer):
    def forward(self, x: Tensor, state: Any = None, memory: Any = None) -> Tuple[Tensor, Any]:
        """x (N, F): the output (N, F) and the next state."""
        y, state = self.attention(x, x, x, check_state(state, memory))
        return self.norm2(self._feed(self.norm1(x + self.dropout(y)))), state


class RecurrentTransformerEncoder(RecurrentStack):
    def forward(self, x: Tensor, state: Optional[List[Any]] = None,
                memory: Any = None) -> Tuple[Tensor, List[Any]]:
        return self._advance(x, check_state(state, memory))


class RecurrentTransformerDecoderLayer(DecoderLayer):
    def forward(self, x: Tensor, memory: Tensor, memory_length_mask: Any = None,
                state: Any = None) -> Tuple[Tensor, List[Any]]:
        """x (N, F), memory (N, S, F)."""
        own, cross = state or (None, None)
        y, own = self.self_attention(x, x, x, state=own)
        x = self.norm1(x + self.dropout(y))
        y, cross = self.cross_attention(x, memory, memory, lengths_for(memory, memory_length_mask),
                                        state=cross)
        return self.norm3(self._feed(self.norm2(x + self.dropout(y)))), [own, cross]


class RecurrentTransformerDecoder(RecurrentStack):
    def forward(self, x: Tensor, memory: Tensor, memory_length_mask: Any = None,
                state: Optional[List[Any]] = None) -> Tuple[Tensor, List[Any]]:
        return self._advance(x, state, memory, memory_length_mask)
