# SPDX-License-Identifier: MIT
"""Modules with the constructors and calls of the attentions of fast_transformers.

Not supported, and refused with an error: dropout of attention weights, masks other than full and
causal ones, and an event_dispatcher."""
from __future__ import annotations

import copy
from typing import Any, Callable, Optional, Tuple, Union

import torch
from torch import nn

from .._attention import AttentionState
from .._errors import InvalidArgument
from .._library import Alone, number, text
from ._exact import ExactState
from ._functions import attention
from ._masks import Seen, lengths_of, seen_by
from ._operators import threads_now
from ._tensors import check_all, floats, one_position, placed, wants_grad

_SEQUENCES = (("queries", "NLHE"), ("keys", "NSHE"), ("values", "NSHD"))
_POSITION = (("query", "NHE"), ("key", "NHE"), ("value", "NHD"))

State = Union[AttentionState, ExactState]
FeatureMap = Union[None, str, Callable[[torch.Tensor], torch.Tensor], Any]


def _dispatcher(value: Any) -> None:
    if value not in (None, ""):
        raise InvalidArgument('event_dispatcher must be "": events are not supported')


def _map_of(module: nn.Module) -> Any:
    return getattr(module, "feature_map", None)


def _made(feature_map: FeatureMap, width: Optional[int]) -> FeatureMap:
    """The feature map. A fast_transformers factory, such as elu_feature_map or Favor.factory(), is
    a function from the width to the map; a function of tensors fails on a number."""
    if width is None or not callable(feature_map) or isinstance(feature_map, nn.Module):
        return feature_map
    try:
        made = feature_map(width)  # type: ignore[arg-type,unused-ignore]
    except Exception:
        return feature_map
    return made if hasattr(made, "forward_queries") else feature_map


def _is_random(phi: Any) -> bool:
    """Whether a feature map is redrawn for every sequence, as some of fast_transformers are."""
    return hasattr(phi, "new_feature_map")


class _Base(nn.Module):
    """Base class: an attention kind and, for some, a feature map."""

    kind: str

    def _run(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
             causal: bool, key_lengths: Any) -> torch.Tensor:
        phi = _map_of(self)
        if _is_random(phi):
            phi.new_feature_map(queries.device)
        q, k, name = self._mapped(queries, keys, phi)
        lengths = lengths_of("key_lengths", key_lengths, keys.shape[0], keys.shape[1])
        y: torch.Tensor = attention(q, k, values, self.kind, causal, name, lengths)
        return y

    def _mapped(self, queries: torch.Tensor, keys: torch.Tensor,
                phi: Any) -> Tuple[torch.Tensor, torch.Tensor, Optional[str]]:
        """Both through a feature map of torch's, or the name of one of the library's."""
        return queries, keys, None

    def extra_repr(self) -> str:
        return self.kind


class _Linear(_Base):
    """feature_map: a name such as "elu" or "positive:features=64"; a torch function on (..., E)
    with positive values, differentiated by torch; an object with forward_queries() and
    forward_keys(); or a fast_transformers factory of one. None: "elu"."""

    def __init__(self, query_dimensions: Optional[int] = None, feature_map: FeatureMap = None,
                 eps: float = 1e-6, event_dispatcher: Any = "") -> None:
        super().__init__()
        _dispatcher(event_dispatcher)
        if feature_map is not None and not isinstance(feature_map, str) and not callable(
                feature_map) and not hasattr(feature_map, "forward_queries"):
            raise InvalidArgument(f"feature_map is {type(feature_map).__name__}; it must be a "
                                  "name, a function or None")
        self.query_dimensions = query_dimensions
        self.feature_map = _made(feature_map, query_dimensions)
        self.kind = f"linear:eps={number('eps', eps)!r}"

    def _mapped(self, queries: torch.Tensor, keys: torch.Tensor,
                phi: Any) -> Tuple[torch.Tensor, torch.Tensor, Optional[str]]:
        width = self.query_dimensions
        if width is not None and queries.shape[-1] != width:
            raise InvalidArgument(f"queries: have width {queries.shape[-1]}; it must be "
                                  f"query_dimensions, {width}")
        if phi is None or isinstance(phi, str):
            return queries, keys, phi
        if hasattr(phi, "forward_queries"):
            return phi.forward_queries(queries), phi.forward_keys(keys), "identity"
        return phi(queries), phi(keys), "identity"


