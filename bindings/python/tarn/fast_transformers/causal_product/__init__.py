# SPDX-License-Identifier: MIT
"""The numerator of causal linear attention: y_i = Q_i^T sum_{j <= i} K_j V_j^T."""
from ...torch import causal_dot_product

__all__ = ["causal_dot_product"]
