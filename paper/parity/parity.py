#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains the same models with tarn and with PyTorch, in float and in double, from the same weights on the
same batches, and compares the losses of every update.

    paper/parity/parity.py [--updates N] [--case NAME] [--csv FILE]

Needs torch and NumPy; TARN_LIBRARY is the path of libtarn.so. Exits with 1 if a curve leaves PyTorch's.
"""
import argparse
import csv
import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python"))
import tarn  # noqa: E402
import torch_model as t  # noqa: E402

BATCH, LENGTH, FRAME_WIDTH, LABELS = 8, 64, 8, 8
LSH = dict(rounds=4, buckets=8, chunk=16)
RATES = {"radam": 3e-3, "adam": 3e-3, "adamw": 3e-3, "sgd": 0.1, "lion": 5e-4}
OPTIMIZERS = {name: name for name in RATES}
OPTIMIZERS.update(radam="radam:decay=0", lion="lion:decay=0")

# name: attention, norm, head, optimizer
CASES = {f"{kind}-{norm}": (kind, norm, "categorical", "radam")
         for kind in ("linear", "softmax", "lsh") for norm in ("post", "pre")}
CASES.update({head: ("linear", "post", head, "radam") for head in ("logistic", "ctc")})
CASES.update({name: ("linear", "post", "categorical", name) for name in ("adam", "adamw", "sgd", "lion")})


# ---- Batches: functions of their number -----------------------------------------


def text_batch(i, symbols):
    """A walk over a table of successors, three of them likely: there is something to learn."""
    successors = np.random.default_rng(1).integers(0, symbols, (symbols, 3))
    numbers = np.random.default_rng([2, i])
    walk = np.empty((BATCH, LENGTH + 1), np.int32)
    walk[:, 0] = numbers.integers(0, symbols, BATCH)
    for n in range(LENGTH):
        walk[:, n + 1] = successors[walk[:, n], numbers.integers(0, 3, BATCH)]
    return dict(inputs=walk[:, :-1], targets=walk[:, 1:])


def picture_batch(i):
    """Slow waves of grey, with black and white at their ends."""
    numbers = np.random.default_rng([3, i])
    phase, speed = numbers.uniform(0, 6, (2, BATCH, 1))
    waves = 127 + 150 * np.sin(phase + 0.05 * (1 + speed) * np.arange(LENGTH + 1))
    values = np.clip(waves + numbers.normal(0, 4, waves.shape), 0, 255).astype(np.int32)
    return dict(inputs=values[:, :-1], targets=values[:, 1:])


def spoken_batch(i, symbols):
    """Labels without the blank, each shown as a noisy vector of its own for some frames."""
    faces = np.random.default_rng(4).normal(size=(symbols, FRAME_WIDTH))
    numbers = np.random.default_rng([5, i])
    labels = numbers.integers(1, symbols, (BATCH, LABELS))
    shown = np.repeat(labels, LENGTH // LABELS, axis=1)
    shown[:, ::LENGTH // LABELS] = 0
    frames = faces[shown] + 0.3 * numbers.normal(size=(*shown.shape, FRAME_WIDTH))
    return dict(frames=frames.astype(np.float32), targets=labels.ravel().astype(np.int32),
                counts=np.full(BATCH, LABELS, np.uintp))


def batch_of(head, i):
    if head == "logistic":
        return picture_batch(i)
    return spoken_batch(i, 12) if head == "ctc" else text_batch(i, 24)


# ---- Training -------------------------------------------------------------------


def create(kind, norm, head):
    options = ":" + ",".join(f"{name}={value}" for name, value in LSH.items())
    sizes = dict(symbols={"categorical": 24, "logistic": 256, "ctc": 12}[head],
                 frames=FRAME_WIDTH if head == "ctc" else 0)
    return tarn.Model.create("tiny", attention=kind + (options if kind == "lsh" else ""), norm=norm,
                             head=head, layers=2, heads=4, width=64, feed=128, **sizes)


def run_tarn(model, case, updates):
    _, _, head, optimizer = case
    trainer = tarn.Trainer(model, optimizer=OPTIMIZERS[optimizer], clip="global:norm=1",
                           lr=RATES[optimizer])
    return [trainer.step(batch_of(head, i)).loss for i in range(updates)]


def given_to_torch(batch, dtype):
    counts = torch.from_numpy(batch["counts"].astype(np.int64)) if "counts" in batch else None
    inputs = (torch.from_numpy(batch["frames"]).to(dtype) if "frames" in batch
              else torch.from_numpy(batch["inputs"]).long())
    return inputs, torch.from_numpy(batch["targets"]).long(), counts


def run_torch(config, tensors, case, updates, dtype):
    _, _, head, optimizer = case
    hashes = [t.Hashes(config.seed, layer, width=config.width // config.heads, **LSH)
              for layer in range(config.layers)] if config.attention.startswith("lsh") else None
    model = t.Model(config, tensors, hashes, dtype)
    weights = list(model.w.values())
    step = t.OPTIMIZERS[optimizer](weights, lr=RATES[optimizer])
    losses = []
    for i in range(updates):
        inputs, targets, counts = given_to_torch(batch_of(head, i), dtype)
        step.zero_grad()
        loss = t.LOSSES[head](model.outputs(inputs), targets, counts)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        step.step()
        losses.append(loss.item())
    return losses


def compare(name, updates):
    """Losses by tarn, PyTorch in float and PyTorch in double."""
    case = CASES[name]
    model = create(*case[:3])
    config, tensors = model.config, model.tensors()
    return np.array([run_tarn(model, case, updates),
                     run_torch(config, tensors, case, updates, torch.float32),
                     run_torch(config, tensors, case, updates, torch.float64)])


# ---- Judgement ------------------------------------------------------------------


def judge(losses):
    """(first loss, later losses): how far tarn is from double, relative to the loss, and how far
    float is. Training amplifies rounding, so that the float of PyTorch itself sets the scale."""
    found, single, double = losses
    away, usual = np.abs(found - double) / double, np.abs(single - double) / double
    return away[0], away.mean(), usual.mean()


def lies_on(losses):
    first, away, usual = judge(losses)
    return first < 1e-5 and away < max(1e-4, 3.0 * usual)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--updates", type=int, default=300, metavar="N", help="updates [300]")
    parser.add_argument("--case", choices=list(CASES), metavar="NAME", help=f"one of {', '.join(CASES)}")
    parser.add_argument("--csv", metavar="FILE", help="write all losses")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows, failed = [], 0
    print(f"{'case':14} {'first':>9} {'last':>9}   {'tarn':>8} {'float':>8}   from double, mean of all updates")
    for name in [options.case] if options.case else CASES:
        losses = compare(name, options.updates)
        _, away, usual = judge(losses)
        good = lies_on(losses)
        failed += not good
        print(f"{name:14} {losses[0][0]:9.5f} {losses[0][-1]:9.5f}   {away:8.1e} {usual:8.1e}"
              + ("" if good else "   LEAVES IT"), flush=True)
        rows += [(name, i + 1, *(f"{loss:.9g}" for loss in losses[:, i])) for i in range(options.updates)]
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("case", "update", "tarn", "float", "double"), *rows])
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
