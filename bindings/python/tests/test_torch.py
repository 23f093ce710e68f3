# SPDX-License-Identifier: MIT
"""torch: values and gradients are those of plain definitions in f64, however tensors lie."""
import copy
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import definitions as d  # noqa: E402
import tarn  # noqa: E402
import tarn.torch as tt  # noqa: E402

N, L, S, H, E, D = 2, 7, 5, 3, 4, 6


def tensors(keys=L, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(shape, requires_grad=True)
            for shape in ((N, L, H, E), (N, keys, H, E), (N, keys, H, D))]


def in_f64(definition, given, dy):
    """Outputs and gradients of a definition on (B, H, N, D) for tensors (N, L, H, E)."""
    wide = [t.detach().double().requires_grad_() for t in given]
    y = definition(*(t.transpose(1, 2) for t in wide)).transpose(1, 2)
    y.backward(dy.double())
    return [y.detach()] + [t.grad for t in wide]


def check(module, definition, keys=L, **call):
    given = tensors(keys)
    dy = torch.randn(N, L, H, D)
    y = module(*given, **call)
    y.backward(dy)
    for found, wanted in zip([y.detach()] + [t.grad for t in given],
                             in_f64(definition, given, dy)):
        assert found.dtype == torch.float32 and found.shape == wanted.shape
        torch.testing.assert_close(found.double(), wanted, rtol=2e-5, atol=2e-5)


# ---- Values and gradients -------------------------------------------------------


def test_linear_attention_is_its_definition():
    check(tt.LinearAttention(E), lambda q, k, v: d.linear(q, k, v, False), S)
    check(tt.LinearAttention(E, feature_map="relu", eps=1e-3),
          lambda q, k, v: d.linear(q, k, v, False, "relu", eps=1e-3), S)


def test_causal_linear_attention_is_its_definition():
    check(tt.CausalLinearAttention(E), lambda q, k, v: d.linear(q, k, v, True))


def test_softmax_attention_is_its_definition():
    check(tt.FullAttention(), lambda q, k, v: d.softmax(q, k, v, False), S)
    check(tt.FullAttention(softmax_temp=0.3),
          lambda q, k, v: d.softmax(q, k, v, True, 0.3),
          attn_mask=tt.TriangularCausalMask(L))


def test_feature_maps_may_be_torchs():
    phi = torch.nn.Sequential(torch.nn.Linear(E, 5), torch.nn.Softplus())
    wide = copy.deepcopy(phi).double()

    def definition(q, k, v):
        w = (wide(q) @ wide(k).transpose(-1, -2)).tril()
        return w @ v / (w.sum(-1, keepdim=True) + 1e-6)

    module = tt.CausalLinearAttention(E, feature_map=phi)
    check(module, definition)
    assert len(list(module.parameters())) == 2
    for narrow, exact in zip(phi.parameters(), wide.parameters()):
        torch.testing.assert_close(narrow.grad.double(), exact.grad, rtol=1e-4, atol=1e-4)

    class Map:  # as fast_transformers has them
        def new_feature_map(self, device):
            self.made = True

        def forward_queries(self, x):
            return torch.nn.functional.elu(x) + 1

        forward_keys = forward_queries

    check(tt.LinearAttention(E, feature_map=Map()), lambda q, k, v: d.linear(q, k, v, False), S)
    asked = []

    def factory(width):
        asked.append(width)
        return Map()

    check(tt.LinearAttention(E, feature_map=factory), lambda q, k, v: d.linear(q, k, v, False), S)
    assert asked == [E]
    check(tt.LinearAttention(E, feature_map=lambda x: torch.nn.functional.elu(x) + 1),
          lambda q, k, v: d.linear(q, k, v, False), S)


