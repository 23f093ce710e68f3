# SPDX-License-Identifier: MIT
"""Exceptions: one for each status of the library, each also a matching built-in exception."""
from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """Base class of all exceptions of tarn. str() says where, what was found, what is allowed."""

    status: int = 0  # as in tarn/status.h; 0: raised by the Python package itself


class InvalidArgument(Error, ValueError):
    """An argument is invalid; the text names it."""

    status = 1


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""

    status = 2


class UnknownName(Error, LookupError):
    """An unknown name; the text lists the available ones."""

    status = 3


class MachineError(Error, RuntimeError):
    """Not supported by this processor or this build."""

    status = 4


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = 5


class FormatError(Error, ValueError):
    """A file is damaged, or not of the expected format."""

    status = 6


class NumberError(Error, ArithmeticError):
    """A loss or gradient is not finite."""

    status = 7


class RankError(Error, RuntimeError):
    """Another process of a run failed, differs, or does not answer."""

    status = 8


class UnsupportedError(Error, NotImplementedError):
    """Not supported, such as second derivatives."""


class ClosedError(Error, ValueError):
    """The object is already closed."""


class BusyError(Error, RuntimeError):
    """Another thread is using the object; only one may at a time."""


_by_status: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (InvalidArgument, OutOfMemory, UnknownName, MachineError, FileError,
                 FormatError, NumberError, RankError)
}


def error_of(status: int, text: str) -> Error:
    return _by_status.get(status, Error)(text)
