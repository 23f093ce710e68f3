# SPDX-License-Identifier: MIT
"""tarn.fast_transformers beside the original, where that is installed: values, gradients, states,
checkpoints and defaults are the same."""
import copy
import importlib
import inspect
import importlib.metadata
import io
import re
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("fast_transformers")

import fast_transformers.attention as theirs_attention  # noqa: E402
import fast_transformers.builders as theirs_builders  # noqa: E402
import fast_transformers.feature_maps as theirs_maps  # noqa: E402
import fast_transformers.masking as theirs_masks  # noqa: E402
import fast_transformers.recurrent.attention as theirs_recurrent  # noqa: E402
import tarn.fast_transformers as ours  # noqa: E402

torch.qr = torch.linalg.qr  # which their orthogonal maps need, and newer versions lack

N, L, S, H, E, D = 2, 9, 6, 3, 4, 5
SMALL = dict(n_layers=2, n_heads=2, query_dimensions=4, value_dimensions=4,
             feed_forward_dimensions=12)


def close(found, wanted, limit=1e-5):
    torch.testing.assert_close(found, wanted, rtol=limit, atol=limit)


def tensors(keys=L, requires_grad=True):
    torch.manual_seed(0)
    return [torch.randn(shape, requires_grad=requires_grad)
            for shape in ((N, L, H, E), (N, keys, H, E), (N, keys, H, D))]


def masks(module, kind, keys=L, lengths=None):
    attn = dict(full=lambda: module.FullMask(L, keys),
                causal=lambda: module.TriangularCausalMask(L),
                banded=lambda: module.FullMask(torch.ones(L, keys).tril(1).triu(-4).bool()))[kind]()
    of_keys = module.FullMask(N, keys) if lengths is None else module.LengthMask(
        torch.tensor(lengths), max_len=keys)
    return attn, module.FullMask(N, L), of_keys


def both(name, mask, keys=L, lengths=None, **arguments):
    """Outputs and gradients of an attention of theirs and of ours."""
    for attention, masking in ((theirs_attention, theirs_masks), (ours.attention, ours.masking)):
        given = tensors(keys)
        module = getattr(attention, name)(**arguments)
        y = module(*given, *masks(masking, mask, keys, lengths))
        yield [y, *torch.autograd.grad(y.square().sum(), given)]


def no_dropout(**more):
    return dict(attention_dropout=0.0, **more)


CASES = [
    ("LinearAttention", "full", L, None, dict(query_dimensions=E)),
    ("LinearAttention", "full", S, [3, 6], dict(query_dimensions=E)),
    ("LinearAttention", "full", S, None, dict(query_dimensions=E, eps=0.1)),
    ("CausalLinearAttention", "causal", L, None, dict(query_dimensions=E)),
    ("CausalLinearAttention", "causal", L, [4, 9], dict(query_dimensions=E)),
    ("FullAttention", "full", S, None, no_dropout()),
    ("FullAttention", "full", S, [3, 6], no_dropout(softmax_temp=0.3)),
    ("FullAttention", "causal", L, None, no_dropout()),
    ("FullAttention", "causal", L, [4, 9], no_dropout()),
    ("FullAttention", "banded", S, None, no_dropout()),
    ("FullAttention", "banded", L, [7, 9], no_dropout(softmax_temp=1.5)),
    ("LocalAttention", "full", L, None, no_dropout(local_context=4)),
    ("LocalAttention", "full", L, None, no_dropout(local_context=5, softmax_temp=0.7)),
    ("LocalAttention", "causal", L, None, no_dropout(local_context=5)),
    ("LocalAttention", "banded", L, None, no_dropout(local_context=5)),
    ("LocalAttention", "full", S, None, no_dropout(local_context=7)),
    ("LocalAttention", "full", L + 4, None, no_dropout(local_context=6)),
    ("LocalAttention", "banded", S, None, no_dropout(local_context=7)),
    ("ExactTopKAttention", "full", S, None, no_dropout(topk=3)),
    ("ExactTopKAttention", "causal", L, None, no_dropout(topk=1)),
    ("ExactTopKAttention", "full", S, [4, 6], no_dropout(topk=4)),
]


