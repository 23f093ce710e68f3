# SPDX-License-Identifier: MIT
"""The workloads, one row each. `kind` is the name of the function of a peer that prepares it."""
from dataclasses import dataclass, replace
from typing import Any, Dict

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


WORKLOADS = [
    Workload("train", "training, batch 10, N = 784", "train",
             {"heads": HEADS, "batch": 10, "length": 784}, 7840, "tokens/s"),
    Workload("generate-1", "generation, one stream", "generate",
             {"heads": HEADS, "batch": 1, "steps": 256}, 256, "ms per step"),
    Workload("generate-128", "generation, 128 streams", "generate",
             {"heads": HEADS, "batch": 128, "steps": 16}, 16, "ms per step"),
    Workload("causal-linear", "causal linear attention, N = 4096", "attention",
             {"attention": "linear", "causal": True, "shape": (1, 8, 4096, 32)}, 1, "ms"),
    Workload("linear", "linear attention, N = 4096", "attention",
             {"attention": "linear", "causal": False, "shape": (1, 8, 4096, 32)}, 1, "ms"),
    Workload("causal-softmax", "causal softmax attention, N = 4096", "attention",
             {"attention": "softmax", "causal": True, "shape": (1, 8, 4096, 32)}, 1, "ms"),
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
