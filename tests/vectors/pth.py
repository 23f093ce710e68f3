# SPDX-License-Identifier: MIT
"""Writes the files of torch.save() that test_pth.c and test_import.c read, beside this script.

    python3 tests/vectors/pth.py

image.pth and image_old.pth are checkpoints of a model with the names of the paper's authors, in
both formats of torch.save(), with symbols and the outputs for them, which are computed here from
the definition of the paper. encoder.pth is such an encoder alone; views.pth has tensors that are
no plain rows of their storages, and other types of numbers.
"""
import math
import os
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS, HEADS, WIDTH, FEED, SYMBOLS, MIXTURES, LENGTH = 2, 2, 8, 12, 7, 2, 5


def sinusoid(length, width):
    table = torch.zeros(length, width)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


class Attention(torch.nn.Module):
    """Causal linear attention with elu + 1, by its quadratic definition."""

    def __init__(self):
        super().__init__()
        for name in ("query", "key", "value", "out"):
            setattr(self, name + "_projection", torch.nn.Linear(WIDTH, WIDTH))

    def forward(self, x):
        n = x.shape[0]
        q, k, v = (getattr(self, name + "_projection")(x).view(n, HEADS, -1).transpose(0, 1)
                   for name in ("query", "key", "value"))
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        weights = torch.tril(q @ k.transpose(1, 2))
        y = weights @ v / (weights.sum(-1, keepdim=True) + 1e-6)
        return self.out_projection(y.transpose(0, 1).reshape(n, WIDTH))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.linear1 = torch.nn.Linear(WIDTH, FEED)
        self.linear2 = torch.nn.Linear(FEED, WIDTH)
        self.norm1 = torch.nn.LayerNorm(WIDTH)
        self.norm2 = torch.nn.LayerNorm(WIDTH)

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.linear2(torch.relu(self.linear1(x))))


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Positions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", sinusoid(LENGTH, WIDTH // 2).unsqueeze(0))


class Image(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pos_embedding = Positions()
        self.value_embedding = torch.nn.Embedding(SYMBOLS, WIDTH // 2)
        self.transformer = Encoder()
        self.predictor = torch.nn.Linear(WIDTH, 3 * MIXTURES)

    def forward(self, symbols):
        x = torch.cat([self.value_embedding(symbols), self.pos_embedding.pe[0]], dim=-1)
        return self.predictor(self.transformer(x))


def shake(model):
    """Norms that are not 1 and 0, so that a mistake shows."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.add_(0.3 * torch.randn_like(value))
    return model


torch.manual_seed(1)
model = shake(Image())
symbols = torch.tensor([3, 0, 6, 6, 1])
optimizer = torch.optim.Adam(model.predictor.parameters(), lr=0.001)
model(symbols).square().mean().backward()
optimizer.step()
outputs = model(symbols).detach()
torch.save({"epoch": 3, "lr": 0.001, "name": "image", "model_state": model.state_dict(),
            "optimizer_state": optimizer.state_dict(), "symbols": symbols, "outputs": outputs},
           os.path.join(HERE, "image.pth"))
old = {"module." + name: value for name, value in model.state_dict().items()}
torch.save({"state_dict": old, "symbols": symbols, "outputs": outputs},
           os.path.join(HERE, "image_old.pth"), _use_new_zipfile_serialization=False)
torch.save(Encoder().state_dict(), os.path.join(HERE, "encoder.pth"))

block = torch.arange(24, dtype=torch.float).view(4, 6)
torch.save({"whole": block, "transposed": block.t(), "slice": block[1:3, 2:5],
            "column": block[:, 1], "one": torch.tensor(7.5), "none": torch.zeros(0, 3),
            "half": block[0].half(), "bf16": block[0].bfloat16(), "double": block[0].double(),
            "long": torch.tensor([-1, 2]), "bool": torch.tensor([True, False]),
            "parameter": torch.nn.Parameter(block[2].clone()),
            "list": [block[3], {"deep": torch.tensor([1.0])}]},
           os.path.join(HERE, "views.pth"))