@pytest.mark.parametrize("name, mask, keys, lengths, arguments", CASES)
def test_attentions_have_their_values_and_gradients(name, mask, keys, lengths, arguments):
    wanted, found = both(name, mask, keys, lengths, **arguments)
    for a, b in zip(found, wanted):
        assert a.shape == b.shape
        close(a, b, 2e-5)


@pytest.mark.parametrize("keys", [5, 12])
def test_causal_linear_attention_takes_other_numbers_of_keys(keys):
    given = tensors(keys, requires_grad=False)
    mine = masks(ours.masking, "causal", keys)
    found = ours.attention.CausalLinearAttention(E)(*given, *mine)
    q, k, v = given
    k, v = (x[:, :L] if keys > L else torch.cat([x, x.new_zeros(N, L - keys, *x.shape[2:])], 1)
            for x in (k, v))
    k, weight = torch.nn.functional.elu(k) + 1, (torch.arange(L) < keys).float()
    q, k = torch.nn.functional.elu(q) + 1, k * weight[None, :, None, None]
    weights = torch.einsum("nlhe,nshe->nhls", q, k).tril()
    wanted = torch.einsum("nhls,nshd->nlhd", weights, v) / (
        weights.sum(-1).transpose(1, 2)[..., None] + 1e-6)
    close(found, wanted)


def test_keys_in_the_middle_can_be_masked():
    seen = torch.tensor([[1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1]]).bool()
    for name, arguments in (("LinearAttention", dict(query_dimensions=E)),
                            ("FullAttention", no_dropout())):
        found = []
        for attention, masking in ((theirs_attention, theirs_masks), (ours.attention, ours.masking),
                                   (ours.attention, theirs_masks)):
            module = getattr(attention, name)(**arguments)
            attn, queries, _ = masks(masking, "full", S)
            found.append(module(*tensors(S), attn, queries, masking.FullMask(seen)))
        close(found[1], found[0])
        close(found[2], found[0])


@pytest.mark.parametrize("name, mask", [("LinearAttention", "causal"), ("LinearAttention", "banded"),
                                        ("CausalLinearAttention", "full")])
def test_masks_that_they_refuse_are_refused(name, mask):
    for attention, masking in ((theirs_attention, theirs_masks), (ours.attention, ours.masking)):
        with pytest.raises(RuntimeError, match="mask"):
            getattr(attention, name)(E)(*tensors(), *masks(masking, mask))


def test_f64_is_computed_in_f64():
    for name, mask, arguments in (("LinearAttention", "full", dict(query_dimensions=E)),
                                  ("FullAttention", "causal", no_dropout())):
        found = []
        for attention, masking in ((theirs_attention, theirs_masks), (ours.attention, ours.masking)):
            given = [x.double() for x in tensors()]
            found.append(getattr(attention, name)(**arguments)(*given, *masks(masking, mask)))
        assert found[1].dtype == torch.float64
        torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)
    causal = ours.attention.CausalLinearAttention(E)
    wide = causal(*(x.double() for x in tensors()), *masks(ours.masking, "causal"))
    close(wide.float(), causal(*tensors(), *masks(ours.masking, "causal")))
    small = [torch.randn(1, 3, 1, width, dtype=torch.float64, requires_grad=True)
             for width in (E, E, 2)]
    call = (lambda *a: causal(*a, ours.masking.TriangularCausalMask(3), None,
                              ours.masking.FullMask(1, 3)))
    assert torch.autograd.gradcheck(call, small) and torch.autograd.gradgradcheck(call, small)


def test_dropout_of_weights_is_on_in_training_only():
    mine = masks(ours.masking, "full")
    module = ours.attention.FullAttention(attention_dropout=0.5)
    given = tensors()
    assert not torch.equal(module(*given, *mine), module(*given, *mine))
    theirs_module = theirs_attention.FullAttention(attention_dropout=0.5)
    torch.manual_seed(1)
    found = module(*given, *mine)
    torch.manual_seed(1)
    close(found, theirs_module(*given, *masks(theirs_masks, "full")))
    module.eval()
    assert torch.equal(module(*tensors(), *mine), module(*tensors(), *mine))


