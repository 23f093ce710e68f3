# SPDX-License-Identifier: MIT
"""Attention on NumPy arrays (B, H, N, D).

Arrays are read in place, by their strides: a transposed view needs no copy. Arrays that are not
f32, or not contiguous in the last dimension, are converted."""
from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from ._arrays import (Floats, empty, floats, heads_first, lengths_of, one_position,
                      positions_of)
from ._errors import FormatError, InvalidArgument
from ._library import Alone, count, seed_of, text, threads_of
from ._plan import Desc, DotProduct, Lengths, Plan, inputs_of, plan_of, scratch

Gradients = Tuple[Floats, Optional[Floats], Floats]


def _kind(kind: str) -> bytes:
    encoded = text("kind", kind)
    if encoded is None:
        raise InvalidArgument('kind is None; it must be a name such as "linear"')
    return encoded


class _Call:
    """The checked arrays of one call, and the plan for them."""

    def __init__(self, q: Any, k: Any, v: Any, kind: str, causal: bool,
                 feature_map: Optional[str], lengths: Any, seed: int, threads: int) -> None:
        named = _kind(kind)
        has_keys = "key" in inputs_of(named)
        self.q = floats("q", q, "BHND")
        B, H, N, D = self.q.shape
        self.v = floats("v", v, "BHNM")
        M, keys = self.v.shape[3], self.v.shape[2]
        self.k: Optional[Floats] = None
        if has_keys:
            self.k = floats("k", k, "BHND")
            keys = positions_of(causal, N, self.k.shape[2], keys)
            floats("k", self.k, "BHND", (B, H, keys, D))
        elif k is not None:
            raise InvalidArgument(f"k must be None: '{kind}' attention uses its queries as "
                                  "keys")
        floats("v", self.v, "BHNM", (B, H, keys, M))
        self.lengths: Lengths = lengths_of("lengths", lengths, B, keys)
        self.plan: Plan = plan_of(Desc(
            named, text("feature_map", feature_map), bool(causal), B, H, N, keys, D, M,
            seed_of(seed), threads_of(threads)))

    def inputs(self) -> List[Floats]:
        return [self.q, self.v] if self.k is None else [self.q, self.k, self.v]

    def forward(self, saved: Optional["np.ndarray[Any, np.dtype[np.uint8]]"]) -> Floats:
        d = self.plan.desc
        y = empty((d.batch, d.heads, d.queries, d.value_width))
        self.plan.forward(heads_first(y), [heads_first(x) for x in self.inputs()],
                          self.lengths, None if saved is None else saved.ctypes.data)
        return y


def attention(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
              feature_map: Optional[str] = None, lengths: Any = None, *, seed: int = 0,
              threads: int = 0) -> Floats:
    """Attention of q (B, H, N, D), k (B, H, Nk, D) and v (B, H, Nk, M): y (B, H, N, M).

    kind: a name of attention_kinds(), with options after a colon: "softmax:scale=0.5". "lsh"
    uses its queries as keys: pass None for k. feature_map: a name of feature_maps(); None: "elu"
    for kinds with a feature map. causal: position i attends only to keys up to i; requires
    N = Nk. lengths: B whole numbers, the number of keys of each sequence; the output is 0 for
    queries without keys. threads: 0 for all cores."""
    return _Call(q, k, v, kind, causal, feature_map, lengths, seed, threads).forward(None)


def attention_vjp(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
                  feature_map: Optional[str] = None, lengths: Any = None, *, seed: int = 0,
                  threads: int = 0) -> Tuple[Floats, Callable[[Any], Gradients]]:
    """The result of attention(), and a function that computes (dq, dk, dv) from dy.

    Do not change the arrays until that function has been called for the last time. dk is None
    if k is."""
    made = _Call(q, k, v, kind, causal, feature_map, lengths, seed, threads)
    plan = made.plan
    saved = scratch(plan.saved_size)
    y = made.forward(saved)

    def backward(dy: Any) -> Gradients:
        g = floats("dy", dy, "BHNM", y.shape)
        inputs = made.inputs()
        gradients = [empty(x.shape) for x in inputs]
        plan.backward([heads_first(dx) for dx in gradients], [heads_first(x) for x in inputs],
                      heads_first(y), heads_first(g), made.lengths, saved.ctypes.data)
        return gradients[0], None if made.k is None else gradients[1], gradients[-1]

    return y, backward


def attention_backward(dy: Any, q: Any, k: Any, v: Any, kind: str = "linear",
                       causal: bool = True, feature_map: Optional[str] = None,
                       lengths: Any = None, *, seed: int = 0, threads: int = 0) -> Gradients:
    """(dq, dk, dv) of a loss whose gradient with respect to attention(q, k, v, ...) is dy."""
    return attention_vjp(q, k, v, kind, causal, feature_map, lengths, seed=seed,
                         threads=threads)[1](dy)


