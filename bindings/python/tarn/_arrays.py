# SPDX-License-Identifier: MIT
"""NumPy arrays in the form that the library needs: f32 with strides, int32 symbols, lengths."""
from __future__ import annotations

import ctypes as c
from typing import Any, NamedTuple, Optional, Sequence, Tuple, cast

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._errors import InvalidArgument, OutOfMemory

Floats = npt.NDArray[np.float32]
Symbols = npt.NDArray[np.int32]


def plain(a: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """A contiguous and aligned array; copied only if necessary."""
    return np.require(a, dtype, ["C", "A"])


class Strided(NamedTuple):
    """Address and strides of an array (batch, position, head, width); strides in floats."""

    data: int
    batch: int
    position: int
    head: int

    def input(self) -> s.tarn_input:
        return s.tarn_input(*self)

    def output(self) -> s.tarn_output:
        return s.tarn_output(*self)


_F32 = np.dtype(np.float32)


def _usable(a: npt.NDArray[Any]) -> bool:
    """Whether an array is f32 with a contiguous last dimension; others are copied."""
    if a.dtype is not _F32 and not (a.dtype == _F32 and a.dtype.isnative):
        return False
    flags = a.flags
    return bool(flags.aligned and (flags.c_contiguous
                                   or ((a.shape[-1] <= 1 or a.strides[-1] == 4)
                                       and all(step % 4 == 0 for step in a.strides[:-1]))))


def floats(name: str, value: Any, letters: Sequence[str],
           shape: Optional[Tuple[int, ...]] = None) -> Floats:
    """A floating-point array as f32; f16 and f64 are converted. Letters name the dimensions."""
    a = np.asarray(value)
    if a.dtype.kind != "f":
        raise InvalidArgument(f"{name}: has dtype {a.dtype}; it must be floating point")
    if a.ndim != len(letters) or (shape is not None and a.shape != shape):
        wanted = f"({', '.join(letters)})"
        raise InvalidArgument(f"{name}: has shape {a.shape}; it must be {wanted}"
                              + (f" = {shape}" if a.ndim == len(letters) else ""))
    if _usable(a):
        return a
    with np.errstate(over="ignore"):  # f64 beyond f32 is infinite, as it is in C
        return plain(a, np.float32)


def empty(shape: Tuple[int, ...]) -> Floats:
    """An uninitialised array for outputs."""
    try:
        return np.empty(shape, np.float32)
    except (MemoryError, ValueError):
        raise OutOfMemory(f"not enough memory for an output array of shape {shape}") from None


def address(a: npt.NDArray[Any]) -> int:
    """a.ctypes.data, in a third of the time for arrays that are contiguous and writable."""
    try:
        return c.addressof(c.c_char.from_buffer(cast(Any, a)))
    except (TypeError, ValueError):
        return a.ctypes.data


def address_of(a: Optional[npt.NDArray[Any]]) -> Optional[int]:
    return None if a is None else address(a)


def heads_first(a: Floats) -> Strided:
    """An array (B, H, N, D), or (B, H, N) of scalars."""
    steps = a.strides
    return Strided(address(a), steps[0] // 4, steps[2] // 4, steps[1] // 4)


def only_heads(a: Floats) -> Strided:
    """An array (H, D), or (H) of scalars."""
    return Strided(address(a), 0, 0, a.strides[0] // 4)


def one_position(a: Floats) -> Strided:
    """An array (B, H, D), or (B, H) of scalars."""
    return Strided(address(a), a.strides[0] // 4, 0, a.strides[1] // 4)


def lengths_of(name: str, value: Any, batch: int, most: int) -> Optional[npt.NDArray[np.uintp]]:
    """B lengths, each from 0 to `most`."""
    if value is None:
        return None
    a = np.asarray(value)
    if a.dtype.kind not in "iu" or a.shape != (batch,):
        raise InvalidArgument(
            f"{name}: is {a.dtype} of shape {a.shape}; it must be {batch} whole numbers")
    if a.size and (a.min() < 0 or a.max() > most):
        raise InvalidArgument(
            f"{name}: are from {a.min()} to {a.max()}; they must be from 0 to {most}")
    return plain(a, np.uintp)


def chosen_rows(name: str, batch: int, index: Any) -> npt.NDArray[np.intp]:
    """The rows that state[index] selects of a batch: a number, a slice, a list or a mask."""
    try:
        chosen = np.arange(batch)[index]
    except (IndexError, TypeError) as error:
        raise IndexError(f"{name}: {error}") from None
    if chosen.ndim > 1:
        raise IndexError(f"{name}: must be selected by one dimension, not {chosen.ndim}")
    rows: npt.NDArray[np.intp] = chosen.reshape(-1)
    return rows


def symbols_of(name: str, value: Any, letters: str) -> Symbols:
    """Whole numbers as int32; the library checks that the model has these symbols."""
    a = np.asarray(value)
    if a.dtype.kind not in "iu" and a.size > 0:  # an empty list is one of floats to NumPy
        raise InvalidArgument(f"{name}: has dtype {a.dtype}; it must be whole numbers")
    if a.ndim != len(letters):
        raise InvalidArgument(
            f"{name}: has shape {a.shape}; it must be ({', '.join(letters)})")
    if a.size and (a.min() < 0 or a.max() > np.iinfo(np.int32).max):
        raise InvalidArgument(
            f"{name}: are from {a.min()} to {a.max()}; they must be symbols of the model")
    return plain(a, np.int32)