def test_the_dot_product_is_its_definition():
    q, k, v = (t.detach().transpose(1, 2).requires_grad_() for t in tensors())
    dy = torch.randn(N, H, L, D)
    y = tt.causal_dot_product(q, k, v)
    y.backward(dy)
    wide = [t.detach().double().requires_grad_() for t in (q, k, v)]
    wanted = d.dot_product(*wide)
    wanted.backward(dy.double())
    for found, exact in ((y.detach(), wanted.detach()), *((a.grad, b.grad) for a, b in
                                                          zip((q, k, v), wide))):
        torch.testing.assert_close(found.double(), exact, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("module", [tt.LinearAttention(2), tt.CausalLinearAttention(2),
                                    tt.FullAttention()])
@pytest.mark.filterwarnings("ignore:Input")
def test_gradcheck_passes_as_far_as_f32_can(module):
    torch.manual_seed(3)
    given = [torch.randn(1, 3, 1, 2, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(module, given, eps=1e-2, atol=2e-3, rtol=1e-2,
                                    nondet_tol=0.0)


@pytest.mark.filterwarnings("ignore:Input")
def test_gradcheck_of_the_dot_product():
    given = [torch.randn(1, 1, 3, 2, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(tt.causal_dot_product, given, eps=1e-2, atol=2e-3, rtol=1e-2)


def test_tensors_may_lie_in_memory_as_they_like():
    q, k, v = (t.detach() for t in tensors())
    wanted = tt.attention(q, k, v)
    packed = torch.cat([q, k, v[..., :E]], -1).view(N, L, H, 3, E)
    narrow = tt.attention(q, k, v[..., :E])
    assert torch.equal(tt.attention(*packed.unbind(3)), narrow)
    for view in (q.transpose(1, 2).contiguous().transpose(1, 2),
                 q.transpose(2, 3).contiguous().transpose(2, 3),
                 torch.stack([q, q], -1)[..., 0]):
        assert torch.equal(tt.attention(view, k, v), wanted)
    y = tt.attention(q.clone().requires_grad_(), k, v)
    y.sum().backward()  # a gradient without memory of its own
    for negative in (torch.complex(q, -q).conj().imag, torch._neg_view(-q)):
        assert negative.is_neg()  # by a bit: in memory is -q
        assert torch.equal(tt.attention(negative, k, v), wanted)


def test_tensors_are_not_copied():
    q, k, v = (t.detach() for t in tensors())
    from tarn.torch import _tensors
    assert _tensors.placed(_tensors.floats("q", q, "NLHE")).data_ptr() == q.data_ptr()
    view = torch.empty(N, L, 3, H, E)[:, :, 1]
    assert _tensors.placed(_tensors.floats("q", view, "NLHE")).data_ptr() == view.data_ptr()


def test_numpy_and_torch_agree_to_the_bit():
    q, k, v = (t.detach() for t in tensors())
    found = tarn.attention(*(np.array(t.transpose(1, 2).tolist(), np.float32)
                             for t in (q, k, v)))
    assert found.tolist() == tt.attention(q, k, v).transpose(1, 2).tolist()


def test_narrow_floats_are_widened():
    q, k, v = (t.detach().bfloat16().requires_grad_() for t in tensors())
    y = tt.attention(q, k, v)
    y.sum().backward()
    assert y.dtype == q.grad.dtype == torch.bfloat16
    assert torch.equal(y, tt.attention(q.float(), k.float(), v.float()).bfloat16())


def test_only_what_is_asked_for_has_a_gradient():
    q, k, v = tensors()
    y = tt.attention(q.detach(), k, v.detach())
    y.sum().backward()
    assert k.grad is not None and q.grad is None
    with torch.no_grad():
        assert not tt.attention(q, k, v).requires_grad


@pytest.mark.parametrize("module, definition", [
    (tt.CausalLinearAttention(E), lambda q, k, v: d.linear(q, k, v, True)),
    (tt.LinearAttention(E, "relu", 1e-3), lambda q, k, v: d.linear(q, k, v, False, "relu", eps=1e-3)),
    (tt.FullAttention(0.3), lambda q, k, v: d.softmax(q, k, v, False, 0.3))])
def test_f64_is_computed_in_f64(module, definition):
    given = [t.detach().double().requires_grad_() for t in tensors()]
    dy = torch.randn(N, L, H, D).double()
    y = module(*given)
    y.backward(dy)
    for found, wanted in zip([y.detach()] + [t.grad for t in given], in_f64(definition, given, dy)):
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    lengths = torch.tensor([3, 0])  # and queries without keys
    narrow = module(*(t.detach().float() for t in given), None, None, lengths)
    torch.testing.assert_close(module(*given, None, None, lengths).float(), narrow, rtol=1e-4,
                               atol=1e-5)


def test_f64_that_cannot_be_done_is_refused():
    q, k, v = (t.detach().double() for t in tensors())
    for arguments, sentence in ((dict(kind="kernel"), "which 'kernel' attention does not support"),
                                (dict(feature_map="positive"), "'positive' is not available"),
                                (dict(return_state=True), "has no states")):
        with pytest.raises(tarn.InvalidArgument, match=sentence):
            tt.attention(q, k, v, **arguments)


@pytest.mark.parametrize("arguments", [
    dict(kind="linear:scale=2"), dict(kind="softmax:eps=1"), dict(kind="softmax:scale=x"),
    dict(kind="softmax:scale=-1"), dict(kind="nope"), dict(kind="softmax", feature_map="elu"),
    dict(feature_map="nope"), dict(lengths=[L + 1, 1]), dict(lengths=[-1, 1]), dict(seed=-1),
    dict(causal=False, longest=100)])
def test_what_is_wrong_is_wrong_in_both_precisions(arguments):
    said = []
    for wide in (False, True):
        given = [t.detach().double() if wide else t.detach() for t in tensors()]
        with pytest.raises(tarn.Error) as caught:
            tt.attention(*given, **arguments)
        said.append((type(caught.value), str(caught.value)))
    assert said[0] == said[1]


def test_gradients_of_values_without_width_are_zero():
    q, k = (torch.randn(2, 3, 6, 4, requires_grad=True) for _ in range(2))
    v = torch.zeros(2, 3, 6, 0, requires_grad=True)
    for gradient in torch.autograd.grad(tt.causal_dot_product(q, k, v).sum(), (q, k)):
        assert torch.equal(gradient, torch.zeros_like(q))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_queries_without_keys_have_gradients_of_zero(kind, dtype):
    given = [t.detach().to(dtype).requires_grad_() for t in tensors()]
    y = tt.attention(*given, kind, False, lengths=[L, 0])
    found = [y, *torch.autograd.grad(y.sum(), given)]
    assert all(torch.isfinite(one).all() and not one[1].any() for one in found)


@pytest.mark.parametrize("shape", [(0, L), (N, 0)])
def test_no_sequences_and_no_positions_have_empty_outputs(shape):
    q, k, v = (torch.randn(*shape, H, width, requires_grad=True) for width in (E, E, D))
    for y in (tt.attention(q, k, v), tt.attention(q, k, v, "softmax"),
              tt.causal_dot_product(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)):
        assert y.shape == (*shape, H, D)
        y.sum().backward()
        assert q.grad.shape == q.shape and v.grad.shape == v.shape
    _, before = tt.attention(*(torch.randn(max(shape[0], 0), 3, H, w) for w in (E, E, D)),
                             return_state=True)
    before = before.requires_grad_()
    _, after = tt.attention(q, k, v, state=before, return_state=True)
    assert torch.equal(after, before)
    after.sum().backward()
    assert torch.equal(before.grad, torch.ones_like(before))


@pytest.mark.parametrize("kind, longest", [("linear", 0), ("softmax", 30)])
def test_gradients_flow_through_states(kind, longest):
    q, k, v = (torch.randn(2, 20, 3, width, requires_grad=True) for width in (4, 4, 5))
    y = tt.attention(q, k, v, kind=kind)
    wanted = torch.autograd.grad(y.square().sum(), (q, k, v))
    state, pieces = None, []
    for first, last in ((0, 7), (7, 12), (12, 20)):
        piece, state = tt.attention(q[:, first:last], k[:, first:last], v[:, first:last],
                                    kind=kind, state=state, return_state=True, longest=longest)
        pieces.append(piece)
    found = torch.autograd.grad(torch.cat(pieces, 1).square().sum(), (q, k, v))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)



@pytest.mark.parametrize("loss", [  # the gradient of the first depends on the outputs
    lambda y: y.pow(2).sum(), lambda y: y.sum(),
    lambda y: (y * torch.arange(float(y.numel())).view(y.shape)).mean()])
def test_second_derivatives_are_refused_and_never_zero(loss):
    q, k, v = tensors()
    scattered = torch.stack([q, q], -1)[..., 0]  # is copied
    heads = [t.transpose(1, 2) for t in (q, k, v)]
    for y, inputs in ((tt.attention(q, k, v), (q, k, v)), (tt.attention(q, None, v, "lsh"), (q, v)),
                      (tt.attention(scattered, k, v), (q, k, v)),
                      (tt.attention(q.detach(), k, v.detach()), (k,)),
                      (tt.attention(q.bfloat16(), k, v), (q, k, v)),
                      (tt.causal_dot_product(*heads), (q, k, v))):
        gradients = torch.autograd.grad(loss(y), inputs, create_graph=True)
        for gradient in gradients:
            assert gradient.requires_grad
            penalty = gradient.pow(2).sum() + q.sum()  # of which only the rest had a gradient
            with pytest.raises(tarn.UnsupportedError, match="second derivatives"):
                penalty.backward(retain_graph=True)
    # As long as nobody asks for them, create_graph is all the same.
    wanted = torch.autograd.grad(loss(tt.attention(q, k, v)), (q, k, v))
    found = torch.autograd.grad(loss(tt.attention(q, k, v)), (q, k, v), create_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))
    assert not any(gradient.requires_grad for gradient in wanted)


def test_lsh_shares_its_keys():
    q, _, v = tensors()
    tt.attention(q, None, v, "lsh:chunk=4,buckets=2").sum().backward()
    assert q.grad.shape == q.shape
    with pytest.raises(tarn.InvalidArgument, match="keys must be None"):
        tt.attention(q, q, v, "lsh")


# ---- Masks ----------------------------------------------------------------------


class Foreign:
    """A mask of somebody else's, with only some attributes."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def causal_masks():
    seen = torch.ones(L, L, dtype=torch.bool).tril()
    yield tt.TriangularCausalMask(L)
    yield Foreign(lower_triangular=True)
    yield seen
    yield torch.zeros(L, L).masked_fill(~seen, float("-inf"))
    yield Foreign(float_matrix=seen.float())
    yield Foreign(additive_matrix=torch.log(seen.float()))
    yield Foreign(bool_matrix=seen, lower_triangular=False, all_ones=False)


def test_causal_masks_are_known_by_what_they_say():
    q, k, v = (t.detach() for t in tensors())
    wanted = tt.CausalLinearAttention()(q, k, v)
    softmax = tt.attention(q, k, v, "softmax")
    for mask in causal_masks():
        assert torch.equal(tt.CausalLinearAttention()(q, k, v, mask, None, None), wanted)
        assert torch.equal(tt.FullAttention()(q, k, v, mask), softmax)
        with pytest.raises(tarn.InvalidArgument, match="attn_mask masks keys"):
            tt.LinearAttention()(q, k, v, mask)


def test_full_masks_are_known_by_what_they_say():
    q, k, v = (t.detach() for t in tensors(S))
    wanted = tt.LinearAttention()(q, k, v)
    for mask in (None, tt.FullMask(L, S), Foreign(all_ones=True), torch.zeros(L, S),
                 torch.ones(L, S, dtype=torch.bool), Foreign(float_matrix=torch.ones(L, S)),
                 Foreign(additive_matrix=torch.zeros(L, S))):
        assert torch.equal(tt.LinearAttention()(q, k, v, mask), wanted)
        if mask is not None:
            with pytest.raises(tarn.InvalidArgument, match="attn_mask is full"):
                tt.CausalLinearAttention()(q, k, v, mask)


def test_a_full_mask_of_a_tensor_is_that_tensor():
    q, k, v = (t.detach() for t in tensors())
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    hides = torch.ones(L, L, dtype=torch.bool)
    hides[2, 3] = False
    assert tt.FullMask(causal).bool_matrix.equal(causal) and not tt.FullMask(causal).all_ones
    assert tt.FullMask(causal).lower_triangular and not tt.FullMask(hides).lower_triangular
    assert tt.FullMask(mask=hides).additive_matrix[2, 3] == float("-inf")
    assert tt.FullMask(hides | True).all_ones and tt.FullMask(2, 3).all_ones
    for made, shape in ((tt.FullMask(2), (2, 2)), (tt.FullMask(2, 3), (2, 3)),
                        (tt.FullMask(N=2), (2, 2)), (tt.FullMask(N=2, M=3), (2, 3)),
                        (tt.FullMask(None, 2, 3, "cpu"), (2, 3))):
        assert made.bool_matrix.equal(torch.ones(shape, dtype=torch.bool))
    assert torch.equal(tt.FullAttention()(q, k, v, tt.FullMask(causal)),
                       tt.attention(q, k, v, "softmax"))
    assert torch.equal(tt.CausalLinearAttention()(q, k, v, tt.FullMask(causal)),
                       tt.CausalLinearAttention()(q, k, v))
    for module in (tt.FullAttention(), tt.CausalLinearAttention(), tt.LinearAttention()):
        with pytest.raises(tarn.InvalidArgument, match="attn_mask "):
            module(q, k, v, tt.FullMask(hides))
    mask = tt.FullMask(hides)
    hides[2, 3] = True  # of a copy
    assert not mask.all_ones and not mask.bool_matrix[2, 3]
    lengths = torch.tensor([3, 5])
    seen = torch.arange(S).view(1, -1) < lengths.view(-1, 1)
    check(tt.LinearAttention(), lambda q, k, v: d.linear(q, k, v, False, lengths=lengths), S,
          key_lengths=tt.FullMask(seen))
    for wrong, sentence in ((dict(mask=causal.float()), "mask is torch.float32; it must be"),
                            (dict(), "mask and N are both None"), (dict(mask="x"), "mask is str"),
                            (dict(mask=2, N=3, M=4), "mask and M are both given"),
                            (dict(N=-1), "N is -1")):
        with pytest.raises(tarn.InvalidArgument, match=sentence):
            tt.FullMask(**wrong)


def test_lengths_are_known_by_what_they_say():
    lengths = torch.tensor([3, 5])
    seen = torch.arange(S).view(1, -1) < lengths.view(-1, 1)
    for given in (lengths, lengths.int(), [3, 5], tt.LengthMask(lengths, S),
                  Foreign(lengths=lengths), Foreign(bool_matrix=seen),
                  Foreign(float_matrix=seen.float()),
                  Foreign(additive_matrix=torch.log(seen.float()))):
        check(tt.LinearAttention(), lambda q, k, v: d.linear(q, k, v, False, lengths=lengths), S,
              key_lengths=given, query_lengths=tt.LengthMask(torch.tensor([L, L])))
        check(tt.FullAttention(), lambda q, k, v: d.softmax(q, k, v, False, lengths=lengths), S,
              key_lengths=given)
    check(tt.FullAttention(), lambda q, k, v: d.softmax(q, k, v, False), S,
          key_lengths=tt.FullMask(N, S))


def test_our_masks_have_the_matrices_of_others():
    assert tt.TriangularCausalMask(3).bool_matrix.tolist() == [[True, False, False],
                                                               [True, True, False], [True] * 3]
    assert tt.FullMask(1, 2).additive_matrix.tolist() == [[0.0, 0.0]]
    assert tt.LengthMask(torch.tensor([1, 2])).float_matrix.tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert tt.LengthMask([1, 2]).float_matrix.tolist() == [[1.0, 0.0], [1.0, 1.0]]


WRONG_MASKS = [
    (dict(attn_mask=torch.eye(L, dtype=torch.bool)), "neither full nor lower triangular"),
    (dict(attn_mask=torch.rand(L, L)), "contains weights"),
    (dict(attn_mask=torch.ones(N, L, L, dtype=torch.bool)), r"it must be \(L, S\) = \(7, 7\)"),
    (dict(attn_mask="causal"), "attn_mask is str; it must be"),
    (dict(attn_mask=Foreign()), "attn_mask is Foreign; it must be"),
    (dict(key_lengths=torch.tensor([1])), "key_lengths: is torch.int64 of shape"),
    (dict(key_lengths=torch.tensor([1.0, 2.0])), "key_lengths: is torch.float32"),
    (dict(key_lengths=torch.tensor([1, L + 1])), "they must be from 0 to 7"),
    (dict(key_lengths=torch.tensor([-1, 1])), "they must be from 0 to 7"),
    (dict(key_lengths=torch.ones(N, L, dtype=torch.bool)), "it must be 2 whole numbers"),
    (dict(key_lengths=Foreign(bool_matrix=torch.tensor([[1, 0, 1, 1, 1, 1, 1]] * N) > 0)),
     "masks keys in the middle"),
    (dict(key_lengths=3), "key_lengths is int"),
]


@pytest.mark.parametrize("call, sentence", WRONG_MASKS)
def test_masks_that_cannot_be_done_are_refused(call, sentence):
    with pytest.raises(tarn.InvalidArgument, match=sentence):
        tt.FullAttention()(*tensors(), **call)


# ---- Step by step ---------------------------------------------------------------


@pytest.mark.parametrize("parallel, recurrent", [
    (tt.CausalLinearAttention(E), tt.RecurrentLinearAttention(E)),
    (tt.CausalLinearAttention(E, "relu"), tt.RecurrentLinearAttention(E, "relu")),
    (tt.CausalLinearAttention(E, "positive"), tt.RecurrentLinearAttention(E, "positive")),
    (tt.CausalLinearAttention(E, torch.exp), tt.RecurrentLinearAttention(E, torch.exp)),
    (tt.FullAttention(0.5), tt.RecurrentFullAttention(0.5, max_length=L)),
])
def test_recurrent_modules_are_the_parallel_ones(parallel, recurrent):
    q, k, v = (t.detach() for t in tensors())
    wanted = parallel(q, k, v, tt.TriangularCausalMask(L))
    state = None
    for i in range(L):
        before = state.copy() if state else None
        y, state = recurrent(q[:, i], k[:, i], v[:, i], state)
        torch.testing.assert_close(y, wanted[:, i], rtol=1e-4, atol=1e-5)
    again, _ = recurrent(q[:, -1], k[:, -1], v[:, -1], memory=before)
    assert torch.equal(again, y)


class Drawn(torch.nn.Module):
    """Random features as fast_transformers has them: drawn when a sequence begins."""

    def __init__(self):
        super().__init__()
        self.register_buffer("omega", torch.zeros(E, 8))
        self.draws = 0

    def new_feature_map(self, device):
        self.omega = torch.randn(E, 8, device=device)
        self.draws += 1

    def forward_queries(self, x):
        return torch.exp(x @ self.omega - x.pow(2).sum(-1, keepdim=True) / 2)

    forward_keys = forward_queries


def parallel_by(omega, q, k, v):
    fixed = Drawn()
    fixed.omega = omega
    return tt.CausalLinearAttention(E, feature_map=fixed.forward_queries)(q, k, v)


def test_random_maps_are_drawn_once_for_each_sequence():
    q, k, v = (t.detach() for t in tensors())
    phi = Drawn()
    module = tt.RecurrentLinearAttention(E, feature_map=phi)
    states, omegas, outputs = [None, None], [None, None], [[], []]
    for i in range(L):  # two sequences in turns, the second begins one later
        for s in range(2 if i else 1):
            y, states[s] = module(q[:, i - s], k[:, i - s], v[:, i - s], states[s])
            outputs[s].append(y)
            omegas[s] = phi.omega.clone() if omegas[s] is None else omegas[s]
    assert phi.draws == 2 and not torch.equal(*omegas)
    for s in range(2):
        wanted = parallel_by(omegas[s], q, k, v)[:, :L - s]
        torch.testing.assert_close(torch.stack(outputs[s], 1), wanted, rtol=1e-4, atol=1e-5)
    before, state = states[0].copy(), states[0]
    again = module(q[:, 0], k[:, 0], v[:, 0], before)[0]
    assert torch.equal(module(q[:, 0], k[:, 0], v[:, 0], state)[0], again)
    _, plain = tt.RecurrentLinearAttention(E)(q[:, 0], k[:, 0], v[:, 0])
    named = tt.RecurrentLinearAttention(E, "identity")
    for other, foreign in ((module, plain), (named, state)):
        with pytest.raises(tarn.InvalidArgument, match="another kind of attention"):
            other(q[:, 0], k[:, 0], v[:, 0], foreign)
    parallel = tt.CausalLinearAttention(E, feature_map=phi)
    wanted = parallel(q, k, v)
    assert phi.draws == 3
    torch.testing.assert_close(wanted, parallel_by(phi.omega, q, k, v))


RECURRENT = [tt.RecurrentLinearAttention(E), tt.RecurrentLinearAttention(E, torch.exp, 0.1),
             tt.RecurrentFullAttention(0.5, max_length=L)]


@pytest.mark.parametrize("recurrent", RECURRENT)
def test_f64_steps_are_computed_in_f64_and_have_gradients(recurrent):
    def steps(given, state=None):
        found = []
        for i in range(L):
            y, state = recurrent(*(x[:, i] for x in given), state)
            found.append(y)
        return torch.stack(found, 1), state

    parallel = tt.FullAttention(0.5) if isinstance(recurrent, tt.RecurrentFullAttention) else (
        tt.CausalLinearAttention(E, recurrent.feature_map, float(recurrent.kind.split("=")[1])))
    given = [t.detach().double().requires_grad_() for t in tensors()]
    y, state = steps(given)
    wanted = parallel(*given, tt.TriangularCausalMask(L))
    assert y.dtype == torch.float64
    for a, b in zip([y, *torch.autograd.grad(y.square().sum(), given)],
                    [wanted, *torch.autograd.grad(wanted.square().sum(), given)]):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        narrow, _ = steps([t.detach().float() for t in given])
        torch.testing.assert_close(narrow.double(), y, rtol=1e-4, atol=1e-5)
        one = [t[:, 0] for t in given]
        _, state = recurrent(*one)
        again = pickle.loads(pickle.dumps(copy.deepcopy(state)))[[1, 0]]
        assert len(again) == N and len(state[1]) == len(state[:1]) == len(state[np.int64(1)]) == 1
        for wrong in (None, (0, 1), [[0, 1]], N):
            with pytest.raises(IndexError, match="sequences"):
                state[wrong]
        second, _ = recurrent(*(t.flip(0) for t in one), again)
        torch.testing.assert_close(second.flip(0), recurrent(*one, state.copy())[0], rtol=1e-12,
                                   atol=1e-12)
        for wrong in ([t[:1] for t in one], [one[0], one[1], one[2][:, :1]]):
            with pytest.raises(tarn.InvalidArgument, match="has shape"):
                recurrent(*wrong, state)
        with pytest.raises(tarn.InvalidArgument, match="with such tensors"):
            recurrent(*(t.float() for t in one), state)
        with pytest.raises(tarn.InvalidArgument, match="another kind of attention"):
            tt.RecurrentLinearAttention(E, eps=0.3)(*one, state)


def test_f64_steps_end_where_f32_steps_do():
    one = [t.detach().double()[:, 0] for t in tensors()]
    full = tt.RecurrentFullAttention(max_length=1)
    _, state = full(*one)
    with pytest.raises(tarn.InvalidArgument, match="is full: it has 1 positions"):
        full(*one, state)
    with pytest.raises(tarn.InvalidArgument, match="'positive' is not available"):
        tt.RecurrentLinearAttention(E, "positive")(*one)


@pytest.mark.parametrize("recurrent", RECURRENT)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_steps_of_no_sequences_are_empty(recurrent, dtype):
    none = [torch.zeros(0, H, width, dtype=dtype) for width in (E, E, D)]
    state = None
    for _ in range(2):
        y, state = recurrent(*none, state)
        assert y.shape == (0, H, D) and y.dtype == dtype and len(state) == 0
        state = pickle.loads(pickle.dumps(state.copy()))
    one = [torch.zeros(1, H, width, dtype=dtype) for width in (E, E, D)]
    with pytest.raises(tarn.InvalidArgument, match="query: has shape"):
        recurrent(*one, state)


def test_recurrent_modules_refuse_what_they_cannot_do():
    q, k, v = (t.detach()[:, 0] for t in tensors())
    linear, full = tt.RecurrentLinearAttention(E), tt.RecurrentFullAttention(max_length=1)
    _, state = full(q, k, v)
    with pytest.raises(tarn.InvalidArgument, match="is full: it has 1 positions"):
        full(q, k, v, state)
    with pytest.raises(tarn.InvalidArgument, match="another kind of attention"):
        linear(q, k, v, state)
    with pytest.raises(tarn.InvalidArgument, match="are both given"):
        full(q, k, v, state, state)
    with pytest.raises(tarn.InvalidArgument, match="state is list"):
        linear(q, k, v, [])
    with pytest.raises(tarn.InvalidArgument, match="must not require gradients"):
        linear(q.requires_grad_(), k, v)
    with pytest.raises(tarn.InvalidArgument, match="must not require gradients"):
        tt.RecurrentLinearAttention(E, torch.nn.Linear(E, 3))(q.detach(), k, v)
    with torch.no_grad():
        _, state = linear(q, k, v)
    with pytest.raises(tarn.InvalidArgument, match="query: has shape"):
        linear(q[:1].detach(), k[:1], v[:1], state)
    with state._lock, pytest.raises(tarn.BusyError):
        linear(q.detach(), k, v, state)


# ---- In somebody's model --------------------------------------------------------


class Layer(torch.nn.Module):
    """Projections around an attention, as fast_transformers' AttentionLayer."""

    def __init__(self, attention, width, heads):
        super().__init__()
        self.attention, self.heads = attention, heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x, attn_mask):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, self.heads, width // self.heads).unbind(2)
        return x + self.out(self.attention(q, k, v, attn_mask, None, None).reshape(x.shape))


class Plain(torch.nn.Module):
    def forward(self, q, k, v, *masks):
        return d.linear(*(t.transpose(1, 2) for t in (q, k, v)), True).transpose(1, 2)


def trained(attention):
    torch.manual_seed(0)
    model = torch.nn.ModuleList([Layer(attention, 12, H) for _ in range(2)])
    x, target = torch.randn(N, 9, 12), torch.randn(N, 9, 12)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(10):
        y = x
        for layer in model:
            y = layer(y, tt.TriangularCausalMask(9))
        loss = (y - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item(), model


def test_a_model_trains_as_with_a_plain_attention():
    (ours, model), (plain, _) = trained(tt.CausalLinearAttention()), trained(Plain())
    assert ours == pytest.approx(plain, rel=1e-4)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    again = copy.deepcopy(model)
    x = torch.randn(1, 4, 12)
    assert torch.equal(again[0](x, None), model[0](x, None))
    assert "linear:eps=1e-06" in repr(model)


# ---- Refusals -------------------------------------------------------------------


def test_tensors_that_cannot_be_read_are_refused():
    q, k, v = (t.detach() for t in tensors())
    for wrong, sentence in (
            (q.to("meta"), "queries: is on meta; it must be on the CPU"),
            (q.double(), "keys: is torch.float32; it must be torch.float64"),
            (q.long(), "queries: is torch.int64"),
            (q.to_sparse(), "queries: is torch.sparse"),
            (q.tolist(), "queries: is list; it must be a tensor"),
            (q[0], r"queries: has shape \(7, 3, 4\); it must be"),
            (q[:, :3], "keys is 7 and queries is 3"),
            (q[:1], "has shape"),
            (q[..., :2], "keys: has shape"),
            (q[:0], "has shape"),
            (None, "queries: is NoneType")):
        with pytest.raises(tarn.InvalidArgument, match=sentence):
            tt.attention(wrong, k, v)
        with pytest.raises(tarn.InvalidArgument):
            tt.CausalLinearAttention()(wrong, k, v)
    for keys, values, causal, blamed in (
            (k, v[:, :6], True, "values"), (k[:, :6], v, True, "keys"),
            (k, v[:, :6], False, "values"), (k[:, :6], v, False, "values"),
            (k[:, :6], v[:, :6], True, "keys is 6 and queries is 7"), (k, v[:1], True, "values"),
            (k[:, :, :2], v, True, "keys"), (k, v[:, :, :2], True, "values")):
        for module in (lambda *a: tt.attention(*a, causal=causal),
                       tt.CausalLinearAttention() if causal else tt.LinearAttention()):
            with pytest.raises(tarn.InvalidArgument, match=blamed):
                module(q, keys, values)
    with pytest.raises(tarn.InvalidArgument, match="values: has shape"):
        tt.LinearAttention()(q, k, v[:, :6], key_lengths=[7, 7])
    with pytest.raises(tarn.InvalidArgument, match="K: has shape"):
        tt.causal_dot_product(q, k[:1], v)
    with pytest.raises(tarn.InvalidArgument, match="have width 4; it must be query_dimensions, 8"):
        tt.LinearAttention(8)(q, k, v)
    odd = torch.frombuffer(bytearray(4 * q.numel() + 1), dtype=torch.uint8)[1:]
    try:
        odd = odd.view(torch.float32).view(q.shape)
    except RuntimeError:
        return
    with pytest.raises(tarn.InvalidArgument, match="not aligned"):
        tt.attention(odd, k, v)


def test_arguments_that_cannot_be_done_are_refused():
    for make, sentence in (
            (lambda: tt.FullAttention(attention_dropout=0.1),
             "attention_dropout is 0.1; it must be 0"),
            (lambda: tt.FullAttention(softmax_temp=-1), "softmax_temp is -1"),
            (lambda: tt.FullAttention(event_dispatcher="x"), "event_dispatcher"),
            (lambda: tt.LinearAttention(4, feature_map=3), "feature_map is int"),
            (lambda: tt.LinearAttention(4, eps="x"), "eps is str")):
        with pytest.raises(tarn.InvalidArgument, match=sentence):
            make()
    with pytest.raises(tarn.UnknownName, match="unknown name 'nope'"):
        tt.LinearAttention(4, feature_map="nope")(*tensors())
