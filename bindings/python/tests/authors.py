# SPDX-License-Identifier: MIT
"""The image model of the paper's authors: their names of parameters and their formulas, in plain
torch, with the attentions of definitions.py; and with their library in its place where that is
installed. What makes tests/vectors/*.pth, and what tarn is compared with beside torch."""
import math

import torch
from torch.nn import functional as F

import definitions as d

# attention of tarn, causal: type of their builder
LIBRARY_TYPES = {("linear", True): "causal-linear", ("linear", False): "linear",
                 ("softmax", True): "full", ("softmax", False): "full"}


def sinusoid(length, width):
    table = torch.zeros(length, width)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


class Attention(torch.nn.Module):
    def __init__(self, width, heads, kind, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.definition = {"linear": d.linear, "softmax": d.softmax}[kind]
        for name in ("query", "key", "value", "out"):
            setattr(self, name + "_projection", torch.nn.Linear(width, width))

    def forward(self, x):
        q, k, v = (getattr(self, name + "_projection")(x).unflatten(-1, (self.heads, -1))
                   .transpose(-2, -3) for name in ("query", "key", "value"))
        y = self.definition(q, k, v, self.causal)
        return self.out_projection(y.transpose(-2, -3).flatten(-2))


class Layer(torch.nn.Module):
    def __init__(self, width, heads, feed, kind, causal):
        super().__init__()
        self.attention = Attention(width, heads, kind, causal)
        self.linear1 = torch.nn.Linear(width, feed)
        self.linear2 = torch.nn.Linear(feed, width)
        self.norm1 = torch.nn.LayerNorm(width)
        self.norm2 = torch.nn.LayerNorm(width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.linear2(torch.relu(self.linear1(x))))


class Encoder(torch.nn.Module):
    def __init__(self, layers, width, heads, feed, kind="linear", causal=True):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(width, heads, feed, kind, causal)
                                           for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class LibraryEncoder(torch.nn.Module):
    """Theirs, under the same names. ImportError: it is not installed."""

    def __init__(self, layers, width, heads, feed, kind="linear", causal=True):
        from fast_transformers.builders import TransformerEncoderBuilder
        from fast_transformers.masking import FullMask, TriangularCausalMask
        super().__init__()
        theirs = TransformerEncoderBuilder.from_kwargs(
            attention_type=LIBRARY_TYPES[kind, causal], n_layers=layers, n_heads=heads,
            query_dimensions=width // heads, value_dimensions=width // heads,
            feed_forward_dimensions=feed, activation="relu", dropout=0.0,
            attention_dropout=0.0).get()
        self.layers, self.norm = theirs.layers, theirs.norm
        self.run = [theirs.forward]
        self.mask = TriangularCausalMask if causal else FullMask

    def forward(self, x):
        return self.run[0](x, attn_mask=self.mask(x.shape[1], device=x.device))


class Positions(torch.nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.register_buffer("pe", sinusoid(length, width).unsqueeze(0))


class Image(torch.nn.Module):
    """Symbols (B, length) to outputs (B, length, 3 mixtures)."""

    def __init__(self, symbols, length, mixtures, width, encoder=Encoder, **sizes):
        super().__init__()
        self.pos_embedding = Positions(length, width // 2)
        self.value_embedding = torch.nn.Embedding(symbols, width // 2)
        self.transformer = encoder(width=width, **sizes)
        self.predictor = torch.nn.Linear(width, 3 * mixtures)

    def forward(self, symbols):
        values = self.value_embedding(symbols)
        positions = self.pos_embedding.pe.expand(*symbols.shape, -1)
        return self.predictor(self.transformer(torch.cat([values, positions], dim=-1)))


def shake(model):
    """Norms that are not 1 and 0, so that a mistake shows."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.add_(0.3 * torch.randn_like(value))
    return model


def losses(outputs, targets):
    """-log p of bytes, as Salimans et al. wrote it and the authors use it: where a logistic gives a
    bin less than 1e-5, its density at the middle times the bin's width stands for it."""
    logits, means, scales = outputs.chunk(3, dim=-1)
    scales = scales.clamp(min=-7.0)
    x = (targets.to(outputs.dtype) * (2.0 / 255.0) - 1.0).unsqueeze(-1)
    middle = (x - means) * torch.exp(-scales)
    above = (x - means + 1.0 / 255.0) * torch.exp(-scales)
    below = (x - means - 1.0 / 255.0) * torch.exp(-scales)
    bin_ = torch.sigmoid(above) - torch.sigmoid(below)
    density = middle - scales - 2.0 * F.softplus(middle) - math.log(127.5)
    inner = torch.where(bin_ > 1e-5, torch.log(bin_.clamp(min=1e-12)), density)
    log_p = torch.where(x < -0.999, above - F.softplus(above),
                        torch.where(x > 0.999, -F.softplus(below), inner))
    return -torch.logsumexp(log_p + F.log_softmax(logits, dim=-1), dim=-1)


def bits_per_dim(model, images):
    """Of images (B, bytes): the first byte is given, all others are predicted."""
    return losses(model(images[:, :-1]), images[:, 1:]).mean() / math.log(2.0)
