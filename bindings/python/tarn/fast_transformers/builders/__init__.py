# SPDX-License-Identifier: MIT
"""Builders: TransformerEncoderBuilder.from_kwargs(n_layers=8, attention_type="linear").get()"""
from ..attention import (CausalLinearAttention, ConditionalFullAttention, ExactTopKAttention,
                         FullAttention, LinearAttention, ReformerAttention)
from .attention_builders import (AttentionBuilder, RecurrentAttentionBuilder,
                                 RecurrentCrossAttentionBuilder)
from .transformer_builders import (RecurrentDecoderBuilder, RecurrentEncoderBuilder,
                                   TransformerDecoderBuilder, TransformerEncoderBuilder)

__all__ = ["AttentionBuilder", "CausalLinearAttention", "ConditionalFullAttention",
           "ExactTopKAttention", "FullAttention", "LinearAttention", "RecurrentAttentionBuilder",
           "RecurrentCrossAttentionBuilder", "RecurrentDecoderBuilder", "RecurrentEncoderBuilder",
           "ReformerAttention", "TransformerDecoderBuilder", "TransformerEncoderBuilder"]
