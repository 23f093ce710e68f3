# SPDX-License-Identifier: MIT
"""Registries of attentions: register(name, class, parameters) makes one known to the builders."""
from .registry import (AttentionRegistry, RecurrentAttentionRegistry,
                       RecurrentCrossAttentionRegistry)
from .spec import (Bool, Callable, Choice, EventDispatcherInstance, Float, Int, Optional, Spec)

__all__ = ["AttentionRegistry", "Bool", "Callable", "Choice", "EventDispatcherInstance", "Float",
           "Int", "Optional", "RecurrentAttentionRegistry", "RecurrentCrossAttentionRegistry", "Spec"]
