# SPDX-License-Identifier: MIT
"""Products of each position with its neighbours, with gradients."""
from .local_product_cpu import local_dot_backward as local_dot_backward_cpu
from .local_product_cpu import local_dot_product, local_weighted_average
from .local_product_cpu import local_weighted_average_backward as local_weighted_average_backward_cpu

local_dot_product_cpu, local_weighted_average_cpu = local_dot_product, local_weighted_average

__all__ = ["local_dot_backward_cpu", "local_dot_product", "local_dot_product_cpu",
           "local_weighted_average", "local_weighted_average_backward_cpu",
           "local_weighted_average_cpu"]
