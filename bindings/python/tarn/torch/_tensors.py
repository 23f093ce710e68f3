# SPDX-License-Identifier: MIT
"""Tensors in the form that the library needs: f32 on the CPU, with strides."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .._arrays import Strided
from .._errors import InvalidArgument

_narrow = (torch.float16, torch.bfloat16)


def floats(name: str, value: Any, letters: str,
           shape: Optional[Tuple[int, ...]] = None) -> torch.Tensor:
    """An f32 tensor; f16 and bf16 are converted without loss."""
    wanted = f"({', '.join(letters)})"
    if not isinstance(value, torch.Tensor):
        raise InvalidArgument(f"{name}: is {type(value).__name__}; it must be a tensor {wanted}")
    if value.device.type != "cpu":
        raise InvalidArgument(f"{name}: is on {value.device}; it must be on the CPU: use .cpu()")
    if value.layout != torch.strided:
        raise InvalidArgument(f"{name}: is {value.layout}; it must be a dense tensor")
    if value.dtype != torch.float32 and value.dtype not in _narrow:
        raise InvalidArgument(f"{name}: is {value.dtype}; it must be torch.float32: use .float()")
    if value.dim() != len(letters):
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; it must be {wanted}")
    if shape is not None and tuple(value.shape) != shape:
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; it must be {wanted} = "
                              f"{shape}")
    return value.float()


def placed(t: torch.Tensor) -> torch.Tensor:
    """The tensor itself if the library can read it in place, otherwise a copy."""
    if hasattr(t, "is_neg") and t.is_neg():
        t = t.resolve_neg()
    if t.shape[-1] > 1 and t.stride(-1) != 1:
        t = t.contiguous()
    return t


def positions_first(t: torch.Tensor) -> Strided:
    """A tensor (N, L, H, E)."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(1), t.stride(2))


def heads_first(t: torch.Tensor) -> Strided:
    """A tensor (N, H, L, E)."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(2), t.stride(1))


def one_position(t: torch.Tensor) -> Strided:
    """A tensor (N, H, E)."""
    return Strided(t.data_ptr(), t.stride(0), 0, t.stride(1))
