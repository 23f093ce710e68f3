# SPDX-License-Identifier: MIT
"""NumPy arrays as the library wants them: f32 with strides, int32 symbols, lengths."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._errors import InvalidArgument, OutOfMemory

Floats = npt.NDArray[np.float32]
Symbols = npt.NDArray[np.int32]


def positions_of(causal: bool, queries: int, keys: int, values: int) -> int:
    """How many keys and values there should be, so that a refusal names the one that has another
    number: those of the keys, unless the values alone have as many as causal queries need."""
    return values if causal and values == queries else keys


def plain(a: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """Contiguous and aligned, without a copy where it is so already."""
    return np.require(a, dtype, ["C", "A"])


class Strided(NamedTuple):
    """Where an array (batch, position, head, width) lies; strides in floats."""

    data: int
    batch: int
    position: int
    head: int

    def input(self) -> s.tarn_input:
        return s.tarn_input(*self)

    def output(self) -> s.tarn_output:
        return s.tarn_output(*self)


def _usable(a: npt.NDArray[Any]) -> bool:
    """f32 whose last dimension is contiguous: anything else is copied."""
    return bool(a.dtype == np.float32 and a.dtype.isnative and a.flags.aligned
                and (a.shape[-1] <= 1 or a.strides[-1] == 4)
                and all(step % 4 == 0 for step in a.strides[:-1]))


def floats(name: str, value: Any, letters: str,
           shape: Optional[Tuple[int, ...]] = None) -> Floats:
    """Of real floating point numbers, f16 and f64 converted; letters name the dimensions."""
    a = np.asarray(value)
    wanted = f"({', '.join(letters)})"
    if a.dtype.kind != "f":
        raise InvalidArgument(f"{name}: holds {a.dtype}; expected floating point numbers")
    if a.ndim != len(letters):
        raise InvalidArgument(f"{name}: has shape {a.shape}; expected {wanted}")
    if shape is not None and a.shape != shape:
        raise InvalidArgument(f"{name}: has shape {a.shape}; expected {wanted} = {shape}")
    if _usable(a):
        return a
    with np.errstate(over="ignore"):  # f64 beyond f32 is infinite, as it is in C
        return plain(a, np.float32)


def empty(shape: Tuple[int, ...]) -> Floats:
    """For outputs."""
    try:
        return np.empty(shape, np.float32)
    except (MemoryError, ValueError):
        raise OutOfMemory(f"outputs: no memory for an array of shape {shape}") from None


def heads_first(a: Floats) -> Strided:
    """Of an array (B, H, N, D)."""
    return Strided(a.ctypes.data, a.strides[0] // 4, a.strides[2] // 4, a.strides[1] // 4)


def one_position(a: Floats) -> Strided:
    """Of an array (B, H, D)."""
    return Strided(a.ctypes.data, a.strides[0] // 4, 0, a.strides[1] // 4)


def lengths_of(name: str, value: Any, batch: int, most: int) -> Optional[npt.NDArray[np.uintp]]:
    """B of them, each 0 to `most`."""
    if value is None:
        return None
    a = np.asarray(value)
    if a.dtype.kind not in "iu" or a.shape != (batch,):
        raise InvalidArgument(
            f"{name}: is {a.dtype} of shape {a.shape}; expected {batch} whole numbers")
    if a.size and (a.min() < 0 or a.max() > most):
        raise InvalidArgument(f"{name}: {a.min()} to {a.max()}; expected 0 to {most}")
    return plain(a, np.uintp)


def symbols_of(name: str, value: Any, letters: str) -> Symbols:
    """Whole numbers as int32; the library checks them against the model."""
    a = np.asarray(value)
    if a.dtype.kind not in "iu":
        raise InvalidArgument(f"{name}: holds {a.dtype}; expected whole numbers")
    if a.ndim != len(letters):
        raise InvalidArgument(
            f"{name}: has shape {a.shape}; expected ({', '.join(letters)})")
    if a.size and (a.min() < 0 or a.max() > np.iinfo(np.int32).max):
        raise InvalidArgument(f"{name}: {a.min()} to {a.max()}; expected symbols of the model")
    return plain(a, np.int32)
