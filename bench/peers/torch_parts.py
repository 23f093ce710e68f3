# SPDX-License-Identifier: MIT
"""What PyTorch's subjects share: the model around an encoder, and the loops that are timed."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from subjects import Made
from workloads import CHECK_RATE, CLIP, RATE


def use_threads(threads):
    torch.set_num_threads(threads)
    torch.manual_seed(1)


def sinusoid(length, width):
    table = torch.zeros(length, width)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


class Image(torch.nn.Module):
    """The authors' model: half a row is the embedding, the other half the sinusoid. `encoder`
    takes rows (B, N, F), or with a state rows (B, F)."""

    def __init__(self, encoder, weights, length):
        super().__init__()
        symbols, half = weights["value_embedding.weight"].shape
        outputs, width = weights["predictor.weight"].shape
        self.value_embedding = torch.nn.Embedding(symbols, half)
        self.transformer = encoder
        self.predictor = torch.nn.Linear(width, outputs)
        self.register_buffer("places", sinusoid(length, width - half), persistent=False)

    def forward(self, symbols):
        rows = self.value_embedding(symbols)
        places = self.places[:symbols.shape[1]].expand(len(symbols), -1, -1)
        return self.predictor(self.transformer(torch.cat([rows, places], -1)))

    def step(self, symbols, place, state):
        """Symbols (B), a row of the sinusoid: outputs (B, O) and the state behind them."""
        rows = torch.cat([self.value_embedding(symbols), place.expand(len(symbols), -1)], -1)
        rows, state = self.transformer(rows, state)
        return self.predictor(rows), state


def shape_of(weights):
    """Layers, width and feed of a model."""
    layers = len([name for name in weights if name.endswith("linear1.weight")])
    feed, width = weights["transformer.layers.0.linear1.weight"].shape
    return layers, width, feed


def tensors(weights):
    return {name: torch.from_numpy(value) for name, value in weights.items()}


# ---- What is timed ---------------------------------------------------------------------------


def train(model, loss_of, given, tensors_of):
    """loss_of(inputs, targets); tensors_of(model): copies by the authors' names."""
    inputs, targets = (torch.from_numpy(given[name]).long() for name in ("inputs", "targets"))
    optimizer = torch.optim.RAdam(model.parameters(), lr=RATE, foreach=True)

    def update():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(inputs, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        return loss.item()

    def answer():
        before = tensors_of(model)
        optimizer.param_groups[0]["lr"] = CHECK_RATE
        loss = update()
        optimizer.param_groups[0]["lr"] = RATE
        after = tensors_of(model)
        return {"loss": np.array(loss), **{name: after[name] - before[name] for name in after}}

    return Made(answer, update)


def cross_entropy(model):
    def loss(inputs, targets):
        return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    return loss


def generate(model, step, start_state, given, sizes):
    """step(symbols, place, state); start_state(): that of no symbols."""
    forced, start = (torch.from_numpy(given[name]).long() for name in ("forced", "start"))

    @torch.inference_mode()
    def run():
        state, symbols, drawn = start_state(), start, []
        for i in range(sizes["steps"]):
            outputs, state = step(symbols, model.places[i], state)
            symbols = outputs.argmax(-1)
            drawn.append(symbols)
        return torch.stack(drawn, 1).numpy()

    @torch.inference_mode()
    def answer():
        state, found = start_state(), []
        for i, symbols in enumerate(forced):
            outputs, state = step(symbols, model.places[i], state)
            found.append(outputs.float().clone())
        return {"outputs": torch.stack(found).numpy(), "symbols": run()}

    return Made(answer, run)


def attention(forward, given):
    """forward(q, k, v) on leaves; gradients by autograd."""
    q, k, v = (torch.from_numpy(given[name]).requires_grad_() for name in "qkv")
    dy = torch.from_numpy(given["dy"])

    def run():
        y = forward(q, k, v)
        return (y, *torch.autograd.grad(y, (q, k, v), dy))

    def answer():
        return dict(zip(("y", "dq", "dk", "dv"), (a.detach().numpy() for a in run())))

    return Made(answer, run)
