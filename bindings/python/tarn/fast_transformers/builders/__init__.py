# SPDX-License-Identifier: MIT
"""Builders: TransformerEncoderBuilder.from_kwargs(n_layers=8, attention_type="linear").get()"""
from .attention_builders import (AttentionBuilder, RecurrentAttentionBuilder,
                                 RecurrentCrossAttentionBuilder)
from .transformer_builders import (RecurrentDecoderBuilder, RecurrentEncoderBuilder,
                                   TransformerDecoderBuilder, TransformerEncoderBuilder)

__all__ = ["AttentionBuilder", "RecurrentAttentionBuilder", "RecurrentCrossAttentionBuilder",
           "RecurrentDecoderBuilder", "RecurrentEncoderBuilder", "TransformerDecoderBuilder",
           "TransformerEncoderBuilder"]
