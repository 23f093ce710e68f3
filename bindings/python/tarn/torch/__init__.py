# SPDX-License-Identifier: MIT
"""tarn for torch: autograd functions and modules on CPU tensors, which are not copied.

Signatures, names and layouts are those of fast_transformers: queries (N, L, H, E), keys
(N, S, H, E), values (N, S, H, D), masks as objects. torch is what is installed, of any version
from 1.10 on; tarn itself is not compiled against it."""
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
