# SPDX-License-Identifier: MIT
"""Readers of the library: images, text, audio, speech features, and the batches of tasks, as NumPy
arrays."""
from __future__ import annotations

import ctypes as c
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._arrays import Floats, floats, plain
from ._errors import InvalidArgument, OutOfMemory
from ._library import Alone, Handle, PathLike, call, count, create, lib, path_bytes, threads_of
from ._model import Model
from ._recipe import Recipe, settings_dict
from ._train import Skipped, skipped_of

__all__ = ["Batches", "audio", "batches", "features", "images", "text"]

Bytes = npt.NDArray[np.uint8]

FEATURES = 40  # TARN_FEATURES


def _copied(pointer: Optional[int], kind: Any, shape: Tuple[int, ...]) -> Any:
    """A copy of memory of the library; NULL: None."""
    if not pointer:
        return None
    if 0 in shape:
        return np.empty(shape, kind)
    values = c.cast(c.c_void_p(pointer), c.POINTER(np.ctypeslib.as_ctypes_type(kind)))
    return np.array(np.ctypeslib.as_array(values, shape), kind)


# ---- Files -------------------------------------------------------------------------


def images(path: PathLike) -> Bytes:
    """Images as bytes (count, height, width, channels): IDX, also .gz, CIFAR-10 records, PNG files,
    or a folder of these. Of a folder with MNIST or CIFAR-10: the test images; for the training
    images give their file."""
    handle = Handle("images", create("tarn_images_open", path_bytes(path)), lib.tarn_images_free)
    with handle.use() as pointer:
        size, number = lib.tarn_images_size(pointer), lib.tarn_images_count(pointer)
        shape = (number, size.height, size.width, size.channels)
        try:
            found = np.empty(shape, np.uint8)
        except MemoryError:
            raise OutOfMemory(f"not enough memory for images of shape {shape}") from None
        for i in range(number):
            c.memmove(found[i].ctypes.data, lib.tarn_images_at(pointer, i), found[i].size)
    handle.close()
    return found


def text(path: PathLike) -> Bytes:
    """The bytes of a file, or of the text files in a folder as task "text" joins them."""
    data, size = c.c_void_p(), c.c_size_t()
    call("tarn_text_read", c.byref(data), c.byref(size), path_bytes(path))
    try:
        found: Bytes = _copied(data.value, np.uint8, (size.value,))
        return found
    finally:
        lib.tarn_text_free(data)


_PIECE = 1 << 20  # samples


def audio(path: PathLike) -> Tuple[Floats, int]:
    """Samples between -1 and 1, mixed down to one channel, and their rate: WAV, FLAC or NIST
    SPHERE."""
    opened = create("tarn_audio_open", path_bytes(path), -1, 0)
    handle = Handle("audio", opened, lib.tarn_audio_close)
    pieces, number = [], c.c_size_t(1)
    with handle.use() as pointer:
        rate = int(lib.tarn_audio_rate(pointer))
        while number.value > 0:
            piece = np.empty(_PIECE, np.float32)
            call("tarn_audio_read", pointer, piece.ctypes.data, c.byref(number), _PIECE)
            pieces.append(piece[:number.value].copy())
    handle.close()
    return np.concatenate(pieces), rate


def features(samples: Any, rate: int) -> Floats:
    """Log-mel features (frames, 40) of samples, one frame every 10 ms, before normalisation: what
    models of task "speech" hear."""
    given = plain(floats("samples", samples, "N"), np.float32)
    hertz = count("rate", rate, 1)
    frames = np.empty((lib.tarn_features_count(given.size, hertz), FEATURES), np.float32)
    call("tarn_features", frames.ctypes.data, given.ctypes.data, given.size, hertz)
    return frames


# ---- Batches of tasks ---------------------------------------------------------------


