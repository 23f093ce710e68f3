# SPDX-License-Identifier: MIT
"""A drop-in for fast_transformers, the library of the paper's authors, on tarn.

    import tarn.fast_transformers as fast_transformers

has its module paths, names, arguments, defaults and checkpoints. After install() the statement
`import fast_transformers` gives this package; without it an installed original is untouched.

Not here: the clustered attentions and attention-free transformers (AFT)."""
from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType
from typing import Any, Dict, Optional, Sequence

from . import (attention, attention_registry, builders, causal_product, events, feature_maps,
               local_product, masking, recurrent, transformers, utils, weight_mapper)

__all__ = ["attention", "attention_registry", "builders", "causal_product", "events",
           "feature_maps", "install", "local_product", "masking", "recurrent", "transformers", "utils",
           "weight_mapper"]

_ORIGINAL = "fast_transformers"


class _Redirect(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of fast_transformers here, each of which stays one module under two names."""

    def __init__(self) -> None:
        self._own: Dict[str, Any] = {}  # the specs under the names of this package

    def find_spec(self, fullname: str, path: Optional[Sequence[str]],
                  target: Optional[ModuleType] = None) -> Any:
        if fullname != _ORIGINAL and not fullname.startswith(_ORIGINAL + "."):
            return None
        if importlib.util.find_spec(self._here(fullname)) is None:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    @staticmethod
    def _here(fullname: str) -> str:
        return __name__ + fullname[len(_ORIGINAL):]

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(self._here(spec.name))
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed under its own name, which the import statement replaced."""
        module.__spec__ = self._own.pop(module.__spec__.name if module.__spec__ else "")


def install() -> None:
    """Makes `import fast_transformers` give this package, in this process. RuntimeError if the
    original has already been imported."""
    found = sys.modules.get(_ORIGINAL)
    if found is not None and found is not sys.modules[__name__]:
        raise RuntimeError("fast_transformers has already been imported; call "
                           "tarn.fast_transformers.install() before the first import of it")
    if not any(isinstance(finder, _Redirect) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Redirect())
