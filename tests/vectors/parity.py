# SPDX-License-Identifier: MIT
"""Writes parity.pth, which test_parity.c reads, beside this script: an image model of the paper's
authors, some images, and what torch computes for them with linear and softmax attention, causal
and not: bits/dim, and the gradient of bits/dim for every parameter.

    python3 tests/vectors/parity.py

Weights are floats, everything else is computed in double. Where the authors' library is installed
it must agree: pip install pytorch-fast-transformers, with a compiler and torch's headers.
"""
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../bindings/python/tests"))
from authors import Encoder, Image, LibraryEncoder, bits_per_dim, shake  # noqa: E402

IMAGES, HEIGHT, WIDTH, MIXTURES = 6, 5, 6, 3
SIZES = dict(symbols=256, length=HEIGHT * WIDTH - 1, mixtures=MIXTURES, layers=2, width=8, heads=2,
             feed=12)
KINDS = [("linear", True), ("linear", False), ("softmax", True), ("softmax", False)]


def weights():
    """Means all over the values, and scales from a few values to many, as a trained model has."""
    model = shake(Image(**SIZES))
    with torch.no_grad():
        model.predictor.bias[MIXTURES:2 * MIXTURES] += torch.linspace(-0.9, 0.9, MIXTURES)
        model.predictor.bias[2 * MIXTURES:] += torch.linspace(-3.0, -1.0, MIXTURES)
    return model.state_dict()


def pictures():
    """Slopes from dark to light, with black and white at their ends."""
    images = torch.linspace(-60.0, 320.0, HEIGHT * WIDTH) + 30.0 * torch.randn(IMAGES, HEIGHT * WIDTH)
    return images.clamp(0, 255).long()


def computed(encoder, kind, causal, state, images, dtype):
    model = Image(encoder=encoder, kind=kind, causal=causal, **SIZES)
    model.load_state_dict(state)  # strict: the names are theirs
    model = model.to(dtype)
    bits = bits_per_dim(model, images)
    bits.backward()
    return bits.detach(), {name: p.grad for name, p in model.named_parameters()}


def check_library(name, kind, causal, state, images, bits, gradients):
    try:
        found, slopes = computed(LibraryEncoder, kind, causal, state, images, torch.float32)
    except ImportError as error:
        return print(f"{name}: the authors' library is not asked: {error}")
    far = max((slopes[n].double() - gradients[n]).abs().max() for n in gradients)
    print(f"{name}: {bits:.7f} bits/dim; the authors' library {found:.7f}, gradients off by {far:.1e}")
    assert abs(found - bits) < 1e-5 and far < 1e-4


torch.manual_seed(3)
state, images = weights(), pictures()
assert (images == 0).any() and (images == 255).any()
kept = {"model_state": state, "images": images.byte().view(IMAGES, HEIGHT, WIDTH)}
for kind, causal in KINDS:
    name = f"{kind}_{'causal' if causal else 'full'}"
    bits, gradients = computed(Encoder, kind, causal, state, images, torch.float64)
    check_library(name, kind, causal, state, images, bits, gradients)
    kept[name] = {"bits": bits.view(1), **{n: g.float() for n, g in gradients.items()}}
torch.save(kept, os.path.join(HERE, "parity.pth"), _use_new_zipfile_serialization=False)
