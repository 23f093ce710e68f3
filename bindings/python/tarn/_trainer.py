# SPDX-License-Identifier: MIT
"""Training step by step, on NumPy arrays."""
from __future__ import annotations

import ctypes as c
import threading
from contextlib import contextmanager
from types import TracebackType
from typing import (Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type,
                    Union)

import numpy as np

from . import _structs as s
from ._arrays import address_of, floats, lengths_of, plain, symbols_of
from ._errors import ClosedError, InvalidArgument
from ._library import (Alone, Handle, PathLike, call, count, create, lib, number, path_bytes,
                       seed_of, text, threads_of)
from ._model import Model
from ._train import Report, report_of

Batch = Union[Mapping[str, Any], Sequence[Any], Any]


class Score(NamedTuple):
    """Means over the positions, or sequences, of the batches that were scored."""

    loss: float  #: in nats
    accuracy: float  #: NaN for heads that do not compute it
    weight: float  #: total weight of the positions, or of the sequences
    sums: Dict[str, float]  #: tarn_score of tarn/train.h


class _Arrays(NamedTuple):
    """A batch as the library takes it, and the arrays that it points to."""

    raw: s.tarn_batch
    kept: Sequence[Any]


def _named(batch: Batch, fields: Sequence[str]) -> Dict[str, Any]:
    """A batch as a dict: inputs and targets of symbols (B, N + 1), a tuple (inputs, targets,
    weights), or a dict as it is, with some of the fields."""
    if isinstance(batch, Mapping):
        unknown = sorted(str(name) for name in set(batch) - set(fields))
        if unknown:
            raise InvalidArgument(f"batch: unknown key '{unknown[0]}'; available for this model: "
                                  f"{', '.join(fields)}")
        return {name: value for name, value in batch.items() if value is not None}
    if isinstance(batch, tuple):
        if not 2 <= len(batch) <= 3:
            raise InvalidArgument(f"batch is a tuple of {len(batch)}; it must be (inputs, targets) "
                                  "or (inputs, targets, weights)")
        return {name: value for name, value in zip(fields, batch) if value is not None}
    whole = symbols_of("batch", batch, "BN")
    if whole.shape[1] < 2:
        raise InvalidArgument(f"batch: has shape {whole.shape}; it must be (B, N + 1), where each "
                              "symbol predicts the next")
    return {"inputs": whole[:, :-1], "targets": whole[:, 1:]}


def _need(given: Mapping[str, Any], name: str) -> Any:
    if name not in given:
        raise InvalidArgument(f"batch: has no '{name}'; this model needs it")
    return given[name]


def _grown(a: Any, shape: Tuple[int, ...]) -> Any:
    """The array in a corner of zeros."""
    if a.shape == shape:
        return a
    out = np.zeros(shape, a.dtype)
    out[tuple(slice(n) for n in a.shape)] = a
    return out


