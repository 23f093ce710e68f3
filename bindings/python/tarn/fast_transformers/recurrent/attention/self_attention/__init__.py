# SPDX-License-Identifier: MIT
from .attention_layer import RecurrentAttentionLayer
from .full_attention import RecurrentFullAttention
from .linear_attention import RecurrentLinearAttention

__all__ = ["RecurrentAttentionLayer", "RecurrentFullAttention", "RecurrentLinearAttention"]
