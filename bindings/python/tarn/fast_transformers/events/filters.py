# SPDX-License-Identifier: MIT
"""Filters choose the events that a handler gets. They combine with &, | and ~."""
from __future__ import annotations

from typing import Any, Callable, Type, Union, cast

from torch.nn import Module

from .event import Event

Condition = Callable[[Event], bool]


class EventFilter:
    def __call__(self, event: Event) -> bool:
        raise NotImplementedError

    @staticmethod
    def _to_event_filter(other: Union["EventFilter", Type[Event], Condition]) -> "EventFilter":
        if isinstance(other, EventFilter):
            return other
        if isinstance(other, type) and issubclass(other, Event):
            return event_class(other)
        if callable(other):
            return CallableEventFilter(cast(Condition, other))
        raise ValueError(f"event_filter is {type(other).__name__}; it must be a class of events, a "
                         "function of an event, or a filter")

    def __and__(self, other: Any) -> "EventFilter":
        second = self._to_event_filter(other)
        return CallableEventFilter(lambda event: self(event) and second(event))

    def __or__(self, other: Any) -> "EventFilter":
        second = self._to_event_filter(other)
        return CallableEventFilter(lambda event: self(event) or second(event))

    def __rand__(self, other: Any) -> "EventFilter":
        return self._to_event_filter(other) & self

    def __ror__(self, other: Any) -> "EventFilter":
        return self._to_event_filter(other) | self

    def __invert__(self) -> "EventFilter":
        return CallableEventFilter(lambda event: not self(event))


class CallableEventFilter(EventFilter):
    def __init__(self, event_filter: Condition) -> None:
        self._event_filter = event_filter

    def __call__(self, event: Event) -> bool:
        return bool(self._event_filter(event))


class LayerNameEventFilter(EventFilter):
    """Events of the modules of `root` whose name passes name_filter."""

    def __init__(self, root: Module, name_filter: Callable[[str], bool]) -> None:
        self._names = {module: name for name, module in root.named_modules()}
        self._name_filter = name_filter

    def __call__(self, event: Event) -> bool:
        name = self._names.get(event.source)
        return name is not None and self._name_filter(name)


def event_class(klass: Type[Event]) -> EventFilter:
    return CallableEventFilter(lambda event: isinstance(event, klass))


def from_layer(layer: Module) -> EventFilter:
    return CallableEventFilter(lambda event: event.source is layer)


def layer_name_contains(root: Module, name: str) -> EventFilter:
    return LayerNameEventFilter(root, lambda found: name in found)