def test_reformer_attends_as_softmax_does_when_one_chunk_has_all():
    q, _, v = (x.detach() for x in tensors())
    module = ours.attention.ReformerAttention(chunk_size=32, rounds=2, attention_dropout=0.0)
    y = module(q, q, v, *masks(ours.masking, "full"))
    assert y.shape == v.shape and bool(torch.isfinite(y).all())
    module.eval()
    args = (q, q, v, *masks(ours.masking, "full"))
    assert torch.equal(module(*args), module(*args))
    with pytest.raises(RuntimeError, match="masks"):
        module(q, q, v, *masks(ours.masking, "causal"))


@pytest.mark.parametrize("keys", [S, L, L + 3])
def test_local_products_are_theirs(keys):
    import fast_transformers.local_product as one
    import tarn.fast_transformers.local_product as two
    q, k, v = (x.detach().transpose(1, 2).contiguous().requires_grad_() for x in tensors(keys))
    mask, lengths = torch.randn(L, keys), torch.tensor([3, keys])
    found = []
    for module in (one, two):
        dots = module.local_dot_product(q, k, mask, lengths, 4)
        y = module.local_weighted_average(torch.softmax(dots, -1), v)
        direct = module.local_product_cpu
        slope = torch.cos(dots.detach())
        found.append([dots, y, *torch.autograd.grad(y.square().sum(), (q, k, v)),
                      *direct.local_dot_backward(q, k, lengths, slope, 4),
                      *direct.local_weighted_average_backward(slope, v, torch.sin(y.detach()))])
    for a, b in zip(*found):
        close(b, a)


# ---- Feature maps ---------------------------------------------------------------

MAPS = [("RandomFourierFeatures", {}), ("RandomFourierFeatures", dict(n_dims=6, softmax_temp=0.3)),
        ("SmoothedRandomFourierFeatures", dict(n_dims=7, smoothing=0.3)), ("Favor", {}),
        ("SmoothedRandomFourierFeatures", {}), ("Favor", dict(n_dims=6, stabilize=True)),
        ("GeneralizedRandomFeatures", dict(n_dims=6)), ("GeneralizedRandomFeatures", {})]


@pytest.mark.parametrize("name, arguments", MAPS)
def test_feature_maps_have_their_values(name, arguments):
    one, two = (getattr(module, name)(E, **arguments) for module in (theirs_maps, ours.feature_maps))
    one.new_feature_map("cpu")
    assert {k: v.shape for k, v in one.state_dict().items()} == {
        k: v.shape for k, v in two.state_dict().items()}
    two.load_state_dict(one.state_dict())
    x = torch.randn(N, L, H, E)
    close(two.forward_queries(x), one.forward_queries(x))
    close(two.forward_keys(x), one.forward_keys(x))


@pytest.mark.parametrize("name, arguments", MAPS)
def test_recurrent_steps_keep_the_feature_map_of_their_sequence(name, arguments):
    if arguments.get("stabilize"):
        pytest.skip("depends on the whole sequence")
    module = ours.recurrent.attention.RecurrentLinearAttention(
        E, getattr(ours.feature_maps, name).factory(**arguments))
    q, k, v = (x.detach() for x in tensors())
    state = None
    for i in range(L):
        y, state = module(q[:, i], k[:, i], v[:, i], state)
    phi = module.feature_map
    weights = torch.einsum("nhe,nshe->nhs", phi(q[:, -1]), phi(k))
    wanted = torch.einsum("nhs,nshd->nhd", weights, v) / (weights.sum(-1)[..., None] + 1e-6)
    close(y, wanted, 1e-4)


