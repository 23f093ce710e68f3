# SPDX-License-Identifier: MIT
"""Masks, as objects whose matrices are created only when something asks for them."""
from ..torch._masks import BaseMask, FullMask, LengthMask, TriangularCausalMask

__all__ = ["BaseMask", "FullMask", "LengthMask", "TriangularCausalMask"]