class Batches:
    """The data of a task as the batches of train(). Created by batches().

    A batch is a dict of arrays, which Trainer.step() takes: inputs, targets and weights (B, N) of
    symbols; or of speech frames (B, T, 40), lengths (B), counts (B), weights (B), and targets, all
    one after the other."""

    def __init__(self, pointer: int, settings: s.tarn_settings, kept: Any) -> None:
        self._handle = Handle("batches", pointer, lib.tarn_batches_free)
        self._kept = kept  # callbacks
        self._lock = threading.Lock()
        self.settings: Dict[str, Any] = settings_dict(settings)  #: completed from the data

    def close(self) -> None:
        self._handle.close()

    @property
    def task(self) -> str:
        """The task with its options, completed from the data, for Config.of_task()."""
        return str(self.settings["task"])

    @property
    def length(self) -> int:
        """The longest sequence, N."""
        return int(self.settings["length"])

    def count(self, validation: bool = False) -> Optional[int]:
        """Number of batches in an epoch of training, or in a validation; None: there is no end."""
        with self._handle.use() as pointer:
            return int(lib.tarn_batches_count(pointer, validation)) or None

    def batch(self, index: int, validation: bool = False) -> Dict[str, Any]:
        """Batch `index`, a function of settings and index alone."""
        raw = s.tarn_batch()
        with Alone(self._lock, "batches"), self._handle.use() as pointer:
            call("tarn_batches_fill", pointer, c.byref(raw), validation,
                 count("index", index, 0, 2**64 - 1))
            return self._arrays(raw)

    __getitem__ = batch

    def _arrays(self, raw: s.tarn_batch) -> Dict[str, Any]:
        B, N = self.settings["batch"], self.settings["length"]
        if not raw.frames:
            found = {"inputs": _copied(raw.inputs, np.int32, (B, N)),
                     "targets": _copied(raw.targets, np.int32, (B, N)),
                     "weights": _copied(raw.weights, np.float32, (B, N))}
            if self.settings["carry"]:
                found["position"] = raw.position
            return found
        counts = _copied(raw.counts, np.uintp, (B,))
        return {"frames": _copied(raw.frames, np.float32, (B, raw.length, FEATURES)),
                "lengths": _copied(raw.lengths, np.uintp, (B,)), "counts": counts,
                "targets": _copied(raw.targets, np.int32, (int(counts.sum()),)),
                "weights": _copied(raw.weights, np.float32, (B,))}

    def training(self, start: int = 0) -> Iterator[Dict[str, Any]]:
        """The batches of training from number `start` on, without an end."""
        index = count("start", start)
        while True:
            yield self.batch(index)
            index += 1

    def validation(self) -> Iterator[Dict[str, Any]]:
        """The batches of a validation."""
        number = self.count(validation=True)
        if number is None:
            raise InvalidArgument(f"task '{self.task}' generates endless data; use batch(index, "
                                  "validation=True)")
        for index in range(number):
            yield self.batch(index, validation=True)


def batches(task: str, data: Optional[PathLike] = None, *, model: Optional[Model] = None,
            stack: int = 1, threads: int = 0,
            on_skipped: Optional[Callable[[Skipped], Any]] = None, **settings: Any) -> Batches:
    """The data of a task: settings as for train(), such as batch, length, validation and seed.
    model: read only the validation data, in the form that this model was trained on."""
    recipe = Recipe()
    recipe.start(task, None)
    recipe.set_data(data)
    for name, value in settings.items():
        recipe._set(name, value)
    errors: List[BaseException] = []

    def tell(_: Any, raw: Any) -> None:
        try:
            if on_skipped is not None and not errors:
                on_skipped(skipped_of(raw.contents))
        except BaseException as error:
            errors.append(error)

    desc = s.tarn_batches_desc(stack=count("stack", stack, 1), threads=threads_of(threads),
                               skipped=s.on_skipped(tell))

    def opened() -> Batches:
        pointer = create("tarn_batches_open", c.byref(recipe.settings), c.byref(desc))
        return Batches(pointer, recipe.settings, desc)

    if model is None:
        found = opened()
    else:
        with model._handle.use() as desc.model:
            found = opened()
    if errors:
        raise errors[0]
    return found
