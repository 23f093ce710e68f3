# SPDX-License-Identifier: MIT
"""The operators tarn::attention and tarn::causal_dot_product, with fake kernels and gradients.

torch.compile, torch.export and torch.jit.trace see each as one node. A torch without
torch.library.custom_op (before 2.4) gets autograd functions with the same code."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

import torch
from torch.autograd import forward_ad

from .._arrays import Strided, lengths_of
from .._errors import UnsupportedError
from .._inputs import inputs_of
from .._plan import Desc, DotProduct, Lengths, Plan, States, plan_of
from ._tensors import heads_first, only_heads, placed, positions_first

Tensor = torch.Tensor
HAS_CUSTOM_OPERATORS = hasattr(torch.library, "custom_op")


class Options(NamedTuple):
    """Arguments of the operators that are not tensors."""

    kind: str
    feature_map: Optional[str]
    causal: bool
    longest: int  # 0: as many keys as there are
    seed: int  # the 64 bits as a signed number
    threads: int  # -1: as many as torch has when the operator runs


def threads_now(threads: int) -> int:
    """torch.set_num_threads() applies here too."""
    return min(torch.get_num_threads(), 1024) if threads < 0 else threads


def no_second_derivatives(*_: Any) -> NoReturn:
    """The backward pass of the gradients, which are nodes of the graph with create_graph=True.
    Without it a second derivative would silently be 0 wherever dy does not depend on an input,
    as for a sum of outputs."""
    raise UnsupportedError("tarn.torch: second derivatives of attention are not supported; use a "
                           "loss that does not depend on gradients, or float64 tensors")


@lru_cache(maxsize=None)
def _index_of_value(kind: str) -> int:
    """Of the inputs of a kind; the first is the query."""
    return [one.name for one in inputs_of(kind)].index("value")


def _value_of(inputs: Sequence[Tensor], kind: str) -> Tensor:
    return inputs[_index_of_value(kind)]


def plan_for(inputs: Sequence[Tensor], options: Options) -> Plan:
    B, N, H, D = map(int, inputs[0].shape)
    _, S, _, M = map(int, _value_of(inputs, options.kind).shape)
    feature_map = None if options.feature_map is None else options.feature_map.encode()
    return plan_of(Desc(options.kind.encode(), feature_map, options.causal, B, H, N,
                        int(options.longest) or S, D, M, options.seed % 2**64,
                        threads_now(options.threads)))


def state_size_of(inputs: Sequence[Tensor], options: Options) -> int:
    """Bytes of one sequence, also where there are no sequences or positions."""
    some = [x if x.numel() else x.new_empty([max(size, 1) for size in x.shape]) for x in inputs]
    return plan_for(some, options).state_size


def _places(kind: str, tensors: Sequence[Tensor]) -> List[Strided]:
    return [only_heads(x) if one.parameter else positions_first(x)
            for one, x in zip(inputs_of(kind), tensors)]


def _counted(lengths: Optional[Tensor], plan: Plan, keys: int) -> Lengths:
    return None if lengths is None else lengths_of("lengths", lengths.tolist(), plan.desc.batch,
                                                   keys)


def _address(t: Optional[Tensor]) -> Optional[int]:
    return None if t is None else t.data_ptr()


def _is_empty(inputs: Sequence[Tensor]) -> bool:
    """Whether there are no sequences or no queries: no plan has such sizes."""
    return inputs[0].shape[0] == 0 or inputs[0].shape[1] == 0


# ---- Attention ------------------------------------------------------------------


def _saved_size(inputs: Sequence[Tensor], options: Options) -> Any:
    """In bytes. Where a compiler leaves sizes open, so is this one, which only the library knows."""
    if all(isinstance(size, int) for x in inputs for size in x.shape):
        return plan_for(inputs, options).saved_size
    return torch.library.get_ctx().new_dynamic_size()


def _outputs(inputs: Sequence[Tensor], state: Optional[Tensor], options: Options, keep: bool,
             return_state: bool) -> Tuple[Tensor, Tensor, Tensor]:
    """Uninitialised: y, what backward needs, the states after."""
    query, value = inputs[0], _value_of(inputs, options.kind)
    y = query.new_empty(query.shape[:3] + value.shape[3:])
    saved = _saved_size(inputs, options) if keep and not _is_empty(inputs) else 0
    after = (query.shape[0], state_size_of(inputs, options) // 4) if return_state else (0,)
    return (y, query.new_empty((saved,), dtype=torch.uint8), query.new_empty(after))


def attention_forward(inputs: Sequence[Tensor], state: Optional[Tensor],
                      lengths: Optional[Tensor], kind: str, feature_map: Optional[str],
                      causal: bool, longest: int, seed: int, threads: int, keep: bool,
                      return_state: bool) -> Tuple[Tensor, Tensor, Tensor]:
    options = Options(kind, feature_map, causal, longest, seed, threads)
    if _is_empty(inputs):
        y, saved, after = _outputs(inputs, state, options, keep, return_state)
        return y, saved, after.copy_(state) if state is not None and return_state else after.zero_()
    inputs = [placed(x) for x in inputs]
    query, plan = inputs[0], plan_for(inputs, options)
    y = query.new_empty((*query.shape[:3], plan.desc.value_width))
    saved = query.new_empty((plan.saved_size if keep else 0,), dtype=torch.uint8)
    after = query.new_empty((y.shape[0], plan.state_size // 4) if return_state else (0,))
    before = None if state is None else state.contiguous()
    plan.forward(positions_first(y), _places(kind, inputs),
                 _counted(lengths, plan, _value_of(inputs, kind).shape[1]),
                 saved.data_ptr() if keep else None,
                 States(_address(before), _address(after) if return_state else None))
    return y, saved, after


def _attention_fake(inputs: Sequence[Tensor], state: Optional[Tensor], lengths: Optional[Tensor],
                    kind: str, feature_map: Optional[str], causal: bool, longest: int, seed: int,
                    threads: int, keep: bool,
                    return_state: bool) -> Tuple[Tensor, Tensor, Tensor]:
    return _outputs(inputs, state, Options(kind, feature_map, causal, longest, seed, threads),
                    keep, return_state)


def attention_gradients(inputs: Sequence[Tensor], y: Tensor, dy: Tensor,
                        state: Optional[Tensor], dstate: Optional[Tensor],
                        lengths: Optional[Tensor], saved: Tensor, kind: str,
                        feature_map: Optional[str], causal: bool, longest: int, seed: int,
                        threads: int) -> List[Tensor]:
    """Those of the inputs, then that of the state if there is one."""
    found = _attention_gradients_fake(inputs, y, dy, state)
    if _is_empty(inputs):
        for gradient in found:
            gradient.zero_()
        if state is not None and dstate is not None:
            found[-1].copy_(dstate)
        return found
    inputs = [placed(x) for x in inputs]
    plan = plan_for(inputs, Options(kind, feature_map, causal, longest, seed, threads))
    if saved.numel() != plan.saved_size:
        raise UnsupportedError("tarn.torch: the forward pass was run without gradients; "
                               "torch.func and forward-mode derivatives are not supported")
    dy = placed(dy)
    before = None if state is None else state.contiguous()
    after = None if dstate is None else dstate.contiguous()
    plan.backward(_places(kind, found), _places(kind, inputs), positions_first(y),
                  positions_first(dy), _counted(lengths, plan, _value_of(inputs, kind).shape[1]),
                  saved.data_ptr(), _address(before),
                  States(None if state is None else found[-1].data_ptr(), _address(after)))
    return found


def _attention_gradients_fake(inputs: Sequence[Tensor], y: Tensor, dy: Tensor,
                              state: Optional[Tensor], *_: Any) -> List[Tensor]:
    """Uninitialised and contiguous, as the library writes them."""
    like = list(inputs) + ([] if state is None else [state])
    return [x.new_empty(x.shape) for x in like]


def _attention_setup(ctx: Any, inputs: Any, output: Tuple[Tensor, Tensor, Tensor]) -> None:
    given, state, lengths, *options, keep, return_state = inputs
    y, saved, _ = output
    ctx.save_for_backward(*given, y, state, lengths, saved)
    ctx.options, ctx.return_state = options, return_state


def _attention_backward(ctx: Any, dy: Tensor, _: Any, dstate: Optional[Tensor]) -> Tuple[Any, ...]:
    *given, y, state, lengths, saved = ctx.saved_tensors
    found = operators_back(dy).attention_gradients(given, y, dy, state,
                                                   dstate if ctx.return_state else None, lengths,
                                                   saved, *ctx.options)
    count = len(given)
    return (list(found[:count]), found[count] if state is not None else None) + (None,) * 9


# ---- Causal dot product ---------------------------------------------------------


def _dot_product(q: Tensor, v: Tensor, threads: int) -> DotProduct:
    B, H, N, D = q.shape
    return DotProduct(B, H, N, D, v.shape[3], threads_now(threads))


def dot_product_forward(q: Tensor, k: Tensor, v: Tensor, threads: int) -> Tensor:
    y = v.new_empty(v.shape)
    if y.numel() > 0:
        q, k, v = placed(q), placed(k), placed(v)
        _dot_product(q, v, threads).forward(heads_first(y), heads_first(q), heads_first(k),
                                            heads_first(v))
    return y


def dot_product_gradients(q: Tensor, k: Tensor, v: Tensor, dy: Tensor,
                          threads: int) -> Tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = (x.new_empty(x.shape) if dy.numel() > 0 else x.new_zeros(x.shape)
                  for x in (q, k, v))
    if dy.numel() > 0:
        q, k, v, dy = placed(q), placed(k), placed(v), placed(dy)
        _dot_product(q, v, threads).backward(
            heads_first(dq), heads_first(dk), heads_first(dv), heads_first(q), heads_first(k),
            heads_first(v), heads_first(dy))
    return dq, dk, dv


def _dot_product_setup(ctx: Any, inputs: Any, output: Tensor) -> None:
    q, k, v, ctx.threads = inputs
    ctx.save_for_backward(q, k, v)


def _dot_product_backward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    q, k, v = ctx.saved_tensors
    return (*operators_back(dy).dot_product_gradients(q, k, v, dy, ctx.threads), None)


# ---- Registration ---------------------------------------------------------------

_OPTIONS = ("str kind, str? feature_map, bool causal, SymInt longest, int seed, int threads")


def _no_context(ctx: Any, inputs: Any, output: Any) -> None:
    """The second derivatives that are refused need nothing."""


def _operator(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any],
              setup: Callable[..., None], backward: Callable[..., Any]) -> Callable[..., Any]:
    made: Any = torch.library.custom_op(f"tarn::{name}", run, mutates_args=(),
                                        device_types="cpu", schema=schema)
    made.register_fake(fake)
    made.register_autograd(backward, setup_context=setup)
    found: Callable[..., Any] = made
    return found


def _function(run: Callable[..., Any], setup: Callable[..., None],
              backward: Callable[..., Any]) -> Callable[..., Any]:
    """An autograd function of the same parts. Such functions take no lists of tensors: a list is
    given as its length and its tensors."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, count: int, *flat: Any) -> Any:
            arguments = (list(flat[:count]), *flat[count:]) if count else flat
            ctx.count, found = count, run(*arguments)
            setup(ctx, arguments, found)
            return tuple(found) if isinstance(found, list) else found

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> Any:
            first, *rest = backward(ctx, *gradients)
            return (None, *first, *rest) if ctx.count else (None, first, *rest)

    def call(*arguments: Any) -> Any:
        if isinstance(arguments[0], list):
            return Function.apply(len(arguments[0]), *arguments[0], *arguments[1:])
        return Function.apply(0, *arguments)

    return call


