# SPDX-License-Identifier: MIT
"""tarn.fast_transformers without the original: stored values of its transformers, the examples of
its README, and what torch does with the models."""
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import authors_vectors  # noqa: E402
import tarn.fast_transformers as fast_transformers  # noqa: E402
from tarn.fast_transformers import _hashed  # noqa: E402
from tarn.torch import _operators  # noqa: E402

with np.load(Path(__file__).with_name("authors_vectors.npz")) as _file:
    VECTORS = {name: torch.from_numpy(_file[name]) for name in _file.files}


@pytest.mark.parametrize("name", sorted(authors_vectors.CASES))
def test_stored_checkpoints_have_the_stored_outputs(name):
    stored = {key.split("/")[1]: value for key, value in VECTORS.items()
              if key.split("/")[0] == name}
    x, y = stored.pop("x"), stored.pop("y")
    _, found = authors_vectors.run(fast_transformers.builders, fast_transformers.masking, name, x,
                                   stored)
    torch.testing.assert_close(found, y, rtol=1e-5, atol=1e-5)


def test_the_example_of_their_readme():
    builder = fast_transformers.builders.TransformerEncoderBuilder.from_kwargs(
        n_layers=8, n_heads=8, query_dimensions=64, value_dimensions=64,
        feed_forward_dimensions=1024)
    builder.attention_type = "full"
    softmax_model = builder.get()
    builder.attention_type = "linear"
    linear_model = builder.get()
    X = torch.rand(2, 100, 8 * 64)
    with torch.no_grad():
        assert softmax_model(X).shape == linear_model(X).shape == X.shape


def small(kind, builder="TransformerEncoderBuilder"):
    torch.manual_seed(0)
    return getattr(fast_transformers.builders, builder).from_kwargs(
        **authors_vectors.SIZES, attention_type=kind).get().eval()


@pytest.mark.skipif(not _operators.HAS_CUSTOM_OPERATORS, reason="needs torch 2.4")
@pytest.mark.parametrize("kind", ["full", "linear", "causal-linear"])
def test_models_compile_and_export_as_one_graph(kind):
    torch._dynamo.reset()
    model, x = small(kind), torch.randn(2, 7, 8)

    class Causal(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            masks = fast_transformers.masking
            mask = masks.TriangularCausalMask if kind == "causal-linear" else masks.FullMask
            return self.model(x, attn_mask=mask(x.shape[1]))

    causal = Causal()
    wanted = causal(x)
    compiled = torch.compile(causal, fullgraph=True, backend="aot_eager")
    found = compiled(x)
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    assert all(value.grad is not None for value in model.parameters())
    torch.testing.assert_close(torch.export.export(causal, (x,)).module()(x), wanted)


@pytest.mark.skipif(not _operators.HAS_CUSTOM_OPERATORS, reason="needs torch 2.4")
@pytest.mark.parametrize("kind", ["full", "exact-topk"])
def test_models_with_dropout_compile_as_one_graph_for_all_sizes(kind):
    """Their default drops attention weights, which torch computes."""
    from torch._dynamo.utils import counters
    torch._dynamo.reset()
    counters.clear()
    model = small(kind).train()
    assert model.layers[0].attention.inner_attention.dropout.p > 0
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=True)
    for size in (2, 7), (3, 5), (4, 9):
        y = compiled(torch.randn(*size, 8))
        y.square().sum().backward()
    assert counters["stats"]["unique_graphs"] == 1
    assert all(value.grad is not None for value in model.parameters())


@pytest.mark.parametrize("kind", ["full", "linear", "causal-linear"])
def test_models_copy_and_pickle(kind):
    model, x = small(kind), torch.randn(2, 7, 8)
    mask = fast_transformers.masking.TriangularCausalMask(7) if kind == "causal-linear" else None
    wanted = model(x, attn_mask=mask)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x, attn_mask=mask), wanted)


def test_autocast_and_narrow_models():
    model, x = small("linear"), torch.randn(2, 7, 8)
    wanted = model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(model(x).float(), wanted, rtol=0.1, atol=0.1)
    narrow = copy.deepcopy(model).bfloat16()
    torch.testing.assert_close(narrow(x.bfloat16()).float(), wanted, rtol=0.1, atol=0.1)


