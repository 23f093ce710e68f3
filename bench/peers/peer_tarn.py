# SPDX-License-Identifier: MIT
"""tarn, through its Python package: the calls a user of it writes."""
import pathlib
import tempfile

import numpy as np
import tarn

from subjects import Made
from workloads import CHECK_RATE, CLIP, RATE


def model_of(weights, heads):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "weights.npz"
        np.savez(path, **weights)
        return tarn.Model.import_(path, heads=heads, attention="linear", task="text")


def train(weights, given, sizes, threads, precision):
    model = model_of(weights, sizes["heads"])
    batch = {name: np.ascontiguousarray(given[name], np.int32) for name in ("inputs", "targets")}

    def trainer(rate):
        made = tarn.Trainer(model, optimizer="radam:decay=0", clip=f"global:norm={CLIP}", lr=rate,
                            precision=precision, threads=threads)
        return lambda: made.step(batch).loss

    def answer():
        loss = trainer(CHECK_RATE)()
        after = model.tensors()
        return {"loss": np.array(loss), **{name: after[name] - weights[name] for name in after}}

    return Made(answer, trainer(RATE))


def generate(weights, given, sizes, threads, precision):
    model = model_of(weights, sizes["heads"])
    state = model.state(sizes["batch"], precision=precision, threads=threads)
    start = given["start"].reshape(-1, 1)

    def run():
        state.reset()
        return state.generate(start, sizes["steps"], greedy=True)

    def answer():
        state.reset()
        return {"outputs": np.stack([state.step(symbols) for symbols in given["forced"]]),
                "symbols": run()}

    return Made(answer, run)


def attention(weights, given, sizes, threads, precision):
    def run():
        y, backward = tarn.attention_vjp(given["q"], given["k"], given["v"], sizes["attention"],
                                         sizes["causal"], threads=threads)
        return (y, *backward(given["dy"]))

    return Made(lambda: dict(zip(("y", "dq", "dk", "dv"), run())), run)
