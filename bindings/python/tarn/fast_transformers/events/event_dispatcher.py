# SPDX-License-Identifier: MIT
"""Dispatchers bring events to the handlers that listen."""
from __future__ import annotations

from typing import Any, Callable, Dict, Union

from .event import Event
from .filters import EventFilter

Handler = Callable[[Event], Any]


class EventDispatcher:
    _dispatchers: Dict[str, "EventDispatcher"] = {}

    def __init__(self) -> None:
        self._listeners: Dict[Handler, EventFilter] = {}

    def listen(self, event_filter: Any, event_handler: Handler) -> None:
        """event_filter: a class of events, a function of an event, or a filter."""
        self._listeners[event_handler] = EventFilter._to_event_filter(event_filter)

    def remove(self, event_handler: Handler) -> None:
        self._listeners.pop(event_handler, None)

    def clear(self) -> None:
        self._listeners.clear()

    @property
    def has_listeners(self) -> bool:
        """Whether somebody listens: attention matrices are computed only then."""
        return bool(self._listeners)

    def dispatch(self, event: Event) -> None:
        for event_handler, event_filter in list(self._listeners.items()):
            if event_filter(event):
                event_handler(event)

    @classmethod
    def get(cls, key: Union[str, "EventDispatcher"] = "") -> "EventDispatcher":
        """The dispatcher of that name, which is created if there is none."""
        if isinstance(key, cls):
            return key
        if not isinstance(key, str):
            raise ValueError(f"key is {type(key).__name__}; it must be str or an EventDispatcher")
        return cls._dispatchers.setdefault(key, cls())
