# SPDX-License-Identifier: MIT
from .attention_layer import RecurrentCrossAttentionLayer
from .full_attention import RecurrentCrossFullAttention
from .linear_attention import RecurrentCrossLinearAttention

__all__ = ["RecurrentCrossAttentionLayer", "RecurrentCrossFullAttention",
           "RecurrentCrossLinearAttention"]
