# SPDX-License-Identifier: MIT
"""What torch's own machinery does with the operators: compilers, exports, traces, transforms."""
import pytest

torch = pytest.importorskip("torch")

import tarn  # noqa: E402
import tarn.torch as tt  # noqa: E402
from tarn.torch import _operators  # noqa: E402

N, L, H, E, D = 2, 7, 3, 4, 5

operators = pytest.mark.skipif(not _operators.HAS_CUSTOM_OPERATORS,
                               reason="this torch has no torch.library.custom_op")
MODULES = [tt.CausalLinearAttention(E), tt.LinearAttention(E), tt.FullAttention()]


def tensors(requires_grad=False):
    torch.manual_seed(0)
    return [torch.randn(N, L, H, width, requires_grad=requires_grad) for width in (E, E, D)]


def forward_and_gradients(call, given):
    y = call(*given)
    return [y, *torch.autograd.grad(y.square().sum(), given)]


class Whole(torch.nn.Module):
    """A call with mask and lengths, as a model makes it."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, q, k, v, lengths):
        mask = tt.TriangularCausalMask(q.shape[1]) if isinstance(
            self.attention, tt.CausalLinearAttention) else tt.FullMask(q.shape[1], k.shape[1])
        return 2 * self.attention(2 * q, k, v, mask, None, tt.LengthMask(lengths, max_len=k.shape[1]))


@operators
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_functions_have_no_graph_breaks(module, dynamic):
    torch._dynamo.reset()
    whole, lengths = Whole(module), torch.tensor([3, 7])
    compiled = torch.compile(whole, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    given = tensors(requires_grad=True)
    wanted = forward_and_gradients(lambda *a: whole(*a, lengths), given)
    for found, exact in zip(forward_and_gradients(lambda *a: compiled(*a, lengths), given), wanted):
        torch.testing.assert_close(found, exact, rtol=0, atol=0)
    with torch.no_grad():
        assert torch.equal(compiled(*given, lengths), wanted[0])


@operators
@pytest.mark.parametrize("module", MODULES)
def test_exported_programs_compute_the_same(module):
    whole, lengths = Whole(module), torch.tensor([3, 7])
    given = tensors()
    program = torch.export.export(whole, (*given, lengths))
    assert "tarn.attention" in str(program.graph)
    assert torch.equal(program.module()(*given, lengths), whole(*given, lengths))


@operators
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_exported_programs_take_other_lengths_and_batches(module, requires_grad):
    batch, length = torch.export.Dim("batch", min=2), torch.export.Dim("length", min=2)
    sizes = {0: batch, 1: length}
    whole = Whole(module)
    program = torch.export.export(whole, (*tensors(requires_grad), torch.tensor([3, 7])),
                                  dynamic_shapes=(sizes, sizes, sizes, {0: batch}))
    given = *(torch.randn(5, 11, H, width) for width in (E, E, D)), torch.tensor([1, 11, 4, 0, 3])
    assert torch.equal(program.module()(*given), whole(*given))


@operators
@pytest.mark.parametrize("module", MODULES)
def test_one_compiled_graph_serves_all_batches_and_lengths(module):
    from torch._dynamo.utils import counters
    torch._dynamo.reset()
    counters.clear()
    whole = Whole(module)
    compiled = torch.compile(whole, fullgraph=True, backend="aot_eager", dynamic=True)
    for batch, length in (2, 7), (3, 5), (4, 12):
        lengths = torch.randint(1, length + 1, (batch,))
        given = [torch.randn(batch, length, H, width, requires_grad=True) for width in (E, E, D)]
        wanted = forward_and_gradients(lambda *a: whole(*a, lengths), given)
        for found, exact in zip(forward_and_gradients(lambda *a: compiled(*a, lengths), given),
                                wanted):
            torch.testing.assert_close(found, exact, rtol=0, atol=0)
    assert counters["stats"]["unique_graphs"] == 1


@operators
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_traces_compute_the_same(module):
    given = tensors()
    traced = torch.jit.trace(module, given)
    other = [2 * x for x in given]
    assert torch.equal(traced(*other), module(*other))


@operators
@pytest.mark.parametrize("state", [False, True])
def test_operators_are_what_torch_expects_of_them(state):
    given = tensors(requires_grad=True)
    options = ("linear", "elu", True, 0, 0, -1)
    before = None
    if state:
        before = tt.attention(*(x.detach() for x in given), return_state=True)[1].requires_grad_()
    torch.library.opcheck(torch.ops.tarn.attention.default,
                          (given, before, torch.tensor([3, 7]), *options, True, state),
                          test_utils=("test_schema", "test_faketensor", "test_autograd_registration"))
    q, k, v = (x.detach().transpose(1, 2).requires_grad_() for x in given)
    torch.library.opcheck(torch.ops.tarn.causal_dot_product.default, (q, k, v, -1))


def test_operators_and_functions_have_the_same_bits(monkeypatch):
    def run():
        given = tensors(requires_grad=True)
        found = forward_and_gradients(lambda *a: tt.attention(*a, lengths=[3, 7]), given)
        y, state = tt.attention(*given, return_state=True)
        z, after = tt.attention(*given, state=state, return_state=True)
        found += torch.autograd.grad(z.sum() + after[:, 16:].sum(), given)
        heads = [x.transpose(1, 2) for x in given]
        return found + list(torch.autograd.grad(tt.causal_dot_product(*heads).square().sum(), given))

    found = {}
    for name, made in (("eager", _operators.EAGER), ("traced", _operators.TRACED)):
        monkeypatch.setattr(_operators, "operators", lambda _, made=made: made)
        found[name] = run()
    assert all(torch.equal(a, b) for a, b in zip(found["eager"], found["traced"]))


def test_transforms_of_functions_are_right_or_refused():
    func = pytest.importorskip("torch.func")
    q, k, v = tensors()
    given = tensors(requires_grad=True)
    wanted = torch.autograd.grad(tt.attention(*given).square().sum(), given[0])[0]
    with pytest.raises(tarn.UnsupportedError, match="torch.func"):
        func.grad(lambda x: tt.attention(x, k, v).square().sum())(q)
    found = func.grad(lambda x: tt.attention(x, k.double(), v.double()).square().sum())(q.double())
    torch.testing.assert_close(found.float(), wanted, rtol=1e-4, atol=1e-5)
    dual = torch.autograd.forward_ad
    with dual.dual_level(), pytest.raises((RuntimeError, NotImplementedError)):
        tt.attention(dual.make_dual(q, torch.ones_like(q)), k, v)
    for transform in (lambda f: func.jvp(f, (q,), (torch.ones_like(q),)),
                      lambda f: func.vmap(f)(torch.stack([q, q])),
                      lambda f: func.hessian(lambda x: f(x).sum())(q),
                      lambda f: func.jacfwd(f)(q)):
        with pytest.raises(tarn.UnsupportedError, match="torch.func"):
            transform(lambda x: tt.attention(x, k, v))


@operators
def test_batched_gradients_are_right_or_refused():
    def batched(given):
        y = tt.attention(*given)
        dy = torch.stack([torch.ones_like(y), y.detach()])
        return torch.autograd.grad(y, given, dy, is_grads_batched=True)

    given = tensors(requires_grad=True)
    with pytest.raises(tarn.UnsupportedError, match="batched gradients"):
        batched(given)
    wide = [x.detach().double().requires_grad_() for x in given]
    y = tt.attention(*wide)
    for found, exact in zip(batched(wide), torch.autograd.grad(y, wide, y.detach())):
        torch.testing.assert_close(found[1], exact)


def test_autocast_gives_what_its_tensors_ask_for():
    q, k, v = tensors()
    linear = torch.nn.Linear(E, E)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        narrow = linear(q)
        y = tt.CausalLinearAttention(E)(narrow, linear(k), v)
    assert narrow.dtype == y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), tt.CausalLinearAttention(E)(linear(q), linear(k), v),
                               rtol=0.05, atol=0.05)
