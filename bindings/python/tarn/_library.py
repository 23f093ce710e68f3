# SPDX-License-Identifier: MIT
"""The shared library: finding it, its functions, calling them."""
from __future__ import annotations

import ctypes as c
import operator
import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _structs as s
from ._errors import BusyError, ClosedError, InvalidArgument, error_of

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

_SERIES = "0.1"  # before 1.0 a minor version may change structs: only this one is called

_P = c.c_void_p
_S = c.c_size_t
_E = c.POINTER(s.tarn_error)
_STATUS = c.c_int

_functions: Dict[str, Tuple[Any, Sequence[Any]]] = {
    "tarn_version": (c.c_char_p, ()),
    "tarn_cpu_name": (c.c_char_p, (_S,)),
    "tarn_attention_create": (_STATUS, (c.POINTER(_P), c.POINTER(s.tarn_attention_desc), _E)),
    "tarn_attention_free": (None, (_P,)),
    "tarn_attention_saved_size": (_S, (_P,)),
    "tarn_attention_workspace_size": (_S, (_P,)),
    "tarn_attention_state_size": (_S, (_P,)),
    "tarn_attention_forward": (_STATUS, (_P, _P, _P, _P, _E)),
    "tarn_attention_backward": (_STATUS, (_P, _P, _P, _P, _E)),
    "tarn_attention_step": (_STATUS, (_P, _P, c.POINTER(_P), _S, _P, _E)),
    "tarn_attention_inputs": (c.POINTER(s.tarn_attention_input), (c.c_char_p,)),
    "tarn_attention_kind": (c.POINTER(s.tarn_table_row), (_S,)),
    "tarn_feature_map": (c.POINTER(s.tarn_table_row), (_S,)),
    "tarn_causal_dot_product_workspace_size": (_S, (c.POINTER(s.tarn_dot_product_sizes),)),
    "tarn_causal_dot_product": (
        _STATUS, (c.POINTER(s.tarn_dot_product_sizes), s.tarn_output, s.tarn_input,
                  s.tarn_input, s.tarn_input, _P, _E)),
    "tarn_causal_dot_product_backward": (
        _STATUS, (c.POINTER(s.tarn_dot_product_sizes), s.tarn_output, s.tarn_output,
                  s.tarn_output, s.tarn_input, s.tarn_input, s.tarn_input, s.tarn_input,
                  _P, _E)),
    "tarn_preset": (c.POINTER(s.tarn_table_row), (_S,)),
    "tarn_config_preset": (_STATUS, (c.POINTER(s.tarn_config), c.c_char_p, _E)),
    "tarn_config_set": (_STATUS, (c.POINTER(s.tarn_config), c.c_char_p, c.c_char_p, _E)),
    "tarn_config_start": (_STATUS, (c.POINTER(s.tarn_config), c.c_char_p, c.c_char_p, _E)),
    "tarn_config_field": (c.POINTER(s.tarn_field), (_S,)),
    "tarn_preset_task": (c.c_char_p, (c.c_char_p,)),
    "tarn_model_create": (_STATUS, (c.POINTER(_P), c.POINTER(s.tarn_config), _P, _E)),
    "tarn_model_load": (_STATUS, (c.POINTER(_P), c.c_char_p, _P, _E)),
    "tarn_model_import": (_STATUS, (c.POINTER(_P), c.c_char_p, c.POINTER(s.tarn_import_desc),
                                    _E)),
    "tarn_model_save": (_STATUS, (_P, c.c_char_p, _E)),
    "tarn_model_export": (_STATUS, (_P, c.c_char_p, c.c_char_p, _S, _E)),
    "tarn_model_free": (None, (_P,)),
    "tarn_model_config": (c.POINTER(s.tarn_config), (_P,)),
    "tarn_model_parameters": (_S, (_P,)),
    "tarn_model_outputs": (_S, (_P,)),
    "tarn_model_tensor": (c.c_bool, (_P, _S, c.POINTER(s.tarn_tensor))),
    "tarn_model_fingerprint": (c.c_uint64, (_P,)),
    "tarn_run_create": (_STATUS, (c.POINTER(_P), _P, c.POINTER(s.tarn_run_desc), _E)),
    "tarn_run_free": (None, (_P,)),
    "tarn_run_forward": (_STATUS, (_P, c.POINTER(_P), _P, _P, _E)),
    "tarn_run_frames": (_STATUS, (_P, c.POINTER(_P), _P, _P, _E)),
    "tarn_trainer_create": (_STATUS, (c.POINTER(_P), _P, c.POINTER(s.tarn_trainer_desc), _E)),
    "tarn_trainer_free": (None, (_P,)),
    "tarn_trainer_update": (_STATUS, (_P, c.POINTER(s.tarn_report), c.POINTER(s.tarn_batch), _S,
                                      _E)),
    "tarn_trainer_score": (_STATUS, (_P, c.POINTER(s.tarn_score), c.POINTER(s.tarn_batch), _E)),
    "tarn_trainer_observe": (None, (_P, c.c_double)),
    "tarn_trainer_save": (_STATUS, (_P, c.c_char_p, _E)),
    "tarn_trainer_load": (_STATUS, (_P, c.c_char_p, _E)),
    "tarn_trainer_updates": (c.c_uint64, (_P,)),
    "tarn_trainer_bytes": (_S, (_P,)),
    "tarn_settings_field": (c.POINTER(s.tarn_field), (_S,)),
    "tarn_settings_set": (_STATUS, (c.POINTER(s.tarn_settings), c.c_char_p, c.c_char_p, _E)),
    "tarn_settings_start": (_STATUS, (c.POINTER(s.tarn_settings), c.c_char_p, _E)),
    "tarn_settings_preset": (_STATUS, (c.POINTER(s.tarn_settings), c.c_char_p, _E)),
    "tarn_task_kind": (c.POINTER(s.tarn_table_row), (_S,)),
    "tarn_task_preset": (c.c_char_p, (c.c_char_p,)),
    "tarn_comm_open": (_STATUS, (c.POINTER(s.tarn_comm), c.c_char_p, _P, _E)),
    "tarn_comm_close": (None, (c.POINTER(s.tarn_comm),)),
    "tarn_train": (_STATUS, (c.POINTER(s.tarn_config), c.POINTER(s.tarn_settings),
                             c.POINTER(s.tarn_train_desc), _E)),
    "tarn_train_settings": (_STATUS, (c.POINTER(s.tarn_config), c.POINTER(s.tarn_settings),
                                      c.c_char_p, _E)),
    "tarn_evaluate": (_STATUS, (c.POINTER(s.tarn_validation), _P, c.POINTER(s.tarn_settings),
                                c.POINTER(s.tarn_evaluate_desc), _E)),
    "tarn_batches_open": (_STATUS, (c.POINTER(_P), c.POINTER(s.tarn_settings),
                                    c.POINTER(s.tarn_batches_desc), _E)),
    "tarn_batches_free": (None, (_P,)),
    "tarn_batches_count": (_S, (_P, c.c_bool)),
    "tarn_batches_fill": (_STATUS, (_P, c.POINTER(s.tarn_batch), c.c_bool, c.c_uint64, _E)),
    "tarn_images_open": (_STATUS, (c.POINTER(_P), c.c_char_p, _E)),
    "tarn_images_free": (None, (_P,)),
    "tarn_images_count": (_S, (_P,)),
    "tarn_images_size": (s.tarn_image_size, (_P,)),
    "tarn_images_at": (_P, (_P, _S)),
    "tarn_text_read": (_STATUS, (c.POINTER(_P), c.POINTER(_S), c.c_char_p, _E)),
    "tarn_text_free": (None, (_P,)),
    "tarn_audio_open": (_STATUS, (c.POINTER(_P), c.c_char_p, c.c_int, _S, _E)),
    "tarn_audio_close": (None, (_P,)),
    "tarn_audio_rate": (_S, (_P,)),
    "tarn_audio_read": (_STATUS, (_P, _P, c.POINTER(_S), _S, _E)),
    "tarn_features_count": (_S, (_S, _S)),
    "tarn_features": (_STATUS, (_P, _P, _S, _S, _E)),
    "tarn_engine_create": (_STATUS, (c.POINTER(_P), _P, c.POINTER(s.tarn_engine_desc), _E)),
    "tarn_engine_free": (_STATUS, (_P, _E)),
    "tarn_engine_method": (c.c_char_p, (_P,)),
    "tarn_engine_step": (_STATUS, (_P, _P, _P, _P, _S, _E)),
    "tarn_engine_prefill": (_STATUS, (_P, _P, _P, _P, _S, _E)),
    "tarn_engine_draw": (_STATUS, (_P, _P, _P, _P, _S, _E)),
    "tarn_stream_size": (_S, (_P,)),
    "tarn_stream_sampling": (_STATUS, (_P, c.POINTER(s.tarn_sampling), _E)),
    "tarn_stream_position": (c.c_uint64, (_P,)),
    "tarn_stream_next": (c.c_int32, (_P,)),
    "tarn_streams_save": (_STATUS, (_P, _P, _S, c.c_char_p, _E)),
    "tarn_streams_load": (_STATUS, (_P, _P, _S, c.c_char_p, _E)),
    "tarn_streams_pack": (_STATUS, (_P, _P, c.POINTER(_S), _P, _S, _E)),
    "tarn_streams_unpack": (_STATUS, (_P, _P, _S, _P, _S, _E)),
}


