# SPDX-License-Identifier: MIT
"""Autograd functions."""
from __future__ import annotations

from typing import Any, NoReturn, Optional, Tuple

import torch

from .._attention import _kind
from .._arrays import lengths_of, positions_of
from .._errors import InvalidArgument, UnsupportedError
from .._library import count, seed_of, text, threads_of
from .._plan import (Bytes, Desc, DotProduct, Lengths, Plan, States, inputs_of, plan_of,
                     scratch)
from ._tensors import floats, heads_first, placed, positions_first


def wants_grad(*tensors: Optional[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def default_threads() -> int:
    """torch's number of threads, so that torch.set_num_threads() applies here too."""
    return min(torch.get_num_threads(), 1024)


def no_second_derivatives() -> NoReturn:
    """The backward pass of the gradients, which are nodes of the graph with create_graph=True.
    Without it a second derivative would silently be 0 wherever dy does not depend on an input,
    as for a sum of outputs."""
    raise UnsupportedError("tarn.torch: second derivatives of attention are not supported; use a "
                           "loss that does not depend on gradients")


def _address(t: Optional[torch.Tensor]) -> Optional[int]:
    return None if t is None else t.data_ptr()


class _Attention(torch.autograd.Function):
    """Tensors are placed(), so that what is saved is what the graph knows. The states are f32
    (N, S), or None."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: Optional[torch.Tensor], v: torch.Tensor,
                state: Optional[torch.Tensor], plan: Plan, lengths: Lengths, keep: bool,
                return_state: bool) -> Any:
        d = plan.desc
        y = torch.empty((d.batch, d.queries, d.heads, d.value_width), dtype=torch.float32)
        after = torch.empty((d.batch, plan.state_size // 4)) if return_state else None
        saved = scratch(plan.saved_size) if keep else None
        plan.forward(positions_first(y),
                     [positions_first(x) for x in (q, k, v) if x is not None], lengths,
                     None if saved is None else saved.ctypes.data,
                     States(_address(state), _address(after)))
        ctx.plan, ctx.lengths, ctx.saved = plan, lengths, saved
        ctx.save_for_backward(q, k, v, y, state)
        return (y, after) if return_state else y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor,
                 dstate: Optional[torch.Tensor] = None) -> Tuple[Optional[torch.Tensor], ...]:
        q, k, v, y, state = ctx.saved_tensors
        given = None if dstate is None else dstate.contiguous()
        dq, dk, dv, before = _AttentionGradients.apply(q, k, v, y, placed(dy), state, given,
                                                       ctx.plan, ctx.lengths, ctx.saved)
        return dq, dk, dv, before, None, None, None, None


class _AttentionGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: Optional[torch.Tensor], v: torch.Tensor,
                y: torch.Tensor, dy: torch.Tensor, state: Optional[torch.Tensor],
                dstate: Optional[torch.Tensor], plan: Plan, lengths: Lengths,
                saved: Bytes) -> Tuple[Optional[torch.Tensor], ...]:
        dq, dv = torch.empty(q.shape), torch.empty(v.shape)
        dk = None if k is None else torch.empty(k.shape)
        before = None if state is None else torch.empty(state.shape)
        plan.backward([positions_first(x) for x in (dq, dk, dv) if x is not None],
                      [positions_first(x) for x in (q, k, v) if x is not None],
                      positions_first(y), positions_first(dy), lengths, saved.ctypes.data,
                      _address(state), States(_address(before), _address(dstate)))
        return dq, dk, dv, before

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> NoReturn:
        no_second_derivatives()


def attention(queries: torch.Tensor, keys: Optional[torch.Tensor], values: torch.Tensor,
              kind: str = "linear", causal: bool = True, feature_map: Optional[str] = None,
              lengths: Any = None, *, state: Optional[torch.Tensor] = None,
              return_state: bool = False, longest: int = 0, seed: int = 0,
              threads: Optional[int] = None) -> Any:
    """tarn.attention() with gradients, for tensors (N, L, H, E). Returns (N, L, H, D), or with
    return_state=True that and the states (N, S). Gradients flow through both states, so that a
    long sequence can be trained in pieces: state.detach() cuts them off."""
    named = _kind(kind)
    q = floats("queries", queries, "NLHE")
    N, L, H, E = q.shape
    v = floats("values", values, "NSHD")
    S, D = v.shape[1], v.shape[3]
    k: Optional[torch.Tensor] = None
    if "key" in inputs_of(named):
        k = floats("keys", keys, "NSHE")
        S = positions_of(causal, L, k.shape[1], S)
        k = placed(floats("keys", k, "NSHE", (N, S, H, E)))
    elif keys is not None:
        raise InvalidArgument(f"keys must be None: '{kind}' attention uses its queries as "
                              "keys")
    v = placed(floats("values", v, "NSHD", (N, S, H, D)))
    q = placed(q)
    if causal and S != L:
        raise InvalidArgument(f"keys is {S} and queries is {L}; causal attention needs "
                              "them equal")
    counted = lengths_of("lengths", _listed(lengths), N, S)
    plan = plan_of(Desc(named, text("feature_map", feature_map), bool(causal), N, H, L,
                        count("longest", longest) or S, E, D, seed_of(seed),
                        threads_of(default_threads() if threads is None else threads)))
    if return_state and plan.state_size == 0:
        raise InvalidArgument(f"kind: '{kind}' has no recurrent form, and no state, unless it is "
                              "causal; use \"linear\" or \"softmax\"")
    if state is not None:
        state = floats("state", state, "NS", (N, plan.state_size // 4)).contiguous()
    found = _Attention.apply(q, k, v, state, plan, counted, wants_grad(q, k, v, state),
                             return_state)
    y: torch.Tensor = found[0] if return_state else found
    y = y if y.dtype == queries.dtype else y.to(queries.dtype)
    return (y, found[1]) if return_state else y


def _listed(lengths: Any) -> Any:
    """Lengths without .numpy(), which older versions of torch lack for newer NumPy."""
    return lengths.tolist() if isinstance(lengths, torch.Tensor) else lengths


# ---- Causal dot product ---------------------------------------------------------


class _CausalDotProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
                threads: int) -> torch.Tensor:
        y = torch.empty(v.shape)
        _dot_product(q, v, threads).forward(heads_first(y), heads_first(q), heads_first(k),
                                            heads_first(v))
        ctx.save_for_backward(q, k, v)
        ctx.threads = threads
        return y

    @staticmethod
    def backward(ctx: Any, dy: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        q, k, v = ctx.saved_tensors
        dq, dk, dv = _CausalDotProductGradients.apply(q, k, v, placed(dy), ctx.threads)
        return dq, dk, dv, None


class _CausalDotProductGradients(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dy: torch.Tensor,
                threads: int) -> Tuple[torch.Tensor, ...]:
        dq, dk, dv = torch.empty(q.shape), torch.empty(k.shape), torch.empty(v.shape)
        _dot_product(q, v, threads).backward(
            heads_first(dq), heads_first(dk), heads_first(dv), heads_first(q), heads_first(k),
            heads_first(v), heads_first(dy))
        return dq, dk, dv

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> NoReturn:
        no_second_derivatives()


def _dot_product(q: torch.Tensor, v: torch.Tensor, threads: int) -> DotProduct:
    B, H, N, D = q.shape
    return DotProduct(B, H, N, D, v.shape[3], threads_of(threads))


def causal_dot_product(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """y_i = Q_i^T sum_{j <= i} K_j V_j^T for tensors (N, H, L, E) and (N, H, L, D), with
    gradients."""
    q = floats("Q", Q, "NHLE")
    k = floats("K", K, "NHLE", tuple(q.shape))
    v = floats("V", V, "NHLD")
    floats("V", V, "NHLD", tuple(q.shape[:3]) + (v.shape[3],))
    y: torch.Tensor = _CausalDotProduct.apply(placed(q), placed(k), placed(v), default_threads())
    return y if y.dtype == Q.dtype else y.to(Q.dtype)
