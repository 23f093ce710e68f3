# SPDX-License-Identifier: MIT
"""tarn: transformers with linear attention, on CPUs.

Functions take and return NumPy arrays; `import tarn.torch` has the same for torch tensors."""
from __future__ import annotations

from typing import Dict, List

from . import data
from ._attention import (AttentionState, attention, attention_backward, attention_inputs,
                         attention_vjp, causal_dot_product, causal_dot_product_backward)
from ._errors import (BusyError, ClosedError, Error, FileError, FormatError,
                      InvalidArgument, MachineError, NumberError, OutOfMemory, RankError,
                      UnknownName, UnsupportedError)
from ._library import lib as _lib
from ._library import table as _table
from ._library import version as __version__
from ._model import Model, Note, presets
from ._recipe import Config
from ._state import State
from ._train import Report, Skipped, Training, Validation, evaluate, train
from ._trainer import Score, Trainer

__all__ = [
    "AttentionState", "BusyError", "ClosedError", "Config", "Error", "FileError", "FormatError",
    "InvalidArgument", "MachineError", "Model", "Note", "NumberError", "OutOfMemory", "RankError",
    "Report",
    "Score", "Skipped", "State", "Trainer", "Training", "UnknownName", "UnsupportedError",
    "Validation", "__version__", "attention", "attention_backward", "attention_inputs",
    "attention_kinds", "attention_vjp", "causal_dot_product", "causal_dot_product_backward",
    "cpus", "data", "evaluate", "feature_maps", "presets", "tasks", "train",
]


def attention_kinds() -> Dict[str, str]:
    """Names for the argument `kind`, with descriptions."""
    return _table("tarn_attention_kind")


def feature_maps() -> Dict[str, str]:
    """Names for the argument `feature_map`, with descriptions."""
    return _table("tarn_feature_map")


def tasks() -> Dict[str, str]:
    """Names for the argument `task`, with descriptions."""
    return _table("tarn_task_kind")


def cpus() -> List[str]:
    """Instruction sets that tarn and this processor support, best first; the first is used."""
    found: List[str] = []
    while _lib.tarn_cpu_name(len(found)):
        found.append(_lib.tarn_cpu_name(len(found)).decode())
    return found


for _name in __all__:  # tracebacks and help() name what a caller imports
    _value = globals()[_name]
    if getattr(_value, "__module__", "").startswith("tarn._"):
        _value.__module__ = "tarn"