# ---- Causal dot product ---------------------------------------------------------


def _dot_arrays(q: Any, k: Any, v: Any) -> Tuple[Floats, Floats, Floats]:
    q = floats("q", q, "BHND")
    v = floats("v", v, "BHNM")
    return (q, floats("k", k, "BHND", q.shape),
            floats("v", v, "BHNM", q.shape[:3] + v.shape[3:]))


def _dot_product(q: Floats, v: Floats, threads: int) -> DotProduct:
    B, H, N, D = q.shape
    return DotProduct(B, H, N, D, v.shape[3], threads_of(threads))


def causal_dot_product(q: Any, k: Any, v: Any, *, threads: int = 0) -> Floats:
    """y_i = q_i^T sum_{j <= i} k_j v_j^T, arrays (B, H, N, D) and (B, H, N, M): the numerator of
    (8), for q and k to which a feature map has already been applied."""
    q, k, v = _dot_arrays(q, k, v)
    y = empty(v.shape)
    _dot_product(q, v, threads).forward(heads_first(y), heads_first(q), heads_first(k),
                                        heads_first(v))
    return y


def causal_dot_product_backward(dy: Any, q: Any, k: Any, v: Any, *,
                                threads: int = 0) -> Tuple[Floats, Floats, Floats]:
    """The gradients (dq, dk, dv), by (13), (14) and (15)."""
    q, k, v = _dot_arrays(q, k, v)
    g = floats("dy", dy, "BHNM", v.shape)
    dq, dk, dv = (empty(a.shape) for a in (q, k, v))
    _dot_product(q, v, threads).backward(
        heads_first(dq), heads_first(dk), heads_first(dv), heads_first(q), heads_first(k),
        heads_first(v), heads_first(g))
    return dq, dk, dv


# ---- Step by step ---------------------------------------------------------------


class AttentionState:
    """Causal attention as a recurrent network, (16)-(20): one position at a time.

    longest: maximum number of positions, for kinds whose state grows ("softmax", "kernel"). The
    state of "linear" has a constant size and needs no maximum. One thread at a time."""

    def __init__(self, batch: int, heads: int, query_width: int,
                 value_width: Optional[int] = None, kind: str = "linear",
                 feature_map: Optional[str] = None, *, longest: int = 0, seed: int = 0,
                 threads: int = 0) -> None:
        named = _kind(kind)
        if longest == 0 and named.split(b":")[0] != b"linear":
            raise InvalidArgument(f"longest is 0; it must be the maximum number of positions, "
                                  f"because the state of '{kind}' grows")
        width = count("query_width", query_width)
        keys = count("longest", longest) or 1
        self._plan = plan_of(Desc(
            named, text("feature_map", feature_map), True, count("batch", batch),
            count("heads", heads), keys, keys, width,
            width if value_width is None else count("value_width", value_width), seed_of(seed),
            threads_of(threads)))
        if self._plan.state_size == 0:
            raise InvalidArgument(f"kind: '{kind}' has no recurrent form; use \"linear\" or "
                                  "\"softmax\"")
        self._lock = threading.Lock()
        self._memory = np.zeros((self._plan.desc.batch, self._plan.state_size), np.uint8)
        self._feature_map: Any = None  # of torch's, as drawn for this sequence

    def step(self, q: Any, k: Any, v: Any) -> Floats:
        """Processes the next position: q, k (B, H, D) and v (B, H, M) give y (B, H, M)."""
        d = self._plan.desc
        q = floats("q", q, "BHD", (d.batch, d.heads, d.query_width))
        k = floats("k", k, "BHD", q.shape)
        v = floats("v", v, "BHM", (d.batch, d.heads, d.value_width))
        y = empty(v.shape)
        with Alone(self._lock):
            self._plan.step([row.ctypes.data for row in self._memory], one_position(y),
                            [one_position(x) for x in (q, k, v)])
        return y

    def reset(self) -> None:
        with Alone(self._lock):
            self._memory[:] = 0

    def copy(self) -> "AttentionState":
        """An independent copy of the state."""
        other = object.__new__(AttentionState)
        other._plan, other._lock = self._plan, threading.Lock()
        other._feature_map = self._feature_map
        with Alone(self._lock):
            other._memory = self._memory.copy()
        return other

    def to_bytes(self) -> bytes:
        with Alone(self._lock):
            return self._memory.tobytes()

    def load_bytes(self, data: bytes) -> None:
        """Restores a snapshot of to_bytes() from a state with the same arguments."""
        if len(data) != self._memory.size:
            raise FormatError(f"data has {len(data)} bytes; it must have {self._memory.size}")
        with Alone(self._lock):
            self._memory[:] = np.frombuffer(data, np.uint8).reshape(self._memory.shape)
