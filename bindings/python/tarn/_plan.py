# SPDX-License-Identifier: MIT
"""Attention plans, shared by the functions for NumPy and torch. Arrays are Strided here."""
from __future__ import annotations

import ctypes as c
from functools import lru_cache
from typing import NamedTuple, Optional, Sequence

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._arrays import Strided
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
        self.handle = Handle("attention", create("tarn_attention_create", c.byref(raw)),
                             lib.tarn_attention_free)
        with self.handle.use() as plan:
            self.saved_size: int = lib.tarn_attention_saved_size(plan)
            self._work_size: int = lib.tarn_attention_workspace_size(plan)
            self.state_size: int = lib.tarn_attention_state_size(plan) if desc.causal else 0

    def _call(self, name: str, arrays: s.tarn_attention_arrays, memory: Optional[int]) -> None:
        work = scratch(self._work_size)
        with self.handle.use() as plan:
            call(name, plan, c.byref(arrays), memory, work.ctypes.data)

    def forward(self, y: Strided, inputs: Sequence[Strided], lengths: Lengths,
                saved: Optional[int], states: States = States()) -> None:
        arrays = self._arrays(inputs, y, lengths)
        arrays.state0, arrays.state1 = states
        self._call("tarn_attention_forward", arrays, saved)

    def backward(self, gradients: Sequence[Strided], inputs: Sequence[Strided], y: Strided,
                 dy: Strided, lengths: Lengths, saved: int, state: Optional[int] = None,
                 dstates: States = States()) -> None:
        arrays = self._arrays(inputs, y, lengths)
        arrays.state0, arrays.dstate0, arrays.dstate1 = state, dstates.before, dstates.after
        arrays.dy = dy.input()
        for i, gradient in enumerate(gradients):
            arrays.din[i] = gradient.output()
        self._call("tarn_attention_backward", arrays, saved)

    def step(self, states: Sequence[int], y: Strided, inputs: Sequence[Strided]) -> None:
        """The next position of each state."""
        work = scratch(self._work_size)
        with self.handle.use() as plan:
            call("tarn_attention_step", plan, c.byref(self._arrays(inputs, y, None)),
                 (c.c_void_p * len(states))(*states), len(states), work.ctypes.data)

    @staticmethod
    def _arrays(inputs: Sequence[Strided], y: Strided,
                lengths: Lengths) -> s.tarn_attention_arrays:
        arrays = s.tarn_attention_arrays(
            y=y.output(), key_lengths=None if lengths is None else lengths.ctypes.data)
        placed = getattr(arrays, "in")
        for i, one in enumerate(inputs):
            placed[i] = one.input()
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
