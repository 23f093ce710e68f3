# SPDX-License-Identifier: MIT
"""Tensors as the library wants them: f32 on the CPU, by their strides."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .._arrays import Strided
from .._errors import InvalidArgument

_narrow = (torch.float16, torch.bfloat16)


def floats(name: str, value: Any, letters: str,
           shape: Optional[Tuple[int, ...]] = None) -> torch.Tensor:
    """An f32 tensor; f16 and bf16 are widened, which loses nothing."""
    wanted = f"({', '.join(letters)})"
    if not isinstance(value, torch.Tensor):
        raise InvalidArgument(f"{name}: is {type(value).__name__}; expected a tensor {wanted}")
    if value.device.type != "cpu":
        raise InvalidArgument(f"{name}: is on {value.device}; expected a tensor on the CPU: "
                              ".cpu() copies")
    if value.layout != torch.strided:
        raise InvalidArgument(f"{name}: is {value.layout}; expected a dense tensor")
    if value.dtype != torch.float32 and value.dtype not in _narrow:
        raise InvalidArgument(f"{name}: is {value.dtype}; expected torch.float32: .float() "
                              "converts")
    if value.dim() != len(letters):
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; expected {wanted}")
    if shape is not None and tuple(value.shape) != shape:
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; expected {wanted} = "
                              f"{shape}")
    return value.float()


def placed(t: torch.Tensor) -> torch.Tensor:
    """The tensor itself where the library can read it, else a copy."""
    if hasattr(t, "is_neg") and t.is_neg():
        t = t.resolve_neg()
    if t.shape[-1] > 1 and t.stride(-1) != 1:
        t = t.contiguous()
    return t


def positions_first(t: torch.Tensor) -> Strided:
    """Of a tensor (N, L, H, E)."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(1), t.stride(2))


def heads_first(t: torch.Tensor) -> Strided:
    """Of a tensor (N, H, L, E)."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(2), t.stride(1))


def one_position(t: torch.Tensor) -> Strided:
    """Of a tensor (N, H, E)."""
    return Strided(t.data_ptr(), t.stride(0), 0, t.stride(1))
