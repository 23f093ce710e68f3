# SPDX-License-Identifier: MIT
"""The libraries that are measured, one row each; tarn, the first, is the reference.

A peer is a module with functions train, generate and attention, each
    (weights, given, sizes, threads, precision, **options) -> Made
for the workloads of that kind. Its results are compared with those of tarn before it is measured.

install.py reads these rows before any package is installed: import only the standard library
here."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NamedTuple, Tuple

if TYPE_CHECKING:
    import numpy as np


class Made(NamedTuple):
    answer: Callable[[], Dict[str, np.ndarray]]  # compared with the arrays of tarn
    run: Callable[[], Any]  # one call; returns when the results are complete


@dataclass(frozen=True)
class Subject:
    name: str
    module: str
    options: Dict[str, Any] = field(default_factory=dict)
    precisions: Tuple[str, ...] = ("f32",)  # the workloads of these are measured
    needs: Tuple[str, ...] = ()  # packages on PyPI


SUBJECTS: List[Subject] = [
    Subject("tarn", "peer_tarn", precisions=("f32", "bf16", "int8")),
    Subject("PyTorch", "peer_torch", precisions=("f32", "bf16", "int8"), needs=("torch",)),
    Subject("PyTorch, compiled", "peer_torch", {"compiled": True}, ("f32", "bf16"),
            needs=("torch",)),
    Subject("fast_transformers", "peer_authors",
            needs=("torch", "pytorch-fast-transformers")),
    Subject("JAX", "peer_jax", needs=("jax", "optax")),
]


def named(name: str) -> Subject:
    return next(subject for subject in SUBJECTS if subject.name == name)
