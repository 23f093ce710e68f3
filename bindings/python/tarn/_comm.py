# SPDX-License-Identifier: MIT
"""Processes that train or evaluate together: communicators of mpi4py."""
from __future__ import annotations

import ctypes as c
import os
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from . import _structs as s
from ._errors import InvalidArgument, RankError
from ._library import call, lib


def _address(comm: Any) -> int:
    """Of its MPI_Comm."""
    try:
        from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise InvalidArgument(f"comm needs mpi4py, which cannot be imported: {error}") from error
    if not isinstance(comm, MPI.Comm):
        raise InvalidArgument(f"comm is {type(comm).__name__}; it must be a communicator of "
                              "mpi4py, such as MPI.COMM_WORLD, or None")
    return int(MPI._addressof(comm))


def _timeout() -> float:
    """As the program has it; 0: the library's."""
    text = os.environ.get("TARN_COMM_TIMEOUT", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < 1e9:
        raise InvalidArgument(f"TARN_COMM_TIMEOUT is '{text}'; it must be a number of seconds")
    return seconds


@contextmanager
def communicator(comm: Any) -> Iterator[Optional[s.tarn_comm]]:
    """A copy of the caller's. It is not closed after a RankError: that would wait for a process
    which is gone."""
    if comm is None:
        yield None
        return
    raw = s.tarn_comm()
    timeout = _timeout()
    call("tarn_comm_open", c.byref(raw), b"mpi", _address(comm))
    raw.timeout = timeout
    try:
        yield raw
    except RankError:
        raise
    except BaseException:
        lib.tarn_comm_close(c.byref(raw))
        raise
    lib.tarn_comm_close(c.byref(raw))


def pointer_of(raw: Optional[s.tarn_comm]) -> Optional[int]:
    return None if raw is None else c.addressof(raw)


def threads_for(raw: Optional[s.tarn_comm], threads: int) -> int:
    """Processes that share processors share them evenly."""
    if raw is None or threads > 0:
        return threads
    return max(1, len(os.sched_getaffinity(0)) // int(raw.sharing))


def is_first(raw: Optional[s.tarn_comm]) -> bool:
    return raw is None or raw.rank == 0
