# SPDX-License-Identifier: MIT
"""Attention on NumPy arrays (B, H, N, D).

Arrays are read in place, by their strides: a transposed view needs no copy. Arrays that are not
f32, or not contiguous in the last dimension, are converted."""
from __future__ import annotations

import ctypes as c
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from ._arrays import (Floats, Strided, address_of, chosen_rows, empty, floats, heads_first,
                      lengths_of, one_position, only_heads, plain)
from ._errors import FormatError, InvalidArgument
from ._inputs import Layout, Sizes, arranged, checked, inputs_of, known_sizes
from ._library import Alone, count, seed_of, text, threads_of
from ._plan import Desc, DotProduct, Lengths, Plan, States, plan_of, scratch

Gradients = Tuple[Optional[Floats], ...]

_ARGUMENTS = {"query": "q", "key": "k", "value": "v"}
_SEQUENCES = Layout(_ARGUMENTS, {"S": "Nk"}, "BHN")
_POSITION = Layout(_ARGUMENTS, {}, "BH")  # of a step


def kind_name(kind: str) -> str:
    if text("kind", kind) is None:
        raise InvalidArgument('kind is None; it must be a name such as "linear"')
    return kind


def capacity(longest: int, causal: bool) -> int:
    """The checked argument `longest`. Only a causal plan may have more keys than the arrays."""
    most = count("longest", longest)
    if most and not causal:
        raise InvalidArgument(f"longest is {most}; it must be 0 without a causal mask, where "
                              "attention has no state")
    return most


def _placed(kind: str, arrays: Dict[str, Floats],
            place: Callable[[Floats], Strided] = heads_first) -> List[Strided]:
    """Where the inputs of a kind lie, or their gradients."""
    return [only_heads(arrays[one.name]) if one.parameter else place(arrays[one.name])
            for one in inputs_of(kind)]


