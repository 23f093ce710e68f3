# SPDX-License-Identifier: MIT
"""Attention plans, shared by the functions for NumPy and torch. Arrays are Strided here."""
from __future__ import annotations

import ctypes as c
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Sequence

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._arrays import Strided, address
from ._errors import OutOfMemory
from ._library import Handle, call, create, lib

Bytes = npt.NDArray[np.uint8]
Lengths = Optional[npt.NDArray[np.uintp]]


def scratch(size: int) -> Bytes:
    """Uninitialised memory."""
    try:
        return np.empty(max(size, 1), np.uint8)
    except (MemoryError, ValueError):
        raise OutOfMemory(f"not enough memory for a workspace of {size} bytes") from None


class States(NamedTuple):
    """Addresses of B states, or of their gradients, before and after a call; None: none."""

    before: Optional[int] = None
    after: Optional[int] = None


class Desc(NamedTuple):
    """tarn_attention_desc as a hashable tuple."""

    kind: bytes
    feature_map: Optional[bytes]
    causal: bool
    batch: int
    heads: int
    queries: int
    keys: int
    query_width: int
    value_width: int
    seed: int
    threads: int


class Plan:
    """An immutable plan: any number of threads may use one at the same time."""

    def __init__(self, desc: Desc) -> None:
        self.desc = desc
        raw = s.tarn_attention_desc(*desc[:-1], s.tarn_host(desc.threads))
        plan = self._pointer = create("tarn_attention_create", c.byref(raw))
        self._handle = Handle("attention", plan, lib.tarn_attention_free)  # frees it with this
        self.saved_size: int = lib.tarn_attention_saved_size(plan)
        self._work_size: int = lib.tarn_attention_workspace_size(plan)
        self.state_size: int = lib.tarn_attention_state_size(plan) if desc.causal else 0

    def _call(self, name: str, arrays: Any, memory: Optional[int]) -> None:
        work = scratch(self._work_size)
        call(name, self._pointer, arrays, memory, address(work))

    def forward(self, y: Strided, inputs: Sequence[Strided], lengths: Lengths,
                saved: Optional[int], states: States = States()) -> None:
        arrays = _arrays(inputs, y, lengths)
        arrays[_STATES:] = (states.before or 0, states.after or 0, 0, 0)
        self._call("tarn_attention_forward", arrays, saved)

    def backward(self, gradients: Sequence[Strided], inputs: Sequence[Strided], y: Strided,
                 dy: Strided, lengths: Lengths, saved: int, state: Optional[int] = None,
                 dstates: States = States()) -> None:
        arrays = _arrays(inputs, y, lengths)
        arrays[_STATES:] = (state or 0, 0, dstates.after or 0, dstates.before or 0)
        arrays[_DY:_DIN] = dy
        _put(arrays, _DIN, gradients)
        self._call("tarn_attention_backward", arrays, saved)

    def step(self, states: Any, y: Strided, inputs: Sequence[Strided]) -> None:
        """The next position of each state; states: an array of their addresses."""
        if len(states) == 0:
            return
        work = scratch(self._work_size)
        call("tarn_attention_step", self._pointer, _arrays(inputs, y, None), states, len(states),
             address(work))


# tarn_attention_arrays as words: filling its nested structs one by one takes ten times as long.
_Words = c.c_size_t * (c.sizeof(s.tarn_attention_arrays) // c.sizeof(c.c_size_t))
_Y, _DY, _DIN, _LENGTHS, _STATES = (
    getattr(s.tarn_attention_arrays, name).offset // c.sizeof(c.c_size_t)
    for name in ("y", "dy", "din", "key_lengths", "state0"))


def _put(arrays: Any, first: int, places: Sequence[Strided]) -> None:
    for i, place in enumerate(places):
        arrays[first + 4 * i:first + 4 * i + 4] = place


def _arrays(inputs: Sequence[Strided], y: Strided, lengths: Lengths) -> Any:
    arrays: Any = _Words()
    _put(arrays, 0, inputs)
    arrays[_Y:_DY] = y
    if lengths is not None:
        arrays[_LENGTHS] = lengths.ctypes.data
    return arrays


@lru_cache(maxsize=64)
def plan_of(desc: Desc) -> Plan:
    return Plan(desc)


class DotProduct:
    """The numerator of (8), for q and k to which a feature map has already been applied."""

    def __init__(self, batch: int, heads: int, length: int, query_width: int, value_width: int,
                 threads: int) -> None:
        self._sizes = s.tarn_dot_product_sizes(batch, heads, length, query_width, value_width,
                                               s.tarn_host(threads))
        size = lib.tarn_causal_dot_product_workspace_size(c.byref(self._sizes))
        self._work = scratch(size)

    def forward(self, y: Strided, q: Strided, k: Strided, v: Strided) -> None:
        call("tarn_causal_dot_product", c.byref(self._sizes), y.output(), q.input(), k.input(),
             v.input(), self._work.ctypes.data)

    def backward(self, dq: Strided, dk: Strided, dv: Strided, q: Strided, k: Strided, v: Strided,
                 dy: Strided) -> None:
        call("tarn_causal_dot_product_backward", c.byref(self._sizes), dq.output(), dk.output(),
             dv.output(), q.input(), k.input(), v.input(), dy.input(), self._work.ctypes.data)
