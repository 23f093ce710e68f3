# SPDX-License-Identifier: MIT
"""Attentions that process one position at a time. Importing it registers them for the builders."""
from .cross_attention import (RecurrentCrossAttentionLayer, RecurrentCrossFullAttention,
                              RecurrentCrossLinearAttention)
from .self_attention import (RecurrentAttentionLayer, RecurrentFullAttention,
                             RecurrentLinearAttention)

__all__ = ["RecurrentAttentionLayer", "RecurrentCrossAttentionLayer",
           "RecurrentCrossFullAttention", "RecurrentCrossLinearAttention",
           "RecurrentFullAttention", "RecurrentLinearAttention"]
