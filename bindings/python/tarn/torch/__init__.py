# SPDX-License-Identifier: MIT
"""tarn for torch: autograd functions and modules for CPU tensors, without copies.

Names, signatures and layouts are those of fast_transformers: queries (N, L, H, E), keys
(N, S, H, E), values (N, S, H, D), mask objects. Works with any installed torch from version 1.10;
tarn is not compiled against torch."""
from __future__ import annotations

from ._functions import attention, causal_dot_product
from ._masks import FullMask, LengthMask, TriangularCausalMask
from ._modules import (CausalLinearAttention, FullAttention, LinearAttention,
                       RecurrentFullAttention, RecurrentLinearAttention)

__all__ = [
    "CausalLinearAttention", "FullAttention", "FullMask", "LengthMask", "LinearAttention",
    "RecurrentFullAttention", "RecurrentLinearAttention", "TriangularCausalMask", "attention",
    "causal_dot_product",
]