def test_redraws_are_as_theirs():
    for module in (theirs_maps, ours.feature_maps):
        phi = module.RandomFourierFeatures(E, redraw=3, deterministic_eval=True)
        drawn = []
        for _ in range(8):
            phi.new_feature_map("cpu")
            drawn.append(phi.omega.clone())
        assert [torch.equal(drawn[i], drawn[i + 1]) for i in range(7)] == [
            True, True, False, True, True, False, True]
        phi.eval()
        phi.new_feature_map("cpu")
        phi.new_feature_map("cpu")
        assert torch.equal(phi.omega, drawn[-1])
    omega = torch.empty(5, 12)
    ours.feature_maps.fourier_features.orthogonal_random_matrix_(omega)
    products = omega[:, :5].t() @ omega[:, :5]
    close(products, torch.diag(products.diag()), 1e-4)


# ---- Masks ----------------------------------------------------------------------


def test_masks_answer_as_theirs():
    tensor = torch.ones(4, 4).tril().bool()
    odd = torch.tensor([[1, 0, 1], [1, 1, 0]]).bool()
    for make in (lambda m: m.FullMask(tensor), lambda m: m.FullMask(3), lambda m: m.FullMask(3, 4),
                 lambda m: m.FullMask(N=2, M=1), lambda m: m.FullMask(odd),
                 lambda m: m.FullMask(mask=odd), lambda m: m.TriangularCausalMask(4),
                 lambda m: m.TriangularCausalMask(1), lambda m: m.LengthMask(torch.tensor([1, 3])),
                 lambda m: m.LengthMask(torch.tensor([1, 3]), max_len=5),
                 lambda m: m.LengthMask(torch.tensor([2, 2]))):
        one, two = make(theirs_masks), make(ours.masking)
        assert tuple(one.shape) == tuple(two.shape)
        for name in ("bool_matrix", "float_matrix", "additive_matrix", "additive_matrix_finite"):
            assert torch.equal(getattr(one, name), getattr(two, name)), name
        assert bool(one.all_ones) == two.all_ones
        assert bool(one.lower_triangular) == two.lower_triangular
        try:
            lengths = one.lengths
        except ValueError:
            with pytest.raises(ValueError, match="not a length mask"):
                two.lengths
        else:
            assert torch.equal(lengths, two.lengths)
    for wrong in (lambda m: m.FullMask(tensor.float()), lambda m: m.FullMask()):
        for module in (theirs_masks, ours.masking):
            with pytest.raises(ValueError):
                wrong(module)


# ---- Transformers ---------------------------------------------------------------


def pair(builder, **arguments):
    """A model of theirs and of ours with the same parameters, through a file."""
    torch.manual_seed(3)
    one = getattr(theirs_builders, builder).from_kwargs(**SMALL, **arguments).get().eval()
    torch.manual_seed(3)
    two = getattr(ours.builders, builder).from_kwargs(**SMALL, **arguments).get().eval()
    assert [k for k, _ in one.named_parameters()] == [k for k, _ in two.named_parameters()]
    for a, b in zip(one.parameters(), two.parameters()):
        assert torch.equal(a, b)  # the same numbers from the same seed
    for value in one.parameters():
        torch.nn.init.normal_(value, 0.1, 0.4)
    file = io.BytesIO()
    torch.save(one.state_dict(), file)
    file.seek(0)
    two.load_state_dict(torch.load(file))
    return one, two


@pytest.mark.parametrize("kind, mask", [("full", "full"), ("full", "causal"), ("linear", "full"),
                                        ("causal-linear", "causal")])
@pytest.mark.parametrize("options", [{}, dict(activation="gelu", final_normalization=False)])
def test_their_checkpoints_have_the_same_outputs_and_gradients(kind, mask, options):
    one, two = pair("TransformerEncoderBuilder", attention_type=kind, **options)
    x = torch.randn(N, L, 8)
    lengths, found = torch.tensor([5, L]), []
    for model, masking in ((one, theirs_masks), (two, ours.masking)):
        attn = masking.TriangularCausalMask(L) if mask == "causal" else masking.FullMask(L)
        y = model(x, attn_mask=attn, length_mask=masking.LengthMask(lengths, max_len=L))
        whole = model(x) if mask == "full" else model(x, attn_mask=attn)
        y[0, :5].square().sum().backward()
        found.append([y, whole, *(p.grad for p in model.parameters())])
    for a, b in zip(*found):
        close(b, a, 1e-4 if a.dim() < 3 else 1e-5)