# ---- Finding it -----------------------------------------------------------------


def _places() -> List[str]:
    """TARN_LIBRARY if it is set; otherwise the library in the wheel; otherwise the system's."""
    named = os.environ.get("TARN_LIBRARY")
    if named:
        return [named]
    name = f"libtarn.{_SERIES}.dylib" if sys.platform == "darwin" else f"libtarn.so.{_SERIES}"
    inside = Path(__file__).with_name(name)
    return [str(inside)] if inside.exists() else [name]


def _declare(library: c.CDLL) -> None:
    for name, (result, arguments) in _functions.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = list(arguments)


def _load() -> c.CDLL:
    [place] = _places()
    try:
        library = c.CDLL(place)
        library.tarn_version.restype = c.c_char_p
        version = library.tarn_version().decode()
        if not version.startswith(_SERIES + "."):
            raise ImportError(f"{place}: is tarn {version}; this package needs {_SERIES}")
        _declare(library)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{place}: {error}; cannot load the shared library of tarn {_SERIES}: install it, or "
            "set TARN_LIBRARY to its path") from error
    return library


lib = _load()
version: str = lib.tarn_version().decode()


_spare = threading.local()  # an error of each thread, while no call has it


def call(name: str, *arguments: Any) -> None:
    """Calls a function that returns a status, and raises its error."""
    error = _spare.__dict__.pop("error", None) or s.tarn_error()
    status = getattr(lib, name)(*arguments, error)
    _spare.error = error
    if status != 0:
        raise error_of(status, error.text.decode("utf-8", "replace"))