_transformed: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active",
                                            lambda: True)


def is_plain() -> bool:
    """Whether nothing is recorded and nobody transforms functions, so that the code of an operator
    can run without an autograd function around it."""
    return forward_ad._current_level < 0 and not _transformed()


class Operators(NamedTuple):
    attention: Callable[..., Any]
    attention_gradients: Callable[..., Any]
    dot_product: Callable[..., Any]
    dot_product_gradients: Callable[..., Any]


def custom_operators() -> Operators:
    return Operators(
        _operator("attention",
                  f"(Tensor[] inputs, Tensor? state, Tensor? lengths, {_OPTIONS}, bool keep, "
                  "bool return_state) -> (Tensor, Tensor, Tensor)",
                  attention_forward, _attention_fake, _attention_setup, _attention_backward),
        _operator("attention_gradients",
                  "(Tensor[] inputs, Tensor y, Tensor dy, Tensor? state, Tensor? dstate, "
                  f"Tensor? lengths, Tensor saved, {_OPTIONS}) -> Tensor[]",
                  attention_gradients, _attention_gradients_fake, _no_context,
                  no_second_derivatives),
        _operator("causal_dot_product", "(Tensor q, Tensor k, Tensor v, int threads) -> Tensor",
                  dot_product_forward, lambda q, k, v, threads: v.new_empty(v.shape),
                  _dot_product_setup, _dot_product_backward),
        _operator("causal_dot_product_gradients",
                  "(Tensor q, Tensor k, Tensor v, Tensor dy, int threads) -> "
                  "(Tensor, Tensor, Tensor)",
                  dot_product_gradients,
                  lambda q, k, v, dy, threads: tuple(x.new_empty(x.shape) for x in (q, k, v)),
                  _no_context, no_second_derivatives))