class LinearAttention(_Linear):
    """Linear attention without a causal mask, (4)-(6)."""

    def forward(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
                attn_mask: Any = None, query_lengths: Any = None,
                key_lengths: Any = None) -> torch.Tensor:
        """Returns (N, L, H, D). query_lengths are ignored: outputs past them are undefined."""
        check_all(_SEQUENCES, queries, keys, values)
        if not seen_by(attn_mask, queries.shape[1], keys.shape[1]).full:
            raise InvalidArgument("attn_mask masks keys; it must be full or None: use "
                                  "CausalLinearAttention for a causal mask")
        return self._run(queries, keys, values, False, key_lengths)


class CausalLinearAttention(_Linear):
    """Causal linear attention, (8)-(12)."""

    def forward(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
                attn_mask: Any = None, query_lengths: Any = None,
                key_lengths: Any = None) -> torch.Tensor:
        """As LinearAttention; attn_mask None means a causal mask."""
        check_all(_SEQUENCES, queries, keys, values)
        seen = Seen(False, True) if attn_mask is None else seen_by(
            attn_mask, queries.shape[1], keys.shape[1])
        if not seen.causal:
            raise InvalidArgument("attn_mask is full; it must be lower triangular or None")
        return self._run(queries, keys, values, True, key_lengths)


def _softmax_kind(softmax_temp: Optional[float], attention_dropout: float,
                  event_dispatcher: Any) -> str:
    _dispatcher(event_dispatcher)
    if number("attention_dropout", attention_dropout) != 0:
        raise InvalidArgument(f"attention_dropout is {attention_dropout}; it must be 0: dropout of "
                              "attention weights is not supported")
    if softmax_temp is None:
        return "softmax"
    if not number("softmax_temp", softmax_temp) > 0:
        raise InvalidArgument(f"softmax_temp is {softmax_temp}; it must be above 0")
    return f"softmax:scale={float(softmax_temp)!r}"


class FullAttention(_Base):
    """Softmax attention (2), computed in tiles: the N x N matrix is never stored. softmax_temp:
    factor of q.k; None: 1 / sqrt(E)."""

    def __init__(self, softmax_temp: Optional[float] = None, attention_dropout: float = 0.0,
                 event_dispatcher: Any = "") -> None:
        super().__init__()
        self.kind = _softmax_kind(softmax_temp, attention_dropout, event_dispatcher)

    def forward(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor,
                attn_mask: Any = None, query_lengths: Any = None,
                key_lengths: Any = None) -> torch.Tensor:
        """As LinearAttention; causal if attn_mask is lower triangular."""
        check_all(_SEQUENCES, queries, keys, values)
        seen = seen_by(attn_mask, queries.shape[1], keys.shape[1])
        return self._run(queries, keys, values, not seen.full, key_lengths)


# ---- Step by step ---------------------------------------------------------------


def _step(state: AttentionState, q: torch.Tensor, k: torch.Tensor,
          v: torch.Tensor) -> torch.Tensor:
    d = state._plan.desc
    q = placed(floats("query", q, "NHE", (len(state), d.heads, d.query_width)))
    k = placed(floats("key", k, "NHE", tuple(q.shape)))
    v = placed(floats("value", v, "NHD", (len(state), d.heads, d.value_width)))
    y = torch.empty(v.shape)
    with Alone(state._lock):
        state._plan.step(state._rows, one_position(y),
                         [one_position(x) for x in (q, k, v)])
    return y