@pytest.mark.parametrize("kind", ["linear", "full"])
def test_recurrent_encoders_have_their_outputs_and_states(kind):
    one, two = pair("RecurrentEncoderBuilder", attention_type=kind)
    x = torch.randn(N, L, 8, requires_grad=True)
    parallel = ours.builders.TransformerEncoderBuilder.from_kwargs(
        **SMALL, attention_type={"linear": "causal-linear"}.get(kind, kind)).get().eval()
    parallel.load_state_dict(two.state_dict())
    whole = parallel(x, attn_mask=ours.masking.TriangularCausalMask(L))
    states, outputs = [None, None], [[], []]
    for i in range(L):
        for j, model in enumerate((one, two)):
            y, states[j] = model(x[:, i], states[j])
            outputs[j].append(y)
    found = torch.stack(outputs[1], 1)
    close(found, torch.stack(outputs[0], 1))
    close(found, whole)
    for a, b in zip(*states):
        assert type(a) is type(b) is list
        for mine, other in zip(b, a):
            close(mine, other)
    weight = torch.randn_like(found)
    close(torch.autograd.grad((found * weight).sum(), x)[0],
          torch.autograd.grad((whole * weight).sum(), x)[0], 1e-4)


def test_states_are_tensors_that_index_and_pickle():
    _, model = pair("RecurrentEncoderBuilder", attention_type="linear")
    x = torch.randn(3, L, 8)
    with torch.no_grad():
        _, state = model(x[:, 0])
        picked = [[part[[2, 0]] for part in layer] for layer in state]
        file = io.BytesIO()
        torch.save(copy.deepcopy(picked), file)
        file.seek(0)
        y, _ = model(x[:, 1], state)
        again, _ = model(x[[2, 0], 1], torch.load(file))
        close(again, y[[2, 0]])
        _, after = model(x[:, 1], state)
        assert torch.equal(model(x[:, 1], state)[0], y)  # a step leaves the state before it alone


@pytest.mark.parametrize("own, cross", [("full", "full"), ("linear", "linear"), ("full", "linear")])
def test_decoders_have_their_outputs(own, cross):
    parallel_own = {"linear": "causal-linear"}.get(own, own)
    one, two = pair("TransformerDecoderBuilder", self_attention_type=parallel_own,
                    cross_attention_type=cross)
    steps_one, steps_two = pair("RecurrentDecoderBuilder", self_attention_type=own,
                                cross_attention_type=cross)
    steps_two.load_state_dict(two.state_dict())
    steps_one.load_state_dict(two.state_dict())
    x, memory, found = torch.randn(N, L, 8), torch.randn(N, S, 8), []
    for model, steps, masking in ((one, steps_one, theirs_masks), (two, steps_two, ours.masking)):
        lengths = masking.LengthMask(torch.tensor([4, S]), max_len=S)
        whole = model(x, memory, x_mask=masking.TriangularCausalMask(L), memory_length_mask=lengths)
        state, outputs = None, []
        for i in range(L):
            y, state = steps(x[:, i], memory, lengths, state)
            outputs.append(y)
        found.append([whole, torch.stack(outputs, 1), *state[1][0], *state[1][1]])
    for a, b in zip(*found):
        close(b, a)
    close(found[1][1], found[1][0])


def test_training_with_dropout_draws_as_theirs():
    one, two = pair("TransformerEncoderBuilder", attention_type="full", dropout=0.3,
                    attention_dropout=0.2)
    x, found = torch.randn(N, L, 8), []
    for model in (one, two):
        model.train()
        torch.manual_seed(5)
        found.append(model(x))
    close(found[1], found[0])


# ---- Builders, registries, events -----------------------------------------------