# ---- Arguments ------------------------------------------------------------------


def text(name: str, value: Optional[str]) -> Optional[bytes]:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is {type(value).__name__}; it must be str or None")
    if "\0" in value:
        raise InvalidArgument(f"{name} must not contain a NUL character")
    return value.encode("utf-8", "replace")


def path_bytes(path: PathLike) -> bytes:
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise InvalidArgument(f"path is {type(path).__name__}; it must be str or a path") from None
    if b"\0" in encoded:
        raise InvalidArgument("path must not contain a NUL character")
    return encoded


def count(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """A whole number in a range; ctypes would silently wrap others."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(
            f"{name} is {type(value).__name__}; it must be a whole number") from None
    if not least <= number <= most:
        raise InvalidArgument(f"{name} is {number}; it must be from {least} to {most}")
    return number


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{name} is {type(value).__name__}; it must be a number") from None


def seed_of(value: Any) -> int:
    return count("seed", value, 0, 2**64 - 1)


def threads_of(value: Any) -> int:
    return count("threads", value, 0, 1024)


# ---- Objects --------------------------------------------------------------------


class Handle:
    """A pointer of the library, freed once it is closed and no longer in use."""

    def __init__(self, what: str, pointer: int, free: Callable[[int], Any],
                 holds: Optional["Handle"] = None) -> None:
        self.what = what
        self._pointer = pointer
        self._free = free
        self._holds = holds  # kept in use as long as this exists
        self._users = 0
        self._closed = False
        self._training = False
        self.trainers = 0  # of a model: users that may be there while it is trained
        self._lock = threading.RLock()  # a destructor may run at any allocation
        if holds is not None:
            try:
                holds.acquire()
            except BaseException:
                self._closed, self._pointer = True, 0
                free(pointer)
                raise

    @property
    def closed(self) -> bool:
        return self._closed or (self._holds is not None and self._holds.closed)

    def acquire(self) -> int:
        with self._lock:
            if self.closed:
                raise ClosedError(f"{self.what} is closed")
            if self._training:
                raise BusyError(f"{self.what} is being trained by another thread")
            self._users += 1
            return self._pointer

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            self._end()

    def use(self) -> "Handle":
        """`with handle.use() as pointer:`"""
        return self

    def __enter__(self) -> int:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """To change what it points to: nobody else uses it meanwhile."""
        with self._lock:
            if self._users > self.trainers or self._training:
                raise BusyError(f"{self.what} is in use; close its states, which have copies of "
                                "its weights, before training it")
            self._training = True
        try:
            yield
        finally:
            self._training = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        if self._closed and self._users == 0 and self._pointer:
            pointer, self._pointer = self._pointer, 0
            self._free(pointer)
            if self._holds is not None:
                self._holds.release()

    def __del__(self) -> None:
        if getattr(self, "_lock", None) is not None:
            self.close()


class Alone:
    """A lock that raises instead of waiting: two threads on one state are a mistake."""

    def __init__(self, lock: threading.Lock, what: str = "state") -> None:
        self._lock = lock
        self._what = what

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise BusyError(f"{self._what} is in use by another thread; use one {self._what} per "
                            "thread")

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


def create(name: str, *arguments: Any) -> int:
    """Calls a function that creates an object, and returns its pointer."""
    pointer = c.c_void_p()
    call(name, c.byref(pointer), *arguments)
    assert pointer.value
    return pointer.value


def table(name: str) -> Dict[str, str]:
    """The names of a table, with descriptions."""
    rows: Dict[str, str] = {}
    row = getattr(lib, name)(0)
    while row:
        rows[row.contents.name.decode()] = (row.contents.help or b"").decode()
        row = getattr(lib, name)(len(rows))
    return rows