def _made_by(state: State) -> Tuple[bytes, Optional[bytes]]:
    """Kind and feature map."""
    if isinstance(state, AttentionState):
        return state._plan.desc[:2]
    return state.kind.encode(), text("feature_map", state.feature_map)


class _Recurrent:
    """What both recurrent modules share."""

    @staticmethod
    def _map_for(module: _Base, state: Optional[State], device: torch.device) -> Any:
        """The feature map of a sequence. A random one is drawn at the start and copied into the
        state, because the module may draw another for a new sequence before this one ends."""
        phi = _map_of(module)
        if not _is_random(phi):
            return phi
        if state is not None:
            return state._feature_map
        phi.new_feature_map(device)
        return copy.deepcopy(phi)

    def _advance(self, module: _Base, query: torch.Tensor, key: torch.Tensor,
                 value: torch.Tensor, state: Optional[State], memory: Any,
                 longest: int) -> Tuple[torch.Tensor, State]:
        if memory is not None:  # what fast_transformers called a state before
            if state is not None:
                raise InvalidArgument("state and memory are both given; give only one of them")
            state = memory
        exact = check_all(_POSITION, query, key, value)
        if state is not None and not isinstance(state, ExactState if exact else AttentionState):
            raise InvalidArgument(f"state is {type(state).__name__}; it must be None or what an "
                                  "earlier call with such tensors returned")
        phi = self._map_for(module, state, query.device)
        q, k, feature_map = module._mapped(query, key, phi)
        if not exact and wants_grad(query, key, value, q, k):  # a feature map may have parameters
            raise InvalidArgument("query, key and value must not require gradients: a step has "
                                  "none; use torch.no_grad(), the parallel form, or float64")
        if state is None:
            state = self._begun(module.kind, feature_map, longest, exact, q, value)
            state._feature_map = phi if _is_random(phi) else None
        elif (_made_by(state) != (module.kind.encode(), text("feature_map", feature_map))
              or _is_random(state._feature_map) != _is_random(_map_of(module))):
            raise InvalidArgument("state was created by another kind of attention; it must be "
                                  "one of this module")
        y = (state.step(q, k, value) if isinstance(state, ExactState)
             else _step(state, q, k, value))
        return (y if y.dtype == query.dtype else y.to(query.dtype)), state

    @staticmethod
    def _begun(kind: str, feature_map: Optional[str], longest: int, exact: bool, q: torch.Tensor,
               value: torch.Tensor) -> State:
        if exact:
            return ExactState(kind, feature_map, longest)
        state = AttentionState(max(len(q), 1), q.shape[1], q.shape[2], value.shape[2], kind,
                               feature_map, longest=longest, threads=threads_now(-1))
        return state if len(q) else state[:0]


class RecurrentLinearAttention(_Linear, _Recurrent):
    """Linear attention as a recurrent network, (16)-(20), with a state of constant size."""

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                state: Optional[State] = None,
                memory: Any = None) -> Tuple[torch.Tensor, State]:
        """Processes one position: query and key (N, H, E), value (N, H, D). Returns the outputs
        (N, H, D) and the state, which is updated in place; state.copy() takes a snapshot. None
        starts a new sequence."""
        return self._advance(self, query, key, value, state, memory, 0)


class RecurrentFullAttention(_Base, _Recurrent):
    """Softmax attention with a key-value cache of max_length positions."""

    def __init__(self, softmax_temp: Optional[float] = None, attention_dropout: float = 0.0,
                 event_dispatcher: Any = "", *, max_length: int = 2048) -> None:
        super().__init__()
        self.kind = _softmax_kind(softmax_temp, attention_dropout, event_dispatcher)
        self.max_length = max_length

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                state: Optional[State] = None,
                memory: Any = None) -> Tuple[torch.Tensor, State]:
        """As RecurrentLinearAttention."""
        return self._advance(self, query, key, value, state, memory, self.max_length)