def test_builders_refuse_what_theirs_refuse():
    for builders in (theirs_builders, ours.builders):
        builder = builders.TransformerEncoderBuilder()
        for name, value, error in (("nope", 3, AttributeError), ("attention_type", "x", ValueError),
                                   ("activation", "tanh", ValueError),
                                   ("attention_dropout", "x", ValueError)):
            with pytest.raises(error):
                setattr(builder, name, value)
        with pytest.raises(ValueError, match="no parameter 'foo'"):
            builders.AttentionBuilder.from_kwargs(foo=1)
        with pytest.raises(ValueError, match="query_dimensions"):
            builders.AttentionBuilder().get("linear")
        builders.TransformerEncoderBuilder.from_dictionary({"nope": 1}, strict=False)
        with pytest.raises(TypeError):
            builders.AttentionBuilder.from_kwargs(query_dimensions=4).get("linear:full")
        made = builders.AttentionBuilder.from_kwargs(
            query_dimensions=4, length_limit=3).get("conditional-full:linear")
        assert type(made.other_attention).__name__ == "LinearAttention" and made.length_limit == 3


def test_builders_have_their_defaults():
    for name in ("TransformerEncoderBuilder", "RecurrentEncoderBuilder",
                 "TransformerDecoderBuilder", "RecurrentDecoderBuilder"):
        one, two = getattr(theirs_builders, name)(), getattr(ours.builders, name)()
        for key in ("n_layers", "n_heads", "feed_forward_dimensions", "query_dimensions",
                    "value_dimensions", "dropout", "activation", "final_normalization",
                    "event_dispatcher"):
            assert getattr(one, key) == getattr(two, key)
        assert {k: v.shape for k, v in one.get().state_dict().items()} == {
            k: v.shape for k, v in two.get().state_dict().items()}


LEFT_OUT = {"clustered", "improved-clustered", "causal-improved-clustered"}


def test_every_module_and_signature_of_theirs_is_here():
    import pkgutil
    without = ("_cpu", "cluster", "aggregate", "hashing", "sparse_product")
    for found in pkgutil.walk_packages(theirs.__path__, "fast_transformers."):
        if any(word in found.name for word in without):
            continue
        one = importlib.import_module(found.name)
        two = importlib.import_module("tarn." + found.name)
        for name, value in vars(one).items():
            exported = inspect.isclass(value) and (
                value.__module__ == found.name or one.__file__.endswith("__init__.py"))
            if not exported or name.startswith("_") or any(
                    word in name for word in ("Cluster", "DotProduct", "LocalWeightedAverage")):
                continue
            mine = getattr(two, name)
            for method in ("__init__", "forward"):
                if method in vars(value) and name not in ("Spec", "Choice"):
                    a, b = (inspect.signature(getattr(x, method)) for x in (value, mine))
                    if list(a.parameters) == ["self"]:
                        continue
                    assert list(a.parameters) == list(b.parameters), (name, method)
                    assert [p.default for p in a.parameters.values() if p.kind is not p.VAR_KEYWORD
                            and not callable(p.default) and p.default != []] == [
                        p.default for p in b.parameters.values() if p.kind is not p.VAR_KEYWORD
                        and not callable(p.default) and p.default != ()], (name, method)
    assert set(theirs_builders.AttentionBuilder().available_attentions) - LEFT_OUT == set(
        ours.builders.AttentionBuilder().available_attentions)


