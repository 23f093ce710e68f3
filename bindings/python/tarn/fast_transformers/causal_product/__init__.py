# SPDX-License-Identifier: MIT
"""The numerator of causal linear attention: y_i = Q_i^T sum_{j <= i} K_j V_j^T."""
from ...torch import causal_dot_product
from .causal_product_cpu import causal_dot_backward as causal_dot_backward_cpu
from .causal_product_cpu import causal_dot_product as causal_dot_product_cpu

__all__ = ["causal_dot_backward_cpu", "causal_dot_product", "causal_dot_product_cpu"]
