# SPDX-License-Identifier: MIT
"""Which code computes an attention: tarn's where it can, plain torch elsewhere.

tarn takes CPU tensors of f32, f16 and bf16, full and causal masks, and the first keys of each
sequence. Other devices, f64, other masks and dropout of the weights are computed by torch."""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from .. import torch as tt
from .._errors import InvalidArgument
from ..torch import _exact
from ..torch._masks import LengthMask, lengths_of, seen_by
from ..torch._operators import has_values
from .feature_maps.base import is_elu

_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def attention(queries: Tensor, keys: Optional[Tensor], values: Tensor, kind: str, causal: bool,
              feature_map: Optional[str], lengths: Optional[Tensor], seed: int = 0) -> Tensor:
    """tarn's own, without states."""
    y: Tensor = tt.attention(queries, keys, values, kind, causal, feature_map, lengths, seed=seed)
    return y


def on_tarn(*tensors: Tensor) -> bool:
    return all(x.device.type == "cpu" and x.dtype in _TYPES for x in tensors)


def check_size(name: str, mask: Any, letters: str, *wanted: int) -> None:
    """The last two dimensions of a mask, where its matrix is read; None: no mask."""
    if mask is not None and tuple(mask.shape)[-2:] != wanted:
        raise InvalidArgument(f"{name}: has shape {tuple(mask.shape)}; it must be {letters} = "
                              f"{wanted}")


def simple_lengths(mask: Any, keys: Tensor) -> "tuple[bool, Optional[Tensor]]":
    """Whether a key mask (N, S) keeps the first keys of each sequence, and how many; None: all."""
    check_size("key_lengths", mask, "(N, S)", *keys.shape[:2])
    try:
        lengths = lengths_of("key_lengths", mask, keys.shape[0], keys.shape[1])
    except InvalidArgument:
        if isinstance(mask, LengthMask):
            raise
        return False, None
    return True, None if lengths is None else lengths.clamp(max=keys.shape[1])


def linear(queries: Tensor, keys: Tensor, values: Tensor, feature_map: Any, causal: bool,
           key_lengths: Any, eps: float) -> Tensor:
    """(4) to (12) of tensors (N, L, H, E) and a mask of keys."""
    simple, lengths = simple_lengths(key_lengths, keys)
    feature_map.new_feature_map(queries.device)
    if simple and is_elu(feature_map) and on_tarn(queries, keys, values):
        return attention(queries, keys, values, f"linear:eps={eps!r}", causal, "elu", lengths)
    q, k = feature_map.forward_queries(queries), feature_map.forward_keys(keys)
    if not simple:
        k = k * key_lengths.float_matrix[:, :, None, None]
    if on_tarn(q, k, values):
        return attention(q, k, values, f"linear:eps={eps!r}", causal, "identity", lengths)
    return _exact.linear(q, k, values, causal, lengths, eps)


def additive(queries: Tensor, keys: Tensor, mask: Any, key_lengths: Any) -> Optional[Tensor]:
    """Both masks as a tensor that broadcasts to (N, H, L, S); None: every key is visible."""
    found: Optional[Tensor] = None
    check_size("key_lengths", key_lengths, "(N, S)", *keys.shape[:2])
    if mask is not None and not bool(mask.all_ones):
        check_size("attn_mask", mask, "(L, S)", queries.shape[1], keys.shape[1])
        found = mask.additive_matrix
        found = found if found.dim() == 4 else found.view(-1, 1, *found.shape[-2:])
    if key_lengths is not None and not (has_values() and bool(key_lengths.all_ones)):
        of_keys = key_lengths.additive_matrix[:, None, None]
        found = of_keys if found is None else found + of_keys
    return None if found is None else found.to(queries.dtype)  # f16 stays f16


def softmax_on_tarn(queries: Tensor, keys: Tensor, values: Tensor, mask: Any, key_lengths: Any,
                    scale: Optional[float]) -> Optional[Tensor]:
    """(2) by tarn; None if the masks are others than it has."""
    if not on_tarn(queries, keys, values) or (scale is not None and scale <= 0):
        return None
    simple, lengths = simple_lengths(key_lengths, keys)
    try:
        seen = seen_by(mask, queries.shape[1], keys.shape[1])
    except InvalidArgument:
        return None
    if not simple or not seen.full and queries.shape[1] != keys.shape[1]:
        return None
    kind = "softmax" if scale is None else f"softmax:scale={float(scale)!r}"
    return attention(queries, keys, values, kind, not seen.full, None, lengths)
