# SPDX-License-Identifier: MIT
"""Attentions: full, linear, causal-linear and reformer by tarn; local, exact-topk and
conditional-full in plain torch. Importing it registers them for the builders."""
from .attention_layer import AttentionLayer
from .causal_linear_attention import CausalLinearAttention
from .conditional_full_attention import ConditionalFullAttention
from .exact_topk_attention import ExactTopKAttention
from .full_attention import FullAttention
from .linear_attention import LinearAttention
from .local_attention import LocalAttention
from .reformer_attention import ReformerAttention

__all__ = ["AttentionLayer", "CausalLinearAttention", "ConditionalFullAttention",
           "ExactTopKAttention", "FullAttention", "LinearAttention", "LocalAttention",
           "ReformerAttention"]