class Trainer:
    """Updates the weights of a model: gradients, optimizer state and activations.

    batch and length are the largest sizes B and N of a batch; 0: those of the first batch. The
    other arguments are the options of `tarn train`. One thread at a time; while an update runs,
    nobody else may use the model, and its states must be closed: they have copies of its weights.
    """

    def __init__(self, model: Model, *, batch: int = 0, length: int = 0,
                 optimizer: Optional[str] = None, schedule: Optional[str] = None,
                 clip: Optional[str] = None, lr: float = 1e-3, steps: int = 0,
                 precision: Optional[str] = None, recompute: bool = False,
                 skip_nonfinite: bool = False, carry: bool = False, seed: int = 1,
                 threads: int = 0) -> None:
        if not isinstance(model, Model):
            raise InvalidArgument(f"model is {type(model).__name__}; it must be a tarn.Model")
        self.model = model
        self._desc = s.tarn_trainer_desc(
            batch=count("batch", batch), length=count("length", length),
            optimizer=text("optimizer", optimizer), schedule=text("schedule", schedule),
            clip=text("clip", clip), lr=number("lr", lr), steps=count("steps", steps),
            precision=text("precision", precision), recompute=recompute,
            varies=model.config.frames > 0, skip_nonfinite=skip_nonfinite, carry=carry,
            seed=seed_of(seed), host=s.tarn_host(threads_of(threads)))
        self._handle: Optional[Handle] = None
        self._lock = threading.Lock()
        self._closed = False
        self._sequences = model.config.head.split(":")[0] == "ctc"
        self._fields = ("frames" if model.config.frames > 0 else "inputs", "targets", "weights",
                        "lengths", *(("counts",) if self._sequences else ()), "position")
        if batch and length:
            self._open()

    # ---- Life ----

    def _open(self) -> Handle:
        if self._closed:
            raise ClosedError("trainer is closed")
        if self._handle is None:
            owner = self.model._handle

            def free(pointer: int) -> None:
                lib.tarn_trainer_free(pointer)
                owner.trainers -= 1

            with owner.use() as model:
                pointer = create("tarn_trainer_create", model, c.byref(self._desc))
                self._handle = Handle("trainer", pointer, free, owner)
                owner.trainers += 1
        return self._handle

    @contextmanager
    def _prepared(self, batches: Sequence[Batch]) -> Iterator[Tuple[int, List[_Arrays]]]:
        """The library's trainer and batches for it. If the first call fails, its batch does not set
        the sizes."""
        before, first = (self._desc.batch, self._desc.length), self._handle is None
        try:
            arrays = [self._arrays(one) for one in batches]
            with self._open().use() as pointer:
                yield pointer, arrays
        except BaseException:
            if first and self._handle is not None:
                self._handle.close()
                self._handle = None
            self._desc.batch, self._desc.length = before
            raise

    def close(self) -> None:
        """Frees its memory; the model stays open. May be called again."""
        self._closed = True
        if self._handle is not None:
            self._handle.close()

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed or self.model.closed:
            return "<tarn.Trainer, closed>"
        return f"<tarn.Trainer, updates {self.updates}>"

    # ---- Batches ----

    def _arrays(self, batch: Batch) -> _Arrays:
        given = _named(batch, self._fields)
        framed = self.model.config.frames > 0
        if framed:
            inputs = plain(floats("frames", _need(given, "frames"), "BTF"), np.float32)
            if inputs.shape[2] != self.model.config.frames:
                raise InvalidArgument(f"frames: have {inputs.shape[2]} floats; the model needs "
                                      f"{self.model.config.frames}")
        else:
            inputs = symbols_of("inputs", _need(given, "inputs"), "BN")
        B, N = self._planned(inputs.shape[0], inputs.shape[1])
        T = inputs.shape[1] if framed else N  # from one sequence to the next
        lengths = lengths_of("lengths", given.get("lengths"), *inputs.shape[:2])
        if lengths is None and inputs.shape[:2] != (B, T):
            lengths = np.full(len(inputs), inputs.shape[1], np.uintp)
        arrays = {
            "frames" if framed else "inputs": _grown(inputs, (B, T, *inputs.shape[2:])),
            "lengths": None if lengths is None else _grown(lengths, (B,)),
            **(self._labels(given, len(inputs), B) if self._sequences
               else self._targets(given, inputs.shape[:2], (B, T), lengths)),
        }
        raw = s.tarn_batch(length=T if framed else 0,
                           position=count("position", given.get("position", 0), 0, 2**64 - 1))
        kept: List[Any] = []
        for name, array in arrays.items():
            contiguous = None if array is None else np.ascontiguousarray(array)
            kept.append(contiguous)
            setattr(raw, name, address_of(contiguous))
        return _Arrays(raw, kept)

    def _planned(self, B: int, N: int) -> Tuple[int, int]:
        """The trainer's sizes; those of the first batch if none were given."""
        desc = self._desc
        if B == 0 or N == 0:
            raise InvalidArgument(f"batch: has {B} sequences of length {N}; it must not be empty")
        desc.batch, desc.length = desc.batch or B, desc.length or N
        if B > desc.batch or N > desc.length:
            raise InvalidArgument(
                f"batch: has {B} sequences of length {N}; this trainer was made for at most "
                f"{desc.batch} of length {desc.length}: give batch= and length= to Trainer()")
        return desc.batch, desc.length

    @staticmethod
    def _targets(given: Mapping[str, Any], shape: Tuple[int, ...], planned: Tuple[int, int],
                 lengths: Any) -> Dict[str, Any]:
        """Targets of positions, of which those past a length do not count."""
        targets = symbols_of("targets", _need(given, "targets"), "BN")
        if targets.shape != shape:
            raise InvalidArgument(f"targets: have shape {targets.shape}; it must be {shape}, as "
                                  "that of the inputs")
        weights = given.get("weights")
        if weights is not None:
            weights = floats("weights", weights, "BN", shape)
        elif lengths is not None:
            weights = (np.arange(shape[1]) < lengths[:, None]).astype(np.float32)
        return {"targets": _grown(targets, planned),
                "weights": None if weights is None else _grown(weights, planned)}

    @staticmethod
    def _labels(given: Mapping[str, Any], batch: int, planned: int) -> Dict[str, Any]:
        """Targets of sequences: a list of them, or all one after the other with counts."""
        targets, counts = _need(given, "targets"), given.get("counts")
        if counts is None:
            rows = [symbols_of("targets", row, "N") for row in targets]
            if len(rows) != batch:
                raise InvalidArgument(f"targets: has {len(rows)} sequences; it must have {batch}, "
                                      "as the frames")
            counts = [len(row) for row in rows]
            targets = np.concatenate(rows) if rows else np.zeros(0, np.int32)
        flat = symbols_of("targets", targets, "N")
        numbers = lengths_of("counts", counts, batch, flat.size)
        assert numbers is not None
        if int(numbers.sum()) != flat.size:
            raise InvalidArgument(f"targets: has {flat.size} symbols; counts add up to "
                                  f"{int(numbers.sum())}")
        weights = given.get("weights")
        if weights is not None:
            weights = floats("weights", weights, "B", (batch,))
        elif batch != planned:
            weights = np.ones(batch, np.float32)
        return {"targets": flat, "counts": _grown(numbers, (planned,)),
                "weights": None if weights is None else _grown(weights, (planned,))}

    # ---- Use ----

    def step(self, batch: Batch, *more: Batch) -> Report:
        """One update on a batch, or on the accumulated gradients of several.

        A batch is an array of symbols (B, N + 1), where each predicts the next; a tuple (inputs,
        targets, weights) of arrays (B, N), weights being optional; or a dict with the fields of
        tarn_batch (tarn/train.h), as tarn.data.batches() has them: inputs or frames, targets,
        weights, lengths, counts, position. Without weights every position up to the lengths
        counts. Smaller batches than the trainer's are padded."""
        report = s.tarn_report()
        with Alone(self._lock, "trainer"), self._prepared((batch, *more)) as (trainer, arrays), \
                self.model._handle.alone():
            raw = (s.tarn_batch * len(arrays))(*(one.raw for one in arrays))
            call("tarn_trainer_update", trainer, c.byref(report), raw, len(arrays))
        return report_of(report)

    def score(self, batch: Batch, *more: Batch) -> Score:
        """Evaluates batches without training."""
        sums = s.tarn_score()
        with Alone(self._lock, "trainer"), self._prepared((batch, *more)) as (trainer, arrays), \
                self.model._handle.use():
            for one in arrays:
                call("tarn_trainer_score", trainer, c.byref(sums), c.byref(one.raw))
        weight = sums.weight or float("nan")
        return Score(sums.loss / weight, sums.correct / weight, sums.weight, s.values_of(sums))

    def observe(self, loss: float) -> None:
        """Reports a validation loss to the schedule; "plateau" needs it."""
        with Alone(self._lock, "trainer"), self._made().use() as pointer:
            lib.tarn_trainer_observe(pointer, number("loss", loss))

    def save(self, path: PathLike) -> None:
        """Saves a checkpoint: weights, optimizer and schedule state, number of updates."""
        with Alone(self._lock, "trainer"), self._made().use() as pointer, \
                self.model._handle.use():
            call("tarn_trainer_save", pointer, path_bytes(path))

    def load(self, path: PathLike) -> None:
        """Loads a checkpoint of a trainer with the same model configuration and optimizer."""
        with Alone(self._lock, "trainer"), self._made().use() as pointer, \
                self.model._handle.alone():
            call("tarn_trainer_load", pointer, path_bytes(path))

    def _made(self) -> Handle:
        if not self._desc.batch or not self._desc.length:
            raise InvalidArgument("the sizes of this trainer are not known before its first batch; "
                                  "give batch= and length= to Trainer()")
        return self._open()

    # ---- Information ----

    @property
    def updates(self) -> int:
        """Number of updates done."""
        if self._handle is None and not self._closed:
            return 0
        with self._open().use() as pointer:
            return int(lib.tarn_trainer_updates(pointer))

    @property
    def nbytes(self) -> int:
        """Memory of the trainer, without the model."""
        with self._made().use() as pointer:
            return int(lib.tarn_trainer_bytes(pointer))
