# SPDX-License-Identifier: MIT
"""Tensors in the form that the library needs: f32 on the CPU, with strides."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch

from .._arrays import Strided
from .._errors import InvalidArgument

_narrow = (torch.float16, torch.bfloat16)


def floats(name: str, given: Any, letters: Sequence[str],
           shape: Optional[Tuple[int, ...]] = None) -> torch.Tensor:
    """An f32 tensor; f16 and bf16 are converted without loss."""
    value = _checked(name, given, letters, shape)
    if value.dtype != torch.float32 and value.dtype not in _narrow:
        raise InvalidArgument(f"{name}: is {value.dtype}; it must be torch.float32: use .float()")
    return value if value.dtype == torch.float32 else value.float()


def doubles(name: str, given: Any, letters: Sequence[str],
            shape: Optional[Tuple[int, ...]] = None) -> torch.Tensor:
    """An f64 tensor, beside others of that type."""
    value = _checked(name, given, letters, shape)
    if value.dtype != torch.float64:
        raise InvalidArgument(f"{name}: is {value.dtype}; it must be torch.float64, like the "
                              "queries")
    return value


def check_all(names: Sequence[Tuple[str, str]], *tensors: Any) -> bool:
    """Checks tensors by their names and letters. The first says whether all must be f64, which is
    returned, or of types that are computed in f32."""
    exact = getattr(tensors[0], "dtype", None) == torch.float64
    for (name, letters), tensor in zip(names, tensors):
        (doubles if exact else floats)(name, tensor, letters)
    return exact


def _checked(name: str, value: Any, letters: Sequence[str],
             shape: Optional[Tuple[int, ...]]) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise InvalidArgument(f"{name}: is {type(value).__name__}; it must be a tensor "
                              f"{_written(letters)}")
    if value.device.type != "cpu":
        raise InvalidArgument(f"{name}: is on {value.device}; it must be on the CPU: use .cpu()")
    if value.layout != torch.strided:
        raise InvalidArgument(f"{name}: is {value.layout}; it must be a dense tensor")
    if value.dim() != len(letters):
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; it must be "
                              f"{_written(letters)}")
    if shape is not None and tuple(value.shape) != shape:
        raise InvalidArgument(f"{name}: has shape {tuple(value.shape)}; it must be "
                              f"{_written(letters)} = {shape}")
    return value


def _written(letters: Sequence[str]) -> str:
    return f"({', '.join(letters)})"


def wants_grad(*tensors: Optional[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def placed(t: torch.Tensor) -> torch.Tensor:
    """The tensor itself if the library can read it in place, otherwise a copy."""
    if hasattr(t, "is_neg") and t.is_neg():
        t = t.resolve_neg()
    if t.shape[-1] > 1 and t.stride(-1) != 1:
        t = t.contiguous()
    return t


def positions_first(t: torch.Tensor) -> Strided:
    """A tensor (N, L, H, E), or (N, L, H) of scalars."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(1), t.stride(2))


def only_heads(t: torch.Tensor) -> Strided:
    """A tensor (H, E), or (H) of scalars."""
    return Strided(t.data_ptr(), 0, 0, t.stride(0))


def heads_first(t: torch.Tensor) -> Strided:
    """A tensor (N, H, L, E)."""
    return Strided(t.data_ptr(), t.stride(0), t.stride(2), t.stride(1))


def one_position(t: torch.Tensor) -> Strided:
    """A tensor (N, H, E)."""
    return Strided(t.data_ptr(), t.stride(0), 0, t.stride(1))
