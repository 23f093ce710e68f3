#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes optimizers_torch.h: weights after some updates by PyTorch's optimizers.

    python3 tests/vectors/optimizers.py > tests/vectors/optimizers_torch.h

Needs PyTorch 2.3 or later, whose RAdam has decoupled_weight_decay. Everything is computed in
double, so that a test against it sees the rounding of tarn alone. Weights and gradients come
from the formulas below, which are exact in float and are written again in test_optimizers.c.
"""
import torch


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al. 2023, which PyTorch does not have."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for w in group["params"]:
                m = self.state[w].setdefault("m", torch.zeros_like(w))
                u = torch.sign(beta1 * m + (1 - beta1) * w.grad)
                w -= group["lr"] * (u + group["weight_decay"] * w)
                m.mul_(beta2).add_(w.grad, alpha=1 - beta2)


SIZES = [13, 1, 6]  # tensors; the last weight never gets a gradient
COUNT = sum(SIZES)
UPDATES = [1, 2, 5, 6, 7, 30]
RATE = 1e-2

CASES = [
    ("adam", torch.optim.Adam, {}),
    ("adam:decay=0.1", torch.optim.Adam, {"weight_decay": 0.1}),
    ("adam:beta1=0.5,beta2=0.9,eps=0.01", torch.optim.Adam, {"betas": (0.5, 0.9), "eps": 0.01}),
    ("adamw", torch.optim.AdamW, {"weight_decay": 0.01}),
    ("adamw:decay=0.3,eps=0.01", torch.optim.AdamW, {"weight_decay": 0.3, "eps": 0.01}),
    ("radam", torch.optim.RAdam, {"weight_decay": 0.01, "decoupled_weight_decay": True}),
    ("radam:decay=0", torch.optim.RAdam, {}),
    (
        "radam:decay=0.3,beta1=0.5,beta2=0.9,eps=0.01",
        torch.optim.RAdam,
        {"weight_decay": 0.3, "decoupled_weight_decay": True, "betas": (0.5, 0.9), "eps": 0.01},
    ),
    ("sgd", torch.optim.SGD, {"momentum": 0.9}),
    ("sgd:momentum=0", torch.optim.SGD, {}),
    (
        "sgd:momentum=0.7,decay=0.1,nesterov=yes",
        torch.optim.SGD,
        {"momentum": 0.7, "weight_decay": 0.1, "nesterov": True},
    ),
    ("lion", Lion, {}),
    ("lion:beta1=0.5,beta2=0.8,decay=0.3", Lion, {"betas": (0.5, 0.8), "weight_decay": 0.3}),
]


def weight(i):
    return ((i * 53) % 32 - 14) / 8


def gradient(t, i):
    if i == COUNT - 1:
        return 0.0
    return ((t * 37 + i * 101 + i * t * 7) % 64 - 31) / 64 / 4 ** (i % 4)


def rate(t):
    return RATE / (1 + t / 16)


def run(make, options):
    w = torch.tensor([weight(i) for i in range(COUNT)], dtype=torch.float64)
    parts = [torch.nn.Parameter(part.clone()) for part in w.split(SIZES)]
    optimizer = make(parts, lr=RATE, **options)
    for t in range(1, UPDATES[-1] + 1):
        g = torch.tensor([gradient(t, i) for i in range(COUNT)], dtype=torch.float64)
        for part, slope in zip(parts, g.split(SIZES)):
            part.grad = slope.clone()
        for group in optimizer.param_groups:
            group["lr"] = rate(t)
        optimizer.step()
        if t in UPDATES:
            yield torch.cat([part.detach() for part in parts]).tolist()


def main():
    print("/* SPDX-License-Identifier: MIT */")
    print(f"/* Written by optimizers.py with PyTorch {torch.__version__.split('+')[0]}. */")
    print("/* clang-format off */")
    print(f"enum {{ COUNT = {COUNT}, CASES = {len(CASES)}, WRITTEN = {len(UPDATES)} }};")
    print("static const struct tn_range tensors[] = {")
    for i, size in enumerate(SIZES):
        print(f"    {{{sum(SIZES[:i])}, {size}}},")
    print("};")
    print(f"static const uint64_t written[WRITTEN] = {{{', '.join(map(str, UPDATES))}}};")
    print("static const struct { const char *spec; double w[WRITTEN][COUNT]; } cases[CASES] = {")
    for spec, make, options in CASES:
        print(f'    {{"{spec}", {{')
        for row in run(make, options):
            print("        {" + ", ".join(f"{x:.12g}" for x in row) + "},")
        print("    }},")
    print("};")
    print("/* clang-format on */")


main()
