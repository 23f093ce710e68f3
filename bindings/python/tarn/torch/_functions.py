# SPDX-License-Identifier: MIT
"""Attention on torch tensors, with gradients."""
from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from .._arrays import lengths_of
from .._attention import capacity, kind_name
from .._errors import InvalidArgument
from .._inputs import Layout, arranged, known_sizes, sizes_of
from .._library import seed_of, text, threads_of
from . import _exact, _operators
from ._masks import whole_numbers
from ._tensors import doubles, floats, wants_grad

_SEQUENCES = Layout({"query": "queries", "key": "keys", "value": "values"},
                    {"B": "N", "N": "L", "D": "E", "M": "D"}, "BNH")


def _lengths(lengths: Any, batch: int) -> Optional[torch.Tensor]:
    """As a tensor; the operator compares the values with the number of keys."""
    if lengths is None:
        return None
    return whole_numbers("lengths", torch.as_tensor(lengths), batch)


def _signed(seed: int) -> int:
    """Operators take numbers of 64 bits with a sign."""
    return seed - 2**64 if seed >= 2**63 else seed


def attention(queries: torch.Tensor, keys: Optional[torch.Tensor], values: torch.Tensor,
              kind: str = "linear", causal: bool = True, feature_map: Optional[str] = None,
              lengths: Any = None, *, state: Optional[torch.Tensor] = None,
              return_state: bool = False, longest: int = 0, seed: int = 0,
              threads: Optional[int] = None, **inputs: Any) -> Any:
    """tarn.attention() with gradients, for tensors (N, L, H, E). Returns (N, L, H, D), or with
    return_state=True that and the states (N, S). Gradients flow through both states, so that a
    long sequence can be trained in pieces: state.detach() cuts them off.

    float64 tensors are computed by torch in float64, in time and memory quadratic in the length:
    "linear" and "softmax", with the feature maps elu, relu and identity, and without states."""
    named = dict(query=queries, key=keys, value=values, **inputs)
    options = _operators.Options(
        kind_name(kind), None if text("feature_map", feature_map) is None else feature_map,
        bool(causal), capacity(longest, bool(causal)), _signed(seed_of(seed)),
        -1 if threads is None else threads_of(threads))
    if isinstance(queries, torch.Tensor) and queries.dtype == torch.float64:
        if state is not None or return_state:
            raise InvalidArgument("state: float64 attention has no states; use .float()")
        return _in_f64(options, lengths, named)
    operators = _operators.operators(queries)
    given, sizes = arranged(options.kind, options.causal, named, _SEQUENCES, floats,
                            sizes_of if operators is _operators.TRACED else known_sizes)
    tensors = list(given.values())
    if return_state or state is not None:
        state = _state_for(state, tensors, options)
    keep = wants_grad(*tensors, state) or _operators.is_tracing()
    run = operators.attention
    if not keep and operators is not _operators.TRACED and _operators.is_plain():
        run = _operators.attention_forward
    found = run(tensors, state, _lengths(lengths, sizes.B), *options, keep, bool(return_state))
    y: torch.Tensor = found[0]
    y = y if y.dtype == queries.dtype else y.to(queries.dtype)
    return (y, found[2]) if return_state else y


def _in_f64(options: _operators.Options, lengths: Any, inputs: Dict[str, Any]) -> torch.Tensor:
    kind, causal = options.kind, options.causal
    given, sizes = arranged(kind, causal, inputs, _SEQUENCES, doubles)
    found = _lengths(lengths, sizes.B)
    if _operators.has_values():  # what is wrong in f32 is wrong here
        _operators.state_size_of(list(given.values()), options)
        lengths_of("lengths", None if found is None else found.tolist(), sizes.B, sizes.S)
    name, numbers = _exact.options_of(kind)
    if name not in ("linear", "softmax") or not set(numbers) <= {"eps", "scale"}:
        raise InvalidArgument(f"queries: is torch.float64, which '{kind}' attention does not "
                              "support; use .float()")
    q, k, v = given["query"], given["key"], given["value"]
    if name == "softmax":
        return _exact.softmax(q, k, v, causal, found, numbers.get("scale") or None)
    phi = _exact.feature_map_of(options.feature_map)
    return _exact.linear(phi(q), phi(k), v, causal, found, numbers.get("eps", 1e-6))


def _state_for(state: Optional[torch.Tensor], tensors: Any,
               options: _operators.Options) -> Optional[torch.Tensor]:
    size = _operators.state_size_of(tensors, options)
    if size == 0:
        raise InvalidArgument(f"kind: '{options.kind}' has no recurrent form, and no state, "
                              "unless it is causal; use \"linear\" or \"softmax\"")
    return None if state is None else floats("state", state, "NS", (tensors[0].shape[0], size // 4))


def causal_dot_product(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """y_i = Q_i^T sum_{j <= i} K_j V_j^T for tensors (N, H, L, E) and (N, H, L, D), with
    gradients."""
    q = floats("Q", Q, "NHLE")
    k = floats("K", K, "NHLE", tuple(q.shape))
    v = floats("V", V, "NHLD")
    floats("V", V, "NHLD", tuple(q.shape[:3]) + (v.shape[3],))
    y: torch.Tensor = _operators.operators(q).dot_product(q, k, v, -1)
    return y if y.dtype == Q.dtype else y.to(Q.dtype)
