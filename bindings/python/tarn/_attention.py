# SPDX-License-Identifier: MIT
"""Attention on NumPy arrays (B, H, N, D).

Arrays are read in place, by their strides: a transposed view needs no copy. Arrays that are not
f32, or not contiguous in the last dimension, are converted."""
from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from ._arrays import (Floats, address_of, empty, floats, heads_first, lengths_of,
                      one_position, plain, positions_of)
from ._errors import FormatError, InvalidArgument
from ._library import Alone, count, seed_of, text, threads_of
from ._plan import Desc, DotProduct, Lengths, Plan, States, inputs_of, plan_of, scratch

Gradients = Tuple[Floats, Optional[Floats], Floats]


def _kind(kind: str) -> bytes:
    encoded = text("kind", kind)
    if encoded is None:
        raise InvalidArgument('kind is None; it must be a name such as "linear"')
    return encoded


class _Call:
    """The checked arrays of one call, and the plan for them."""

    def __init__(self, q: Any, k: Any, v: Any, kind: str, causal: bool,
                 feature_map: Optional[str], lengths: Any, state: Any, longest: int, seed: int,
                 threads: int) -> None:
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
        if causal and keys != N:
            raise InvalidArgument(f"keys is {keys} and queries is {N}; causal attention needs "
                                  "them equal")
        self.lengths: Lengths = lengths_of("lengths", lengths, B, keys)
        self.plan: Plan = plan_of(Desc(
            named, text("feature_map", feature_map), bool(causal), B, H, N,
            count("longest", longest) or keys, D, M, seed_of(seed), threads_of(threads)))
        self.state: Optional[Floats] = None if state is None else plain(
            floats("state", state, "BS", (B, self.plan.state_size // 4)), np.float32)

    def inputs(self) -> List[Floats]:
        return [self.q, self.v] if self.k is None else [self.q, self.k, self.v]

    def empty_states(self) -> Floats:
        if self.plan.state_size == 0:
            kind = self.plan.desc.kind.decode()
            raise InvalidArgument(f"kind: '{kind}' has no recurrent form, and no state, unless "
                                  "it is causal; use \"linear\" or \"softmax\"")
        return empty((self.plan.desc.batch, self.plan.state_size // 4))

    def forward(self, saved: Optional["np.ndarray[Any, np.dtype[np.uint8]]"],
                after: Optional[Floats]) -> Floats:
        d = self.plan.desc
        y = empty((d.batch, d.heads, d.queries, d.value_width))
        self.plan.forward(heads_first(y), [heads_first(x) for x in self.inputs()],
                          self.lengths, None if saved is None else saved.ctypes.data,
                          States(address_of(self.state), address_of(after)))
        return y


def attention(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
              feature_map: Optional[str] = None, lengths: Any = None, *, state: Any = None,
              return_state: bool = False, longest: int = 0, seed: int = 0,
              threads: int = 0) -> Any:
    """Attention of q (B, H, N, D), k (B, H, Nk, D) and v (B, H, Nk, M): y (B, H, N, M).

    kind: a name of attention_kinds(), with options after a colon: "softmax:scale=0.5". "lsh"
    uses its queries as keys: pass None for k. feature_map: a name of feature_maps(); None: "elu"
    for kinds with a feature map. causal: position i attends only to keys up to i; requires
    N = Nk. lengths: B whole numbers, the number of keys of each sequence; the output is 0 for
    queries without keys. threads: 0 for all cores.

    state: f32 (B, S), where causal sequences go on from; return_state=True returns (y, state)
    with the states after them. Zeros are the start; the floats are numbers of the attention,
    except for the first 16 of each row. With either, the result is bit-identical to that of
    single steps. longest: maximum number of positions of a sequence, for kinds whose state grows
    ("softmax", "kernel")."""
    made = _Call(q, k, v, kind, causal, feature_map, lengths, state, longest, seed, threads)
    after = made.empty_states() if return_state else None
    y = made.forward(None, after)
    return (y, after) if return_state else y


def attention_vjp(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
                  feature_map: Optional[str] = None, lengths: Any = None, *, state: Any = None,
                  return_state: bool = False, longest: int = 0, seed: int = 0,
                  threads: int = 0) -> Tuple[Any, Callable[..., Any]]:
    """The result of attention(), and a function that computes (dq, dk, dv) from dy.

    Do not change the arrays until that function has been called for the last time. dk is None
    if k is. With a state or return_state=True, that function is backward(dy, dstate=None), where
    dstate is the gradient of the returned states, and returns (dq, dk, dv, dstate0)."""
    made = _Call(q, k, v, kind, causal, feature_map, lengths, state, longest, seed, threads)
    plan = made.plan
    has_states = return_state or made.state is not None
    after = made.empty_states() if return_state else None
    saved = scratch(plan.saved_size)
    y = made.forward(saved, after)

    def backward(dy: Any, dstate: Any = None) -> Any:
        g = floats("dy", dy, "BHNM", y.shape)
        inputs = made.inputs()
        gradients = [empty(x.shape) for x in inputs]
        given = None if dstate is None else plain(
            floats("dstate", dstate, "BS", made.empty_states().shape), np.float32)
        before = made.empty_states() if has_states else None
        plan.backward([heads_first(dx) for dx in gradients], [heads_first(x) for x in inputs],
                      heads_first(y), heads_first(g), made.lengths, saved.ctypes.data,
                      address_of(made.state), States(address_of(before), address_of(given)))
        found = (gradients[0], None if made.k is None else gradients[1], gradients[-1])
        return found + (before,) if has_states else found

    return (y, after) if return_state else y, backward


def attention_backward(dy: Any, q: Any, k: Any, v: Any, kind: str = "linear",
                       causal: bool = True, feature_map: Optional[str] = None,
                       lengths: Any = None, *, seed: int = 0, threads: int = 0) -> Gradients:
    """(dq, dk, dv) of a loss whose gradient with respect to attention(q, k, v, ...) is dy."""
    found: Gradients = attention_vjp(q, k, v, kind, causal, feature_map, lengths, seed=seed,
                                     threads=threads)[1](dy)
    return found


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
        self._endless = named.split(b":")[0] == b"linear"
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

    def forward(self, q: Any, k: Any, v: Any) -> Floats:
        """Processes the next N positions at once: q, k (B, H, N, D) and v (B, H, N, M) give
        y (B, H, N, M). Outputs and state are those of N steps, bit for bit."""
        d = self._plan.desc
        q = floats("q", q, "BHND", (d.batch, d.heads) + np.shape(q)[2:3] + (d.query_width,))
        k = floats("k", k, "BHND", q.shape)
        v = floats("v", v, "BHNM", q.shape[:3] + (d.value_width,))
        N = q.shape[2]
        y = empty(v.shape)
        if N == 0:
            return y
        plan = plan_of(d._replace(queries=N, keys=max(d.keys, N) if self._endless else d.keys))
        with Alone(self._lock):
            place = self._memory.ctypes.data
            plan.forward(heads_first(y), [heads_first(x) for x in (q, k, v)], None, None,
                         States(place, place))
        return y

    def reset(self) -> None:
        with Alone(self._lock):
            self._memory[:] = 0

    def copy(self) -> "AttentionState":
        """An independent copy of the state."""
        other = object.__new__(AttentionState)
        other._plan, other._lock = self._plan, threading.Lock()
        other._endless = self._endless
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
