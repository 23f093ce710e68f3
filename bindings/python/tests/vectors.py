# SPDX-License-Identifier: MIT
"""Makes vectors.npz, which the tests read, with torch: python vectors.py"""
from pathlib import Path

import numpy as np
import torch

import definitions as d

B, H, N, NK, D, M = 2, 2, 7, 5, 4, 3
LENGTHS = [4, 5]

# name: definition, keys, lengths of keys
CASES = {
    "linear elu causal": (lambda q, k, v: d.linear(q, k, v, True), N, None),
    "linear elu full": (lambda q, k, v: d.linear(q, k, v, False), NK, None),
    "linear elu lengths": (lambda q, k, v: d.linear(q, k, v, False, lengths=LENGTHS), NK, LENGTHS),
    "linear relu causal": (lambda q, k, v: d.linear(q, k, v, True, "relu"), N, None),
    "softmax - causal": (lambda q, k, v: d.softmax(q, k, v, True), N, None),
    "softmax - full": (lambda q, k, v: d.softmax(q, k, v, False), NK, None),
    "softmax - lengths": (lambda q, k, v: d.softmax(q, k, v, False, lengths=LENGTHS), NK, LENGTHS),
    "dot - causal": (d.dot_product, N, None),
}


def main():
    torch.manual_seed(1)
    out = {}
    for name, (definition, keys, lengths) in CASES.items():
        # Rounded to f32 first, so that both compute with the same numbers.
        q, k, v = (torch.randn(shape).double().requires_grad_() for shape in
                   ((B, H, N, D), (B, H, keys, D), (B, H, keys, M)))
        y = definition(q, k, v)
        dy = torch.randn(y.shape).double()
        y.backward(dy)
        arrays = dict(q=q, k=k, v=v, y=y, dy=dy, dq=q.grad, dk=k.grad, dv=v.grad)
        out.update({f"{name}/{key}": value.detach().numpy().astype(np.float32)
                    for key, value in arrays.items()})
        if lengths:
            out[f"{name}/lengths"] = np.array(lengths)
    np.savez_compressed(Path(__file__).with_name("vectors.npz"), **out)


if __name__ == "__main__":
    main()
