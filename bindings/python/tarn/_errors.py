# SPDX-License-Identifier: MIT
"""Exceptions: the library's statuses, each also the built-in kind a caller may expect."""
from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """What tarn raises. str() is one sentence: what was found, and what was expected."""

    status: int = 0  # as in tarn/status.h; 0: found before the library was asked


class InvalidArgument(Error, ValueError):
    """An argument cannot be used; the text names it."""

    status = 1


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""

    status = 2


class UnknownName(Error, LookupError):
    """A name that no table has."""

    status = 3


class MachineError(Error, RuntimeError):
    """This machine cannot do it."""

    status = 4


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = 5


class FormatError(Error, ValueError):
    """A file is not what it claims to be."""

    status = 6


class NumberError(Error, ArithmeticError):
    """A number is not finite."""

    status = 7


class UnsupportedError(Error, NotImplementedError):
    """There is no way to compute this, such as second derivatives."""


class ClosedError(Error, ValueError):
    """The object was closed before."""


class BusyError(Error, RuntimeError):
    """Another thread is using the object, which takes one at a time."""


class ForkedError(Error, RuntimeError):
    """The object was made before os.fork(), which does not take its threads along."""


_by_status: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (InvalidArgument, OutOfMemory, UnknownName, MachineError, FileError,
                 FormatError, NumberError)
}


def error_of(status: int, text: str) -> Error:
    return _by_status.get(status, Error)(text)
