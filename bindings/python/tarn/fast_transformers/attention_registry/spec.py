# SPDX-License-Identifier: MIT
"""Which values a parameter of an attention may have."""
from __future__ import annotations

import builtins
from typing import Any, Callable as Function, Sequence

from ..events import EventDispatcher


class Spec:
    def __init__(self, predicate: Function[[Any], bool], name: str = "CustomSpec") -> None:
        self._predicate, self._name = predicate, name

    def __repr__(self) -> str:
        return self._name

    def check(self, x: Any) -> bool:
        try:
            self.get(x)
            return True
        except ValueError:
            return False

    def get(self, x: Any) -> Any:
        """The value, or ValueError."""
        if not self._predicate(x):
            raise ValueError(f"{x!r} is not {self._name}")
        return x


class Choice(Spec):
    def __init__(self, choices: Sequence[Any]) -> None:
        super().__init__(lambda x: x in choices, f"Choice[{', '.join(map(repr, choices))}]")


class Optional(Spec):
    """None becomes the default."""

    def __init__(self, spec: Spec, default: Any = None) -> None:
        super().__init__(lambda x: x is None or spec.check(x), f"Optional[{spec!r}, {default!r}]")
        self._spec, self._default = spec, default

    def get(self, x: Any) -> Any:
        return self._default if x is None else self._spec.get(x)


class _EventDispatcherInstance(Spec):
    def __init__(self) -> None:
        super().__init__(lambda x: isinstance(x, (str, EventDispatcher)),
                         "EventDispatcherInstance")

    def get(self, x: Any) -> EventDispatcher:
        return EventDispatcher.get(super().get(x))


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


Int = Spec(lambda x: isinstance(x, int) and not isinstance(x, bool), "Int")
Float = Spec(_is_number, "Float")
Bool = Spec(lambda x: isinstance(x, bool), "Bool")
Callable = Spec(builtins.callable, "Callable")
EventDispatcherInstance = _EventDispatcherInstance()