def test_a_registered_attention_can_be_built():
    class Mean(torch.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def forward(self, queries, keys, values, *masks):
            return self.scale * values.mean(1, keepdim=True).expand_as(values)

    registry = ours.attention_registry
    registry.AttentionRegistry.register("mean", Mean, [("scale", registry.Optional(
        registry.Float, 2.0))])
    model = ours.builders.TransformerEncoderBuilder.from_kwargs(
        **SMALL, attention_type="mean", scale=3.0).get()
    assert model.layers[0].attention.inner_attention.scale == 3.0
    assert model(torch.randn(N, L, 8)).shape == (N, L, 8)


def test_events_bring_matrices_and_projections():
    from tarn.fast_transformers.events import AttentionEvent, EventDispatcher, QKVEvent
    from tarn.fast_transformers.events.filters import from_layer, layer_name_contains
    model = ours.builders.TransformerEncoderBuilder.from_kwargs(
        **SMALL, attention_dropout=0.0, event_dispatcher="mine").get().eval()
    x = torch.randn(N, L, 8)
    quiet = model(x)
    dispatcher, found = EventDispatcher.get("mine"), []
    second = model.layers[1].attention
    dispatcher.listen(layer_name_contains(model, "layers.1") & AttentionEvent, found.append)
    dispatcher.listen(from_layer(second) & QKVEvent, lambda event: found.append(event))
    close(model(x), quiet)
    assert [type(event) for event in found] == [QKVEvent, AttentionEvent]
    assert found[0].queries.shape == (N, L, 2, 4)
    close(found[1].attention_matrix.sum(-1), torch.ones(N, 2, L))
    dispatcher.clear()
    model(x)
    assert len(found) == 2 and not dispatcher.has_listeners


# ---- Weights of other libraries, mirrors, install() -----------------------------


def test_torchs_own_encoder_can_be_loaded():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    model = ours.builders.TransformerEncoderBuilder.from_kwargs(
        **SMALL, final_normalization=False).get().eval()
    model.load_state_dict(ours.weight_mapper.PytorchMapper().map(encoder.state_dict()))
    x = torch.randn(N, L, 8)
    close(model(x), encoder(x))


def test_mappers_map_as_theirs():
    import fast_transformers.weight_mapper as theirs_mapper
    bert = [f"layer.3.{name}.{kind}" for kind in ("weight", "bias") for name in (
        "attention.self.query", "attention.self.key", "attention.self.value",
        "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
        "output.dense", "output.LayerNorm")] + ["other"]
    longformer = bert[:-1] + ["layer.0.attention.self.query_global.weight"]
    for name, keys in (("HugginfaceBertEncoderMapper", bert), ("LongformerMapper", longformer)):
        state = {key: torch.randn(1) for key in keys}
        one = getattr(theirs_mapper, name)().map(state)
        two = getattr(ours.weight_mapper, name)().map(state)
        assert {k: v.item() for k, v in one.items() if "_global" not in k} == {
            k: v.item() for k, v in two.items()}


def test_mirrors_share_parameters():
    one = ours.builders.TransformerEncoderBuilder.from_kwargs(**SMALL).get()
    two = ours.builders.RecurrentEncoderBuilder.from_kwargs(**SMALL).get()
    ours.utils.make_mirror(one, two)
    assert all(a is b for a, b in zip(one.parameters(), two.parameters()))


CPU_FOR_CUDA = '''
import time, torch, tarn.fast_transformers
tarn.fast_transformers.install()
torch.Tensor.cuda = torch.nn.Module.cuda = lambda self: self
torch.cuda.synchronize = lambda: None

class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return 1e3 * (other.at - self.at)

torch.cuda.Event = Event
'''


def test_the_examples_of_their_readme_run_unchanged():
    """Every one in the installed package's; a clock and the CPU stand in for a graphics card."""
    about = importlib.metadata.metadata("pytorch-fast-transformers")
    readme = about["Description"] or about.get_payload()
    examples = re.findall(r"(?m)^\.\. code:: python\n\n((?:(?: {4}.*)?\n)+)", readme)
    assert examples
    for example in map(textwrap.dedent, examples):
        check = "\nimport tarn.fast_transformers as ours\nassert builder.get().__class__.__module__" \
                ".startswith(ours.__name__) and y.shape == X.shape\n"
        done = subprocess.run([sys.executable, "-c", CPU_FOR_CUDA + example + check],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"Softmax:  .* ms\nLinear:  .* ms\n", done.stdout), done.stdout


def test_the_original_stays_unless_install_is_called():
    assert theirs.__file__ != ours.__file__ and sys.modules["fast_transformers"] is theirs
    with pytest.raises(RuntimeError, match="already been imported"):
        ours.install()
    program = """
import tarn.fast_transformers as ours
ours.install()
import fast_transformers
from fast_transformers.masking import FullMask
from fast_transformers.recurrent.attention.self_attention.linear_attention import (
    RecurrentLinearAttention)
assert fast_transformers is ours and FullMask is ours.masking.FullMask
assert ours.__spec__.name == ours.__name__ == "tarn.fast_transformers"
try:
    import fast_transformers.clustering
except ModuleNotFoundError:
    print("right")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr
