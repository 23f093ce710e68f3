# SPDX-License-Identifier: MIT
"""What is left of the clustered attentions: programs that import their names, or set their parameters
in a builder, run as long as they use another attention."""
from __future__ import annotations

from typing import Any

from torch import nn

from ..._errors import UnsupportedError
from ..attention_registry import AttentionRegistry, Bool, Int, Optional as OptionalSpec


class ClusteredAttention(nn.Module):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(f"{type(self).__name__} is not in tarn.fast_transformers; use "
                               "FullAttention, ReformerAttention or LinearAttention")


class ImprovedClusteredAttention(ClusteredAttention):
    pass


class ImprovedClusteredCausalAttention(ClusteredAttention):
    pass


AttentionRegistry.accept([("clusters", Int), ("iterations", OptionalSpec(Int, 10)),
                          ("hash_bias", OptionalSpec(Bool, True))])
