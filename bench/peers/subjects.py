# SPDX-License-Identifier: MIT
"""Who is measured: a row per subject, tarn first, whose times the others are divided by.

A peer is a module with functions train, generate and attention, each
    (weights, given, sizes, threads, **options) -> Made
for the workloads of that kind. What it computes is compared with tarn before it is measured.

install.py reads these rows before any package is installed: only Python's own modules are
imported here."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Tuple

if TYPE_CHECKING:
    import numpy as np


class Made(NamedTuple):
    answer: Callable[[], Dict[str, np.ndarray]]  # to be compared with tarn's
    run: Callable[[], Any]  # one call; comes back when the results are there


@dataclass(frozen=True)
class Subject:
    name: str
    module: str
    options: Dict[str, Any] = field(default_factory=dict)
    kinds: Tuple[str, ...] = ("train", "generate", "attention")
    needs: Tuple[str, ...] = ()  # packages of the index
    tolerance: float = 1.0  # times that of its kind


SUBJECTS: List[Subject] = [
    Subject("tarn", "peer_tarn"),
    Subject("tarn, bf16 weights", "peer_tarn", {"precision": "bf16"}, ("generate",),
            tolerance=100.0),
    Subject("PyTorch", "peer_torch", needs=("torch",)),
    Subject("PyTorch, compiled", "peer_torch", {"compiled": True}, needs=("torch",)),
    Subject("fast_transformers", "peer_authors",
            needs=("torch", "pytorch-fast-transformers")),
    Subject("JAX", "peer_jax", needs=("jax", "optax")),
]


def named(name: str) -> Subject:
    return next(subject for subject in SUBJECTS if subject.name == name)