def autograd_functions() -> Operators:
    return Operators(
        _function(attention_forward, _attention_setup, _attention_backward),
        _function(attention_gradients, _no_context, no_second_derivatives),
        _function(dot_product_forward, _dot_product_setup, _dot_product_backward),
        _function(dot_product_gradients, _no_context, no_second_derivatives))


EAGER = autograd_functions()
TRACED = custom_operators() if HAS_CUSTOM_OPERATORS else EAGER


def has_values() -> bool:
    """Whether the values of tensors can be read: nothing compiles or transforms the caller."""
    compiles = HAS_CUSTOM_OPERATORS and torch.compiler.is_compiling()
    return not compiles and not is_tracing() and _transforms() is None


def is_tracing() -> bool:
    """By torch.jit.trace, which compares its graph with another that it makes without gradients."""
    asked = torch.jit.is_tracing  # type: ignore[attr-defined,unused-ignore]
    return bool(asked())  # type: ignore[no-untyped-call,unused-ignore]


_functorch = getattr(torch._C, "_functorch", None)
# The innermost transform of torch.func that is under way, or None.
_transforms: Callable[[], Any] = getattr(_functorch, "peek_interpreter_stack", lambda: None)
_is_batched: Callable[[Tensor], bool] = getattr(_functorch, "is_legacy_batchedtensor",
                                                lambda _: False)


def operators_back(dy: Tensor) -> Operators:
    """operators() of a backward pass, whose dy may stand for a batch: is_grads_batched."""
    if _is_batched(dy):
        raise UnsupportedError("tarn.torch: batched gradients are not supported; ask for one after "
                               "the other, or use float64 tensors")
    return operators(dy)


def operators(tensor: Tensor) -> Operators:
    """Autograd functions for plain tensors, because a call of them takes half the time; operators
    where something looks on: a compiler, an export, a trace, a mode, a kind of tensor."""
    if TRACED is EAGER:
        return EAGER
    compiles = torch.compiler.is_compiling() or is_tracing()
    if not compiles and _transforms() is not None:
        raise UnsupportedError("tarn.torch: torch.func (vmap, grad, jvp, ...) is not supported; use "
                               "torch.autograd, or float64 tensors")
    if forward_ad._current_level >= 0:  # which only a function refuses
        return EAGER
    if compiles:
        return TRACED
    plain = type(tensor) in (Tensor, torch.nn.Parameter)
    return EAGER if plain and torch._C._len_torch_dispatch_stack() == 0 else TRACED
