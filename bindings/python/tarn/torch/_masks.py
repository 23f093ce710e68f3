# SPDX-License-Identifier: MIT
"""Masks: those of fast_transformers, objects with the same attributes, tensors, or None.

An attention mask must be full or causal, and key lengths must keep the first keys of each
sequence. Anything else is not supported and raises an error."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from .._errors import InvalidArgument
from .._library import count

_INF = float("-inf")

# ---- Our own --------------------------------------------------------------------


def _first_keys(matrix: torch.Tensor) -> Optional[torch.Tensor]:
    """The number of visible keys in each row; None if these are not the first ones."""
    lengths = matrix.long().sum(-1)
    places = torch.arange(matrix.shape[-1], device=matrix.device)
    return lengths if bool((matrix == (places < lengths.unsqueeze(-1))).all()) else None


class BaseMask:
    """A mask whose matrix is created only when it is asked for."""

    @property
    def bool_matrix(self) -> torch.Tensor:
        """True for visible keys."""
        raise NotImplementedError

    @property
    def shape(self) -> Tuple[int, ...]:
        return tuple(self.bool_matrix.shape)

    @property
    def float_matrix(self) -> torch.Tensor:
        return self.bool_matrix.float()

    @property
    def additive_matrix(self) -> torch.Tensor:
        """0 for visible keys, -inf for others."""
        return torch.log(self.float_matrix)

    @property
    def additive_matrix_finite(self) -> torch.Tensor:
        """0 for visible keys, -1e24 for others."""
        return (~self.bool_matrix).float() * -1e24

    @property
    def lengths(self) -> torch.Tensor:
        """The number of visible keys in each row; ValueError if these are not the first ones."""
        lengths = _first_keys(self.bool_matrix)
        if lengths is None:
            raise InvalidArgument("mask is not a length mask: it masks keys before visible ones")
        return lengths

    @property
    def all_ones(self) -> bool:
        return bool(self.bool_matrix.all())

    @property
    def lower_triangular(self) -> bool:
        matrix = self.bool_matrix
        return matrix.dim() == 2 and matrix.equal(torch.ones_like(matrix).tril())


_Symbol: Any = getattr(torch, "SymInt", ())  # a size that torch.export leaves open


def _size(name: str, value: Any) -> int:
    """A number of positions; while torch.jit.trace looks on, sizes are tensors."""
    if type(value) in (int, _Symbol) and value >= 0:
        return value  # type: ignore[no-any-return]
    is_size = isinstance(value, torch.Tensor) and value.dim() == 0
    return count(name, int(value) if is_size else value)


class FullMask(BaseMask):
    """FullMask(tensor): a bool tensor, True for visible keys. FullMask(N) and FullMask(N, M): N
    queries attend to all M keys; M is N by default."""

    def __init__(self, mask: Union[None, int, torch.Tensor] = None, N: Optional[int] = None,
                 M: Optional[int] = None, device: Any = "cpu") -> None:
        self._mask: Optional[torch.Tensor] = None
        if isinstance(mask, torch.Tensor) and mask.dim() > 0:
            if mask.dtype != torch.bool:
                raise InvalidArgument(f"mask is {mask.dtype}; it must be torch.bool, True for "
                                      "visible keys")
            self._mask = mask.detach().clone()
            return
        if mask is not None:  # FullMask(N) and FullMask(N, M)
            if M is not None:
                raise InvalidArgument("mask and M are both given; give a tensor, or N and M")
            mask, N, M = None, _size("mask", mask), N
        if N is None:
            raise InvalidArgument("mask and N are both None; give a bool tensor, or a number of "
                                  "positions")
        self._shape = (_size("N", N), _size("M", N if M is None else M))
        self._device = device

    @property
    def bool_matrix(self) -> torch.Tensor:
        if self._mask is not None:
            return self._mask
        return torch.ones(self._shape, dtype=torch.bool, device=self._device)

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._shape if self._mask is None else tuple(self._mask.shape)

    @property
    def all_ones(self) -> bool:
        return self._mask is None or super().all_ones

    @property
    def lower_triangular(self) -> bool:
        return self._shape == (1, 1) if self._mask is None else super().lower_triangular


class LengthMask(BaseMask):
    """Masks the positions past the length of each sequence."""

    def __init__(self, lengths: Union[torch.Tensor, Sequence[int]], max_len: Optional[int] = None,
                 device: Any = None) -> None:
        self._lengths = torch.as_tensor(lengths, device=device).clone()
        if max_len is None:
            max_len = int(self._lengths.max()) if self._lengths.numel() else 0
        self._max_len = _size("max_len", max_len)

    @property
    def lengths(self) -> torch.Tensor:
        return self._lengths

    @property
    def shape(self) -> Tuple[int, ...]:
        return (self._lengths.shape[0], self._max_len)

    @property
    def bool_matrix(self) -> torch.Tensor:
        places = torch.arange(self._max_len, device=self._lengths.device)
        return places.view(1, -1) < self._lengths.view(-1, 1)


class TriangularCausalMask(LengthMask):
    """Position i of N attends only to positions up to i."""

    def __init__(self, N: int, device: Any = "cpu") -> None:
        N = _size("N", N)
        super().__init__(torch.arange(1, N + 1, device=device), N)

    @property
    def all_ones(self) -> bool:
        return self._max_len == 1

    @property
    def lower_triangular(self) -> bool:
        return True


# ---- Any mask -------------------------------------------------------------------


class Seen(NamedTuple):
    """Whether an attention mask is full, and whether it is causal; a single key is both."""

    full: bool
    causal: bool


def _allowed(name: str, mask: Any) -> torch.Tensor:
    """The boolean matrix of a mask, True where a key is visible."""
    if isinstance(mask, torch.Tensor):
        matrix, additive = mask, mask.dtype != torch.bool
    elif isinstance(getattr(mask, "bool_matrix", None), torch.Tensor):
        matrix, additive = mask.bool_matrix, False
    elif isinstance(getattr(mask, "additive_matrix", None), torch.Tensor):
        matrix, additive = mask.additive_matrix, True
    elif isinstance(getattr(mask, "float_matrix", None), torch.Tensor):
        matrix, additive = mask.float_matrix, False
    else:
        raise InvalidArgument(f"{name} is {type(mask).__name__}; it must be None, a tensor, or a "
                              "mask with bool_matrix, float_matrix or additive_matrix")
    seen, unseen = (0.0, _INF) if additive else (1.0, 0.0)
    allowed = matrix == seen
    if not bool((allowed | (matrix == unseen)).all()):
        raise InvalidArgument(f"{name}: contains weights; it must be {seen:g} for visible keys and "
                              f"{unseen:g} for masked ones")
    return allowed


def _says(mask: Any, attribute: str) -> bool:
    """Of masks of fast_transformers some attributes are tensors."""
    said = getattr(mask, attribute, False)
    return bool(said) if isinstance(said, (bool, torch.Tensor)) else False


def _check_shape(shape: Tuple[int, ...], queries: int, keys: int) -> None:
    if shape != (queries, keys):
        raise InvalidArgument(f"attn_mask: has shape {tuple(shape)}; it must be (L, S) = "
                              f"{(queries, keys)}")


def seen_by(mask: Any, queries: int, keys: int) -> Seen:
    """The meaning of an attention mask (L, S)."""
    if mask is None:
        return Seen(True, queries == keys == 1)
    if isinstance(mask, BaseMask):
        _check_shape(mask.shape, queries, keys)
    if _says(mask, "all_ones"):
        return Seen(True, queries == keys == 1)
    if _says(mask, "lower_triangular"):
        return Seen(False, True)
    allowed = _allowed("attn_mask", mask)
    _check_shape(tuple(allowed.shape), queries, keys)
    seen = Seen(bool(allowed.all()), bool((allowed == torch.ones_like(allowed).tril()).all()))
    if not seen.full and not seen.causal:
        raise InvalidArgument("attn_mask is neither full nor lower triangular; other masks are "
                              "not supported")
    return seen


def lengths_of(name: str, mask: Any, batch: int, most: int) -> Optional[torch.Tensor]:
    """The lengths of a length mask; None: no padding. The operator checks their values, so that
    compiled functions need not read them."""
    if mask is None:
        return None
    if isinstance(mask, BaseMask) and mask.shape != (batch, most):
        raise InvalidArgument(f"{name}: has shape {mask.shape}; it must be (N, S) = "
                              f"{(batch, most)}")
    if not isinstance(mask, LengthMask) and _says(mask, "all_ones"):
        return None
    try:
        found = getattr(mask, "lengths", mask)
    except ValueError:  # of a mask that is none of lengths
        found = None
    if isinstance(found, (list, tuple)):
        found = torch.tensor(found)
    if not isinstance(found, torch.Tensor) or found is not mask and found.dim() != 1:
        found = _counted(name, mask, batch, most)
    return whole_numbers(name, found, batch)


def whole_numbers(name: str, found: torch.Tensor, batch: int) -> torch.Tensor:
    """The same tensor, which must be (batch,)."""
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if not whole or tuple(found.shape) != (batch,):
        raise InvalidArgument(f"{name}: is {found.dtype} of shape {tuple(found.shape)}; it must "
                              f"be {batch} whole numbers")
    return found


def _counted(name: str, mask: Any, batch: int, most: int) -> torch.Tensor:
    """The lengths of a mask that has only a matrix (N, S)."""
    allowed = _allowed(name, mask)
    if tuple(allowed.shape) != (batch, most):
        raise InvalidArgument(f"{name}: has shape {tuple(allowed.shape)}; it must be (N, S) = "
                              f"{(batch, most)}")
    lengths = _first_keys(allowed)
    if lengths is None:
        raise InvalidArgument(f"{name}: masks keys in the middle; only keys at the end can be "
                              "masked")
    return lengths
