# SPDX-License-Identifier: MIT
"""The functions of the original's extension, which write to tensors of the caller."""
from __future__ import annotations

from torch import Tensor

from ...torch import _operators


def causal_dot_product(Q: Tensor, K: Tensor, V: Tensor, product: Tensor) -> None:
    """product_i = Q_i^T sum_{j <= i} K_j V_j^T, for tensors (N, H, L, E) and (N, H, L, M)."""
    product.copy_(_operators.dot_product_forward(Q, K, V, -1))


def causal_dot_backward(Q: Tensor, K: Tensor, V: Tensor, grad_out: Tensor, grad_Q: Tensor,
                        grad_K: Tensor, grad_V: Tensor) -> None:
    """The gradients of a loss whose gradient with respect to the product is grad_out."""
    found = _operators.dot_product_gradients(Q, K, V, grad_out, -1)
    for gradient, value in zip((grad_Q, grad_K, grad_V), found):
        gradient.copy_(value)
