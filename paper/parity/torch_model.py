# SPDX-License-Identifier: MIT
"""tarn's transformer in plain PyTorch, from its definition: functions of a dict of tensors with tarn's
names, in any precision. Nothing here is fast."""
import math

import numpy as np
import torch
import torch.nn.functional as F

EPS = 1e-6


# ---- Attention: q, k, v are (B, H, N, D) ----------------------------------------


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


def linear(q, k, v, _):
    """Equations (4) to (12) as a matrix."""
    weights = ((F.elu(q) + 1) @ (F.elu(k) + 1).mT).tril()
    return weights @ v / (weights.sum(-1, keepdim=True) + EPS)


def softmax(q, k, v, _):
    """Equation (2)."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.masked_fill(~causal_mask(q.shape[2]), -math.inf).softmax(-1) @ v


def seen_in_round(q, rotation, chunk):
    """(B, H, N, N): 1 where the query of a row sees the key of a column in one round of hashing."""
    projected = q.detach() @ rotation
    buckets = torch.cat([projected, -projected], -1).argmax(-1)
    place = buckets.sort(dim=-1, stable=True).indices.argsort(-1) // chunk
    behind = place.unsqueeze(-1) - place.unsqueeze(-2)
    return ((behind == 0) | (behind == 1)).double()


def lsh(q, _, v, hashes):
    """Reformer's attention with tarn's hashes: a key counts once for each round that it is seen in."""
    length, width = q.shape[2:]
    k = q / (q.square().sum(-1, keepdim=True) + width * 1e-6).sqrt()
    counts = sum(seen_in_round(q, rotation.to(q.dtype), hashes.chunk) for rotation in hashes.rotations)
    counts = counts * causal_mask(length).tril(-1)
    blind = counts.sum(-1, keepdim=True) == 0
    counts = torch.where(blind, torch.eye(length, dtype=counts.dtype), counts).to(q.dtype)
    return (q @ k.mT / math.sqrt(width) + counts.log()).softmax(-1) @ v


ATTENTIONS = {"linear": linear, "softmax": softmax, "lsh": lsh}


# ---- Hashes ---------------------------------------------------------------------

BITS = (1 << 64) - 1


def mix(x):
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9 & BITS
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb & BITS
    return x ^ (x >> 31)


class Random:
    """xoshiro256++ and normals as src/base/random.c draws them."""

    def __init__(self, seed):
        self.s = [mix((seed + i * 0x9e3779b97f4a7c15) & BITS) for i in range(1, 5)]

    def bits(self):
        s = self.s
        total = (s[0] + s[3]) & BITS
        result = ((total << 23 | total >> 41) + s[0]) & BITS
        shifted = s[1] << 17 & BITS
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = (s[3] << 45 | s[3] >> 19) & BITS
        return result

    def uniform(self):
        return (self.bits() >> 11) * 2.0 ** -53

    def normal(self):
        while True:
            u, v = 2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0
            r = u * u + v * v
            if 0.0 < r < 1.0:
                return u * math.sqrt(-2.0 * math.log(r) / r)


class Hashes:
    """The rotations of a layer."""

    def __init__(self, seed, layer, rounds, buckets, chunk, width):
        random = Random((seed + 0x9e3779b97f4a7c15 * (layer + 1)) & BITS)
        drawn = np.array([random.normal() for _ in range(rounds * width * (buckets // 2))], np.float32)
        self.rotations = torch.from_numpy(drawn).view(rounds, width, buckets // 2)
        self.chunk = chunk


# ---- The model ------------------------------------------------------------------


def sinusoid(length, width):
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    return torch.stack([torch.sin(position * frequency), torch.cos(position * frequency)], -1).flatten(1)


class Model:
    """`config` as tarn.Model has it."""

    def __init__(self, config, tensors, hashes, dtype):
        self.config, self.hashes = config, hashes
        self.w = {name: torch.from_numpy(value).to(dtype, copy=True).requires_grad_()
                  for name, value in tensors.items()}

    def dense(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w[name + ".bias"])

    def attention(self, x, layer):
        def heads(part):
            name = f"{layer}.attention.{part}_projection"
            if name + ".weight" not in self.w:
                return None
            return self.dense(x, name).unflatten(-1, (self.config.heads, -1)).transpose(1, 2)

        kind = self.config.attention.split(":")[0]
        hashes = self.hashes[int(layer.split(".")[-1])] if self.hashes else None
        y = ATTENTIONS[kind](heads("query"), heads("key"), heads("value"), hashes)
        return self.dense(y.transpose(1, 2).flatten(2), f"{layer}.attention.out_projection")

    def feed(self, x, layer):
        return self.dense(torch.relu(self.dense(x, layer + ".linear1")), layer + ".linear2")

    def block(self, x, layer):
        if self.config.norm == "pre":
            x = x + self.attention(self.norm(x, layer + ".norm1"), layer)
            return x + self.feed(self.norm(x, layer + ".norm2"), layer)
        x = self.norm(x + self.attention(x, layer), layer + ".norm1")
        return self.norm(x + self.feed(x, layer), layer + ".norm2")

    def outputs(self, inputs):
        """Symbols (B, N), or frames (B, N, width)."""
        if self.config.frames:
            x = self.dense(inputs, "frame_projection")
        else:
            x = self.w["value_embedding.weight"][inputs]
        places = sinusoid(x.shape[1], self.config.width - x.shape[2]).to(x.dtype)
        x = torch.cat([x, places.expand(len(x), -1, -1)], -1)
        for i in range(self.config.layers):
            x = self.block(x, f"transformer.layers.{i}")
        return self.dense(self.norm(x, "transformer.norm"), "predictor")


# ---- Losses ---------------------------------------------------------------------


def categorical(outputs, targets, _):
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def logistic(outputs, targets, _, values=256):
    """A mixture of logistics over values in [-1, 1]; the outer intervals reach to infinity."""
    weights, means, scales = outputs.chunk(3, -1)
    target, scales = targets.unsqueeze(-1), scales.clamp(min=-7.0).exp()
    lower = ((2.0 * target - values) / (values - 1)).to(outputs.dtype)
    above = torch.where(target == values - 1, 1.0, torch.sigmoid((lower + 2.0 / (values - 1) - means) / scales))
    below = torch.where(target == 0, 0.0, torch.sigmoid((lower - means) / scales))
    return -torch.log((weights.softmax(-1) * (above - below)).sum(-1)).mean()


def ctc(outputs, targets, counts):
    """The mean over sequences."""
    lengths = torch.full((len(outputs),), outputs.shape[1])
    return F.ctc_loss(outputs.log_softmax(-1).transpose(0, 1), targets, lengths, counts,
                      blank=0, reduction="sum") / len(outputs)


LOSSES = {"categorical": categorical, "logistic": logistic, "ctc": ctc}


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, which PyTorch does not have."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                w -= group["lr"] * torch.sign(0.9 * m + 0.1 * w.grad)
                m.lerp_(w.grad, 0.01)


OPTIMIZERS = {
    "radam": torch.optim.RAdam,
    "adam": torch.optim.Adam,
    "adamw": lambda parameters, lr: torch.optim.AdamW(parameters, lr=lr, weight_decay=0.01),
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
    "lion": Lion,
}
