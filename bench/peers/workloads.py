# SPDX-License-Identifier: MIT
"""The workloads, one row each. `kind` is the name of the function of a peer that prepares it."""
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Tuple

import numpy as np

PRESET, HEADS = "mnist-paper", 8  # for training and generation; attention has its own shape
SMALL_PRESET, SMALL_HEADS = "tiny", 4  # for tests
RATE, CLIP = 1e-3, 1.0  # of training: RAdam, global gradient norm
CHECK_RATE = 1.0  # of the compared update: large changes compared with the rounding of weights
FORCED = 24  # steps of generation whose outputs are compared


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    kind: str  # "train", "generate" or "attention"
    sizes: Dict[str, Any]
    per_call: int  # units of `unit` per call
    unit: str
    bench: Tuple[str, ...]  # arguments of `tarn bench` that measure its limit; (): not known
    precision: str = "f32"  # of matrix products in training, of weights in generation
    tolerance: float = 1.0  # factor of the limit of its kind: how far rounding leads


def training(precision: str, tolerance: float) -> Workload:
    suffix = "" if precision == "f32" else f", {precision}"
    return Workload("train" + suffix.replace(", ", "-"), "training, batch 10, N = 784" + suffix,
                    "train", {"heads": HEADS, "batch": 10, "length": 784}, 7840, "tokens/s",
                    ("train", "--precision", precision), precision, tolerance)


def generation(batch: int, steps: int, precision: str, tolerance: float) -> Workload:
    streams = "one stream" if batch == 1 else f"{batch} streams"
    suffix = "" if precision == "f32" else f", {precision} weights"
    name = f"generate-{batch}" + ("" if precision == "f32" else f"-{precision}")
    bench = ("generate", "--batch", str(batch), "--precision", precision)
    if batch > 1 and precision == "int8":
        bench = ()  # bound by products of int8, whose peak is not measured
    return Workload(name, f"generation, {streams}{suffix}", "generate",
                    {"heads": HEADS, "batch": batch, "steps": steps}, steps, "ms per step", bench,
                    precision, tolerance)


def attention(kind: str, causal: bool, length: int, width: int) -> Workload:
    name = ("causal-" if causal else "") + kind
    size = f"N = {length:,}" + ("" if width == 32 else f", D = {width}")
    bench = ("attention", "--attention", kind, "--batch", "1", "--length", str(length),
             "--head-width", str(width)) + (("--causal",) if causal else ())
    suffix = ("" if length == 4096 else f"-{length}") + ("" if width == 32 else f"-d{width}")
    return Workload(name + suffix, f"{name.replace('-', ' ')} attention, {size}", "attention",
                    {"attention": kind, "causal": causal, "shape": (1, 8, length, width)}, 1,
                    "ms", bench)


WORKLOADS: List[Workload] = [
    training("f32", 1.0),
    training("bf16", 20.0),
    generation(1, 256, "f32", 1.0),
    generation(1, 256, "bf16", 200.0),
    generation(1, 256, "int8", 1000.0),
    generation(128, 16, "f32", 1.0),
    generation(128, 16, "bf16", 200.0),
    generation(128, 16, "int8", 1000.0),
    attention("linear", True, 4096, 32),
    attention("linear", True, 16384, 32),
    attention("linear", True, 4096, 64),
    attention("linear", False, 4096, 32),
    attention("linear", False, 16384, 32),
    attention("linear", False, 4096, 64),
    attention("softmax", True, 4096, 32),
    attention("softmax", True, 4096, 64),
]

SMALL = {"heads": SMALL_HEADS, "batch": 3, "length": 150, "steps": 8, "shape": (2, 3, 150, 8)}


def small(work: Workload) -> Workload:
    """A smaller version, for tests."""
    return replace(work, sizes={name: SMALL.get(name, size)
                                for name, size in work.sizes.items()})


def given(work: Workload, symbols: int) -> Dict[str, np.ndarray]:
    """Random inputs, the same for all peers and in every run."""
    draw = np.random.default_rng(6)
    sizes = work.sizes
    if work.kind == "train":
        shape = (sizes["batch"], sizes["length"])
        return {name: draw.integers(symbols, size=shape).astype(np.int32)
                for name in ("inputs", "targets")}
    if work.kind == "generate":
        shapes = {"forced": (FORCED, sizes["batch"]), "start": sizes["batch"]}
        return {name: draw.integers(symbols, size=shape).astype(np.int32)
                for name, shape in shapes.items()}
    return {name: draw.standard_normal(sizes["shape"]).astype(np.float32)
            for name in ("q", "k", "v", "dy")}


def weights_of(tensors: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """Weights for all peers: biases and norms are not 0 and 1, so that a mistake with them shows."""
    draw = np.random.default_rng(5)
    return {name: (tensor + 0.1 * draw.standard_normal(tensor.shape)).astype(np.float32)
            if tensor.ndim == 1 else tensor for name, tensor in tensors.items()}
