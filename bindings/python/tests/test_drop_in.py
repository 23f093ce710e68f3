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
