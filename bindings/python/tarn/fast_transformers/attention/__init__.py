# SPDX-License-Identifier: MIT
"""Attentions: full, linear, causal-linear and reformer by tarn; local, exact-topk and
conditional-full in plain torch. Importing it registers them for the builders. The clustered ones are
names that refuse to be made."""
from ._clustered import (ClusteredAttention, ImprovedClusteredAttention,
                         ImprovedClusteredCausalAttention)
from .attention_layer import AttentionLayer
from .causal_linear_attention import CausalLinearAttention
from .conditional_full_attention import ConditionalFullAttention
from .exact_topk_attention import ExactTopKAttention
from .full_attention import FullAttention
from .linear_attention import LinearAttention
from .local_attention import LocalAttention
from .reformer_attention import ReformerAttention

__all__ = ["AttentionLayer", "CausalLinearAttention", "ClusteredAttention",
           "ConditionalFullAttention", "ExactTopKAttention", "FullAttention",
           "ImprovedClusteredAttention", "ImprovedClusteredCausalAttention", "LinearAttention",
           "LocalAttention", "ReformerAttention"]