def test_what_is_left_out_is_said_by_name():
    with pytest.raises(ValueError, match="'clustered' is not an available attention type; available"):
        fast_transformers.builders.AttentionBuilder().get("clustered")


# ---- Reformer in torch ----------------------------------------------------------


def by_definition(q, v, lengths, rounds, planes, chunk, causal, scale):
    """(N, L, H, E) with the matrix of all positions, from the same random planes."""
    N, L, H, E = q.shape
    q, v = q.transpose(1, 2), v.transpose(1, 2)
    there = (torch.arange(L) < lengths.view(N, 1, 1)).expand(N, H, L)
    counts = torch.zeros(N, H, L, L, dtype=q.dtype)
    for _ in range(rounds):
        projected = q @ torch.randn(E, planes, dtype=q.dtype)
        bucket = torch.cat([projected, -projected], -1).argmax(-1).masked_fill(~there, 2 * planes)
        place = bucket.sort(dim=-1, stable=True).indices.argsort(-1) // chunk
        behind = place.unsqueeze(-1) - place.unsqueeze(-2)
        counts += (behind == 0) | (behind == 1)
    counts = counts * there.unsqueeze(-2) * (1 - torch.eye(L))
    counts = counts.tril() if causal else counts
    blind = counts.sum(-1, keepdim=True) == 0
    counts = torch.where(blind, torch.eye(L, dtype=q.dtype), counts)
    k = q / (q.square().sum(-1, keepdim=True) + 1e-6 * E).sqrt()
    y = (scale * q @ k.transpose(-1, -2) + counts.log()).softmax(-1) @ v
    return (y * there.unsqueeze(-1)).transpose(1, 2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("chunk, planes, rounds, length", [(4, 2, 3, 16), (4, 2, 1, 13),
                                                           (5, 1, 2, 7), (32, 4, 2, 9), (1, 3, 4, 6)])
def test_reformer_in_torch_is_its_definition(causal, chunk, planes, rounds, length):
    torch.manual_seed(0)
    q, v = (torch.randn(2, length, 3, 4, dtype=torch.float64) for _ in range(2))
    lengths = torch.tensor([length, length - 2])
    same = dict(rounds=rounds, planes=planes, chunk=chunk, causal=causal, scale=0.7)
    torch.manual_seed(1)
    found = _hashed.attention(q, v, lengths, dropout=torch.nn.Identity(), **same)
    torch.manual_seed(1)
    torch.testing.assert_close(found, by_definition(q, v, lengths, **same))


@pytest.mark.parametrize("causal", [True, False])
def test_reformer_with_dropout_is_tarns_without(causal):
    """In one chunk nothing depends on hashes."""
    torch.manual_seed(0)
    q, v = (torch.randn(2, 12, 3, 4, requires_grad=True) for _ in range(2))
    module = fast_transformers.attention.ReformerAttention(masked=causal, attention_dropout=0.0)
    masking = fast_transformers.masking
    masks = (masking.FullMask(12), masking.LengthMask(torch.tensor([12, 12])),
             masking.LengthMask(torch.tensor([12, 9])))
    y = module(q, q, v, *masks)
    slopes = torch.autograd.grad(y.square().sum(), (q, v))
    same = dict(rounds=4, planes=8, chunk=32, causal=causal, scale=0.5)
    again = _hashed.attention(q, v, torch.tensor([12, 9]), dropout=torch.nn.Identity(), **same)
    torch.testing.assert_close(y, again, rtol=1e-4, atol=1e-5)
    for one, other in zip(slopes, torch.autograd.grad(again.square().sum(), (q, v))):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    twice = _hashed.attention(q, v, torch.tensor([12, 9]), dropout=lambda w: 2 * w, **same)
    torch.testing.assert_close(twice[:, 1:], 2 * again[:, 1:])  # the first may see itself alone
    module.dropout.p = 0.5
    assert not torch.equal(module(q, q, v, *masks), module(q, q, v, *masks))
    module.eval()
    assert torch.equal(module(q, q, v, *masks), module(q, q, v, *masks))


def test_the_functions_of_their_extension():
    torch.manual_seed(0)
    q, k, v, dy = (torch.rand(2, 3, 9, width, requires_grad=True) for width in (4, 4, 5, 5))
    expected = torch.einsum("nhle,nhse,nhsm,ls->nhlm", q, k, v, torch.ones(9, 9).tril())
    slopes = torch.autograd.grad(expected, (q, k, v), dy)
    with torch.no_grad():
        product = torch.zeros(2, 3, 9, 5)
        fast_transformers.causal_product.causal_dot_product_cpu(q, k, v, product)
        torch.testing.assert_close(product, expected)
        found = [torch.zeros_like(x) for x in (q, k, v)]
        fast_transformers.causal_product.causal_dot_backward_cpu(q, k, v, dy, *found)
        for one, other in zip(found, slopes):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_builders_ignore_unknown_names_if_asked_to():
    Builder = fast_transformers.builders.TransformerEncoderBuilder
    assert Builder.from_kwargs(n_heads=3, foobar=1, strict=False).n_heads == 3
    with pytest.raises(ValueError, match="foobar"):
        Builder.from_kwargs(foobar=1)


def test_clustered_attentions_are_names_that_refuse():
    from tarn.fast_transformers.attention import ImprovedClusteredAttention
    builder = fast_transformers.builders.TransformerEncoderBuilder.from_kwargs(
        attention_type="linear", n_heads=2, clusters=100, iterations=10, bits=32, hash_bias=True)
    assert builder.get()(torch.zeros(1, 3, 128)).shape == (1, 3, 128)
    with pytest.raises(ValueError, match="clustered.* available: .*causal-linear"):
        builder.attention_type = "clustered"
    with pytest.raises(NotImplementedError, match="ImprovedClusteredAttention is not in tarn"):
        ImprovedClusteredAttention(clusters=10)


def with_masks():
    """Each attention with a call that makes its masks from the sizes of its tensors, as models do."""
    M, A = fast_transformers.masking, fast_transformers.attention
    drop = dict(attention_dropout=0.0)
    modules = [A.LinearAttention(4), A.CausalLinearAttention(4), A.FullAttention(**drop),
               A.LocalAttention(3, **drop), A.ExactTopKAttention(3, **drop),
               A.ReformerAttention(4, rounds=2, **drop).eval()]
    for module in modules:
        causal = isinstance(module, A.CausalLinearAttention)

        def call(q, k, v, module=module, causal=causal):
            N, L, S = len(q), q.shape[1], k.shape[1]
            mask = M.TriangularCausalMask(L) if causal else M.FullMask(L, S)
            return module(q, k, v, mask, M.FullMask(N, L), M.FullMask(N, S))
        yield module, call


def some(N=2, L=7, requires_grad=False):
    return [torch.randn(N, L, 3, width, requires_grad=requires_grad) for width in (4, 4, 5)]


def test_batches_and_sequences_may_be_empty():
    for _, call in with_masks():
        for sizes in (dict(N=0), dict(L=0)):
            given = some(**sizes, requires_grad=True)
            y = call(*given)
            assert y.shape == given[2].shape
            y.sum().backward()
            assert given[0].grad.shape == given[0].shape
    model = fast_transformers.builders.TransformerEncoderBuilder.from_kwargs(
        n_heads=2, query_dimensions=4, value_dimensions=4).get()
    assert model(torch.zeros(0, 5, 8)).shape == (0, 5, 8)


def narrow_or_wide(module):
    """Outputs and gradients of an attention with a length of 0, which 3 types compute."""
    M = fast_transformers.masking
    of_keys = M.LengthMask(torch.tensor([7, 0]), max_len=7)
    mask = M.TriangularCausalMask(7) if "Causal" in type(module).__name__ else M.FullMask(7)
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        given = [x.to(dtype).requires_grad_() for x in some()]
        y = module(*given, mask, of_keys, of_keys)
        assert y.dtype == dtype
        yield [y, *torch.autograd.grad(y.sum(), given, allow_unused=True)]


def test_sequences_without_keys_have_outputs_and_gradients_of_zero():
    A = fast_transformers.attention
    modules = [module for module, _ in with_masks()]
    modules += [A.FullAttention(attention_dropout=1e-9), A.ExactTopKAttention(3, attention_dropout=1e-9)]
    for module in modules:
        wide, *others = narrow_or_wide(module)
        if isinstance(module, A.ReformerAttention):  # hashes of f32 are others than those of f64
            others = []
        for found in (wide, *others):
            for one, expected in zip(found, wide):
                if expected is not None:
                    limit = dict(rtol=0.05, atol=0.05) if one.dtype == torch.bfloat16 else {}
                    torch.testing.assert_close(one.double(), expected, **(limit or dict(
                        rtol=1e-4, atol=1e-5)))
                    assert not one[1].any()


def test_memories_without_positions_have_outputs_of_zero():
    M, R = fast_transformers.masking, fast_transformers.recurrent.attention
    query, keys, values = torch.randn(2, 3, 4, requires_grad=True), *some()[1:]
    for module in (R.RecurrentCrossFullAttention(), R.RecurrentCrossLinearAttention(4)):
        y, _ = module(query, keys, values, M.LengthMask(torch.tensor([7, 0]), max_len=7))
        slope, = torch.autograd.grad(y.sum(), query)
        assert y[0].any() and not y[1].any() and torch.isfinite(slope).all()


@pytest.mark.parametrize("decoder", [False, True])
def test_states_of_other_numbers_of_layers_are_refused(decoder):
    builders = fast_transformers.builders
    Builder = builders.RecurrentDecoderBuilder if decoder else builders.RecurrentEncoderBuilder
    two, three = (Builder.from_kwargs(n_layers=layers, n_heads=2, query_dimensions=4,
                                      value_dimensions=4).get() for layers in (2, 3))
    given = [torch.randn(2, 8), *([torch.randn(2, 5, 8)] if decoder else [])]
    _, state = two(*given)
    with pytest.raises(ValueError, match="state is of 2 layers; there are 3"):
        three(*given, state=state)
    assert len(two(*given, state=state)[1]) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reformer_hashes_the_same_way_at_every_evaluation(dtype):
    M = fast_transformers.masking
    module = fast_transformers.attention.ReformerAttention(4, bits=8).eval()
    given = [x.to(dtype) for x in some(L=40)]
    masks = M.FullMask(40), M.FullMask(2, 40), M.FullMask(2, 40)
    before = torch.get_rng_state()
    assert torch.equal(module(*given, *masks), module(*given, *masks))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.filterwarnings("ignore")
def test_traces_and_exports_of_models():
    for _, call in with_masks():
        given = some()
        assert torch.equal(torch.jit.trace(call, tuple(some()))(*given), call(*given))
    model = fast_transformers.builders.TransformerEncoderBuilder.from_kwargs(
        n_layers=2, n_heads=2, query_dimensions=4, value_dimensions=4,
        attention_type="linear").get().eval()
    x = torch.randn(2, 5, 8)
    traced = torch.jit.trace(model, torch.randn(2, 5, 8))
    torch.testing.assert_close(traced(x), model(x))
    if _operators.HAS_CUSTOM_OPERATORS:
        program = torch.export.export(model, (torch.randn(2, 5, 8),))
        torch.testing.assert_close(program.module()(x), model(x))


def test_masks_of_a_wrong_size_are_refused_where_they_are_read():
    M = fast_transformers.masking
    q, k, v = some()
    banded = M.FullMask(torch.ones(8, 8).tril(2).triu(-2).bool())
    for module, _ in with_masks():
        mask = M.TriangularCausalMask(7) if "Causal" in type(module).__name__ else M.FullMask(7)
        with pytest.raises(ValueError, match=r"key_lengths: has shape \(3, 7\)"):
            module(q, k, v, mask, M.FullMask(2, 7), M.FullMask(3, 7))
        with pytest.raises((ValueError, NotImplementedError), match="mask"):
            module(q, k, v, banded, M.FullMask(2, 7), M.FullMask(2, 7))
        long = M.LengthMask(torch.tensor([3, 99]), max_len=7)  # all keys of the second
        whole = M.LengthMask(torch.tensor([3, 7]), max_len=7)
        args = q, k, v, mask, M.FullMask(2, 7)
        torch.testing.assert_close(module(*args, long), module(*args, whole))
