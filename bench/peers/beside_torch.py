#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""beside_torch.py [SECONDS] - the speed of tarn in one process with torch's threads, and the speed
of torch in one process with tarn's. The columns are steps per second:

    alone     before torch was imported
    idle      torch's threads exist and have nothing to do
    in turns  a call of torch on all threads after every step; only the steps are timed

for tarn, and calls of torch alone and in turns with steps of tarn. SECONDS of each measurement: 1."""
import sys
import time

import numpy as np
import tarn

THREADS = (2, 1)


def training(threads):
    model = tarn.Model.create("tiny")
    symbols = np.random.default_rng(0).integers(0, model.config.symbols, (16, 33))
    trainer = tarn.Trainer(model, optimizer="radam", lr=1e-3, threads=threads)
    return lambda: trainer.step(symbols)


def generation(batch):
    def make(threads):
        state = tarn.Model.create("mnist-paper").state(batch, threads=threads)
        symbols = np.zeros(batch, np.int32)
        return lambda: state.step(symbols)
    return make


def attention(threads):
    q, k, v, dy = (np.random.default_rng(i).standard_normal((1, 8, 1024, 32), np.float32)
                   for i in range(4))

    def run():
        _, backward = tarn.attention_vjp(q, k, v, threads=threads)
        backward(dy)
    return run


WORKS = {"training `tiny`, batch 16": training, "`mnist-paper`, one stream": generation(1),
         "`mnist-paper`, 64 streams": generation(64), "attention with gradients": attention}


def rate(step, seconds, between=lambda: None):
    """Steps per second, without what is done between them."""
    for _ in range(3):
        step()
    spent, steps, end = 0.0, 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        between()
        start = time.perf_counter()
        step()
        spent += time.perf_counter() - start
        steps += 1
    return steps / spent


def torch_call():
    """A product and a sum on all of torch's threads, about a millisecond."""
    import torch
    torch.set_num_threads(max(THREADS))
    a, b = torch.randn(384, 384), torch.randn(384, 384)
    return lambda: torch.relu(a @ b).sum().item()


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    steps = {(name, threads): make(threads) for name, make in WORKS.items() for threads in THREADS}
    alone = {work: rate(step, seconds) for work, step in steps.items()}
    call = torch_call()
    first = rate(call, seconds)
    print("| | threads | alone | idle | in turns | of alone | torch's calls | of torch alone |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, threads), step in steps.items():
        idle, turns = rate(step, seconds), rate(step, seconds, call)
        calls = rate(call, seconds, step)
        print(f"| {name} | {threads} | {alone[name, threads]:,.0f} | {idle:,.0f} | {turns:,.0f} | "
              f"{idle / alone[name, threads]:.2f}, {turns / alone[name, threads]:.2f} | "
              f"{calls:,.0f} | {calls / first:.2f} |", flush=True)


if __name__ == "__main__":
    main()