class _Call:
    """The checked arrays of one call, and the plan for them."""

    def __init__(self, inputs: Dict[str, Any], kind: str, causal: bool,
                 feature_map: Optional[str], lengths: Any, state: Any, longest: int, seed: int,
                 threads: int) -> None:
        self.kind, causal = kind_name(kind), bool(causal)
        self.inputs, sizes = arranged(self.kind, causal, inputs, _SEQUENCES, floats, known_sizes)
        self.lengths: Lengths = lengths_of("lengths", lengths, sizes.B, sizes.S)
        self.plan: Plan = plan_of(Desc(
            self.kind.encode(), text("feature_map", feature_map), causal, sizes.B, sizes.H,
            sizes.N, capacity(longest, causal) or sizes.S, sizes.D, sizes.M, seed_of(seed),
            threads_of(threads)))
        self.state: Optional[Floats] = None if state is None else plain(
            floats("state", state, "BS", (sizes.B, self.plan.state_size // 4)), np.float32)

    def empty_states(self) -> Floats:
        if self.plan.state_size == 0:
            raise InvalidArgument(f"kind: '{self.kind}' has no recurrent form, and no "
                                  "state, unless it is causal; use \"linear\" or \"softmax\"")
        return empty((self.plan.desc.batch, self.plan.state_size // 4))

    def forward(self, saved: Optional["np.ndarray[Any, np.dtype[np.uint8]]"],
                after: Optional[Floats]) -> Floats:
        d = self.plan.desc
        y = empty((d.batch, d.heads, d.queries, d.value_width))
        self.plan.forward(heads_first(y), _placed(self.kind, self.inputs), self.lengths,
                          address_of(saved),
                          States(address_of(self.state), address_of(after)))
        return y


def attention(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
              feature_map: Optional[str] = None, lengths: Any = None, *, state: Any = None,
              return_state: bool = False, longest: int = 0, seed: int = 0,
              threads: int = 0, **inputs: Any) -> Any:
    """Attention of q (B, H, N, D), k (B, H, Nk, D) and v (B, H, Nk, M): y (B, H, N, M).

    kind: a name of attention_kinds(), with options after a colon: "softmax:scale=0.5". "lsh"
    uses its queries as keys: pass None for k. inputs: those that attention_inputs(kind) lists
    after these three, by name. feature_map: a name of feature_maps(); None: "elu" for kinds with
    a feature map. causal: position i attends only to keys up to i; requires N = Nk. lengths: B
    whole numbers, the number of keys of each sequence; the output is 0 for queries without keys.
    threads: 0 for all cores.

    state: f32 (B, S), where causal sequences continue from; return_state=True returns (y, state)
    with the states after them. Zeros are the start; the floats are numbers of the attention,
    except for the first 16 of each row. With either, the result is bit-identical to that of
    single steps. longest: maximum number of positions of a sequence, for kinds whose state grows
    ("softmax", "kernel")."""
    made = _Call(dict(query=q, key=k, value=v, **inputs), kind, causal, feature_map, lengths,
                 state, longest, seed, threads)
    after = made.empty_states() if return_state else None
    y = made.forward(None, after)
    return (y, after) if return_state else y


def attention_vjp(q: Any, k: Any, v: Any, kind: str = "linear", causal: bool = True,
                  feature_map: Optional[str] = None, lengths: Any = None, *, state: Any = None,
                  return_state: bool = False, longest: int = 0, seed: int = 0,
                  threads: int = 0, **inputs: Any) -> Tuple[Any, Callable[..., Any]]:
    """The result of attention(), and a function that computes (dq, dk, dv) from dy.

    Do not change the arrays until that function has been called for the last time. dk is None
    if k is; gradients of further inputs follow dv, in the order of attention_inputs(kind). With
    a state or return_state=True, that function is backward(dy, dstate=None), where dstate is the
    gradient of the returned states, and the gradient of the given ones comes last."""
    made = _Call(dict(query=q, key=k, value=v, **inputs), kind, causal, feature_map, lengths,
                 state, longest, seed, threads)
    plan = made.plan
    has_states = return_state or made.state is not None
    after = made.empty_states() if return_state else None
    saved = scratch(plan.saved_size)
    y = made.forward(saved, after)

    def backward(dy: Any, dstate: Any = None) -> Any:
        g = floats("dy", dy, "BHNM", y.shape)
        gradients = {name: empty(x.shape) for name, x in made.inputs.items()}
        given = None if dstate is None else plain(
            floats("dstate", dstate, "BS", made.empty_states().shape), np.float32)
        before = made.empty_states() if has_states else None
        plan.backward(_placed(made.kind, gradients), _placed(made.kind, made.inputs),
                      heads_first(y), heads_first(g), made.lengths, saved.ctypes.data,
                      address_of(made.state), States(address_of(before), address_of(given)))
        first = tuple(gradients.pop(name, None) for name in _ARGUMENTS)
        return first + tuple(gradients.values()) + ((before,) if has_states else ())

    return (y, after) if return_state else y, backward


def attention_backward(dy: Any, q: Any, k: Any, v: Any, kind: str = "linear",
                       causal: bool = True, feature_map: Optional[str] = None,
                       lengths: Any = None, *, seed: int = 0, threads: int = 0,
                       **inputs: Any) -> Gradients:
    """(dq, dk, dv), and the gradients of further inputs, of a loss whose gradient with respect to
    attention(q, k, v, ...) is dy."""
    found: Gradients = attention_vjp(q, k, v, kind, causal, feature_map, lengths, seed=seed,
                                     threads=threads, **inputs)[1](dy)
    return found


def attention_inputs(kind: str) -> Dict[str, str]:
    """The inputs of a kind in order, with their dimensions: "BHND", or "HM" for a parameter, which
    has one row for each head."""
    return {place.name: "".join(place.written) for place in _SEQUENCES.places(kind_name(kind))}


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
        width = count("query_width", query_width)
        keys = count("longest", longest) or 1
        self._plan = plan_of(Desc(
            kind_name(kind).encode(), text("feature_map", feature_map), True, count("batch", batch),
            count("heads", heads), keys, keys, width,
            width if value_width is None else count("value_width", value_width), seed_of(seed),
            threads_of(threads)))
        if self._plan.state_size == 0:
            raise InvalidArgument(f"kind: '{kind}' has no recurrent form; use \"linear\" or "
                                  "\"softmax\"")
        longer = plan_of(self._plan.desc._replace(queries=keys + 1, keys=keys + 1))
        self._endless = longer.state_size == self._plan.state_size
        if longest == 0 and not self._endless:
            raise InvalidArgument(f"longest is 0; it must be the maximum number of positions, "
                                  f"because the state of '{kind}' grows")
        self._lock = threading.Lock()
        self._hold(np.zeros((self._plan.desc.batch, self._plan.state_size), np.uint8))
        self._feature_map: Any = None  # of torch's, as drawn for this sequence

    def _hold(self, memory: Any) -> None:
        self._memory = memory
        self._rows = (c.c_void_p * len(memory))(*(row.ctypes.data for row in memory))

    def _sizes(self, positions: int) -> Sizes:
        d = self._plan.desc
        return Sizes(len(self), d.heads, positions, positions, d.query_width, d.value_width)

    def step(self, q: Any, k: Any, v: Any, **inputs: Any) -> Floats:
        """Processes the next position: q, k (B, H, D) and v (B, H, M) give y (B, H, M)."""
        kind, sizes = self._plan.desc.kind.decode(), self._sizes(1)
        given = checked(kind, dict(query=q, key=k, value=v, **inputs), sizes, _POSITION, floats)
        y = empty((sizes.B, sizes.H, sizes.M))
        with Alone(self._lock):
            self._plan.step(self._rows, one_position(y), _placed(kind, given, one_position))
        return y

    def forward(self, q: Any, k: Any, v: Any, **inputs: Any) -> Floats:
        """Processes the next N positions at once: q, k (B, H, N, D) and v (B, H, N, M) give
        y (B, H, N, M). Outputs and state are those of N steps, bit for bit."""
        d, kind = self._plan.desc, self._plan.desc.kind.decode()
        sizes = self._sizes(floats("q", q, "BHND").shape[2])
        given = checked(kind, dict(query=q, key=k, value=v, **inputs), sizes, _SEQUENCES, floats)
        y = empty(sizes.shape("BHNM"))
        if sizes.N == 0 or sizes.B == 0:
            return y
        keys = max(d.keys, sizes.N) if self._endless else d.keys
        plan = plan_of(d._replace(queries=sizes.N, keys=keys))
        with Alone(self._lock):
            place = self._memory.ctypes.data
            plan.forward(heads_first(y), _placed(kind, given), None, None,
                         States(place, place))
        return y

    def reset(self) -> None:
        with Alone(self._lock):
            self._memory[:] = 0

    def copy(self) -> "AttentionState":
        """An independent copy of the state."""
        return self[:]

    def __len__(self) -> int:
        return len(self._memory)

    def __getitem__(self, sequences: Any) -> "AttentionState":
        """A copy of some sequences: state[2], state[1:], state[[0, 0, 3]], state[mask]."""
        chosen = chosen_rows("sequences", len(self), sequences)
        with Alone(self._lock):
            memory = self._memory[chosen]
        other = object.__new__(AttentionState)
        other.__setstate__(dict(self.__getstate__(), _memory=memory))
        return other

    def __getstate__(self) -> Dict[str, Any]:
        """For pickle and copy.deepcopy()."""
        return dict(_desc=self._plan.desc, _endless=self._endless, _memory=self._memory.copy(),
                    _feature_map=self._feature_map)

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._hold(state["_memory"])
        self._endless = state["_endless"]
        self._feature_map = state["_feature_map"]
        self._plan = plan_of(state["_desc"]._replace(batch=max(len(self._memory), 1)))
        self._lock = threading.Lock()

    def to_bytes(self) -> bytes:
        with Alone(self._lock):
            return bytes(self._memory.tobytes())

    def load_bytes(self, data: bytes) -> None:
        """Restores a snapshot of to_bytes() from a state with the same arguments."""
        if len(data) != self._memory.size:
            raise FormatError(f"data has {len(data)} bytes; it must have {self._memory.size}")
        with Alone(self._lock):
            self._memory[:] = np.frombuffer(data, np.uint8).reshape(self._memory.shape)
