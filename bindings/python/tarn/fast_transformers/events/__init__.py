# SPDX-License-Identifier: MIT
"""Attention matrices, queries, keys and values as events that handlers can listen to."""
from .event import AttentionEvent, Event, QKVEvent
from .event_dispatcher import EventDispatcher

__all__ = ["AttentionEvent", "Event", "EventDispatcher", "QKVEvent"]
