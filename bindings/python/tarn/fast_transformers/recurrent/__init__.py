# SPDX-License-Identifier: MIT
"""Transformers as recurrent networks: one position at a time, with states that are tensors."""
