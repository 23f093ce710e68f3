# SPDX-License-Identifier: MIT
"""Builders of attentions: parameters, then get(name)."""
from __future__ import annotations

import inspect
from typing import Any, Dict, List

from ..attention_registry import (AttentionRegistry, RecurrentAttentionRegistry,
                                  RecurrentCrossAttentionRegistry)
from ..attention_registry.registry import Registry
from .base import BaseBuilder


class BaseAttentionBuilder(BaseBuilder):
    _registry: Registry
    _parameters: Dict[str, Any]

    def __init__(self, registry: Registry) -> None:
        object.__setattr__(self, "_registry", registry)
        object.__setattr__(self, "_parameters", {})

    @property
    def available_attentions(self) -> List[str]:
        return self._registry.keys

    def validate_attention_type(self, attention_type: str) -> bool:
        return all(name in self._registry for name in attention_type.split(":"))

    def __setattr__(self, key: str, value: Any) -> None:
        if not self._registry.contains_parameter(key):
            raise AttributeError(f"{key!r} is not a valid attention parameter name")
        self._parameters[key] = self._registry.validate_parameter(key, value)

    def __getattr__(self, key: str) -> Any:
        try:
            return object.__getattribute__(self, "_parameters")[key]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no parameter {key!r}") from None

    def __repr__(self) -> str:
        lines = (f"    {key}={value!r}" for key, value in self._parameters.items())
        return f"{type(self).__name__}.from_kwargs(\n" + ",\n".join(lines) + "\n)"

    def get(self, attention_type: str) -> Any:
        """An attention, or one within another: "conditional-full:linear"."""
        if not self.validate_attention_type(attention_type):
            raise ValueError(f"{attention_type!r} is not an available attention type; available: "
                             f"{', '.join(self.available_attentions)}")
        made: List[Any] = []
        for name in reversed(attention_type.split(":")):
            class_object, names = self._registry[name]
            takes_other = "other_attention" in inspect.signature(class_object).parameters
            if takes_other != bool(made):
                raise TypeError(f"{name!r} attention " + (
                    "needs another one after a colon" if takes_other else
                    "does not take another one after a colon"))
            values = {key: self._registry.validate_parameter(key, self._parameters.get(key))
                      for key in names}
            made = [class_object(*made, **values)]
        return made[0]


class AttentionBuilder(BaseAttentionBuilder):
    def __init__(self) -> None:
        super().__init__(AttentionRegistry)


class RecurrentAttentionBuilder(BaseAttentionBuilder):
    def __init__(self) -> None:
        super().__init__(RecurrentAttentionRegistry)


class RecurrentCrossAttentionBuilder(BaseAttentionBuilder):
    def __init__(self) -> None:
        super().__init__(RecurrentCrossAttentionRegistry)
