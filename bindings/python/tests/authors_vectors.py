# SPDX-License-Identifier: MIT
"""Makes authors_vectors.npz with the authors' fast_transformers: python authors_vectors.py

Parameters, inputs and outputs of small transformers, for tests where it is not installed."""
from pathlib import Path

import numpy as np
import torch

SIZES = dict(n_layers=2, n_heads=2, query_dimensions=4, value_dimensions=4,
             feed_forward_dimensions=12, dropout=0.0)
LENGTHS = [5, 7]

# name: attention, whether causal, whether recurrent
CASES = {"full": ("full", False, False), "causal full": ("full", True, False),
         "linear": ("linear", False, False), "causal-linear": ("causal-linear", True, False),
         "recurrent linear": ("linear", True, True), "recurrent full": ("full", True, True)}


def run(builders, masking, name, x, parameters=None):
    """The model of a case, and its outputs for x (N, L, F)."""
    kind, causal, recurrent = CASES[name]
    builder = builders.RecurrentEncoderBuilder if recurrent else builders.TransformerEncoderBuilder
    arguments = dict(SIZES, attention_type=kind)
    if kind == "full":
        arguments["attention_dropout"] = 0.0
    model = builder.from_kwargs(**arguments).get()
    if parameters is not None:
        model.load_state_dict(parameters)
    L = x.shape[1]
    if recurrent:
        state, outputs = None, []
        for i in range(L):
            y, state = model(x[:, i], state)
            outputs.append(y)
        return model, torch.stack(outputs, 1)
    mask = masking.TriangularCausalMask(L) if causal else masking.FullMask(L)
    return model, model(x, mask, masking.LengthMask(torch.tensor(LENGTHS), max_len=L))


def main():
    import fast_transformers.builders as builders
    import fast_transformers.masking as masking
    torch.manual_seed(1)
    out = {}
    for name in CASES:
        x = torch.randn(2, 7, 8)
        model, _ = run(builders, masking, name, x)
        for value in model.parameters():
            torch.nn.init.normal_(value, 0.1, 0.4)
        parameters = model.state_dict()
        _, y = run(builders, masking, name, x, parameters)
        arrays = dict(parameters, x=x, y=y)
        out.update({f"{name}/{key}": value.detach().numpy() for key, value in arrays.items()})
    np.savez_compressed(Path(__file__).with_name("authors_vectors.npz"), **out)


if __name__ == "__main__":
    main()
