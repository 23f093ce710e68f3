# SPDX-License-Identifier: MIT
"""The attentions that builders know by name."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from .spec import Spec


class Registry:
    def __init__(self) -> None:
        self._classes: Dict[str, Tuple[Any, List[str]]] = {}
        self._parameters: Dict[str, Spec] = {}

    def register(self, key: str, class_object: Any,
                 parameter_tuples: Sequence[Tuple[str, Spec]]) -> None:
        """class_object is created with the parameters, by name. Parameters of the same name are
        the same for all attentions: the first one counts."""
        self._classes[key] = class_object, [name for name, _ in parameter_tuples]
        self.accept(parameter_tuples)

    def accept(self, parameter_tuples: Sequence[Tuple[str, Spec]]) -> None:
        """Parameters that builders take, whether or not an attention here reads them."""
        for name, spec in parameter_tuples:
            self._parameters.setdefault(name, spec)

    def __contains__(self, key: str) -> bool:
        return key in self._classes

    def __getitem__(self, key: str) -> Tuple[Any, List[str]]:
        return self._classes[key]

    @property
    def keys(self) -> List[str]:
        return list(self._classes)

    def contains_parameter(self, key: str) -> bool:
        return key in self._parameters

    def validate_parameter(self, key: str, value: Any) -> Any:
        try:
            return self._parameters[key].get(value)
        except ValueError as error:
            raise ValueError(f"Invalid value {value!r} for parameter {key!r}") from error


AttentionRegistry = Registry()
RecurrentAttentionRegistry = Registry()
RecurrentCrossAttentionRegistry = Registry()
