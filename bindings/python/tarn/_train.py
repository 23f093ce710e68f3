# SPDX-License-Identifier: MIT
"""Complete training runs, as `tarn train` does them, and `tarn eval`."""
from __future__ import annotations

import ctypes as c
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Union

from . import _structs as s
from ._comm import communicator, is_first, pointer_of, threads_for
from ._errors import InvalidArgument, UnknownName
from ._library import PathLike, call, count, lib, number, path_bytes, text, threads_of
from ._model import Model
from ._recipe import Recipe, settings_dict

# ---- What a run reports ------------------------------------------------------------


class Report(NamedTuple):
    """Result of one update: tarn_report of tarn/train.h."""

    update: int  #: its number, counted from 1
    loss: float  #: mean before the update, in nats
    accuracy: float  #: NaN for heads that do not compute it
    lr: float  #: learning rate
    norm: float  #: of all gradients together, before clipping
    skipped: bool  #: a number was not finite and the update was skipped
    tokens: int  #: symbols or frames read, without padding


class Validation(NamedTuple):
    """Result of a validation: tarn_validation of tarn/train.h."""

    update: int  #: updates done
    loss: float  #: mean, in nats
    name: str  #: of the task's metric
    metric: float
    positions: float  #: total weight of the positions, or of the sequences
    sums: Dict[str, float]  #: from which all of the above is computed


class Skipped(NamedTuple):
    """Data that was skipped, and why."""

    file: str
    line: int  #: 0: the whole file
    reason: str


def report_of(raw: s.tarn_report) -> Report:
    return Report(*(getattr(raw, name) for name in Report._fields))


def validation_of(raw: s.tarn_validation) -> Validation:
    return Validation(raw.update, raw.loss, (raw.name or b"").decode(), raw.metric,
                      raw.positions, s.values_of(raw.sums))


def skipped_of(raw: s.tarn_skipped) -> Skipped:
    return Skipped(os.fsdecode(raw.file or b""), raw.line,
                   (raw.reason or b"").decode("utf-8", "replace"))


@dataclass(frozen=True)
class Training:
    """A run of train() that has ended."""

    folder: str
    updates: int  #: done, those before resuming included
    stopped: bool  #: before all updates were done
    settings: Dict[str, Any]  #: completed from the data
    report: Optional[Report]  #: of the last update; None: there was none to do
    validation: Optional[Validation]  #: the last

    def model(self, best: bool = False) -> Model:
        """The model of the run; best: that of the best validation."""
        return Model.load(self.folder, best=best)


# ---- Progress ----------------------------------------------------------------------

Progress = Union[None, bool, Callable[[str], Any]]


class _Teller:
    """Lines of progress: to a caller's function, or to standard error, where a terminal shows the
    current update in one line that is written over."""

    def __init__(self, progress: Progress) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise InvalidArgument(f"progress is {type(progress).__name__}; it must be True, False "
                                  "or a function that takes a line of text")
        self._function = progress if callable(progress) else None
        self.active = bool(progress)
        self._terminal = self._function is None and sys.stderr.isatty()
        self._shown = 0.0
        self._width = 0

    def line(self, line: str) -> None:
        if self._function is not None:
            self._function(line)
        elif self.active:
            print(f"{line:<{self._width}}", file=sys.stderr, flush=True)
            self._width = 0

    def now(self, line: str) -> None:
        """Ten times a second at a terminal, every ten seconds elsewhere."""
        pause = 0.1 if self._terminal else 10.0
        if not self.active or time.monotonic() < self._shown + pause:
            return
        self._shown = time.monotonic()
        if self._terminal:
            print(f"{line:<{self._width}}", end="\r", file=sys.stderr, flush=True)
            self._width = len(line)
        else:
            self.line(line)


# ---- A run -------------------------------------------------------------------------


class _Listener:
    """The callbacks of a run. An exception of a caller's function stops the run, which saves, and
    is raised after that."""

    def __init__(self, teller: _Teller, on_update: Optional[Callable[[Report], Any]],
                 on_validation: Optional[Callable[[Validation], Any]],
                 on_skipped: Optional[Callable[[Skipped], Any]], seconds: float) -> None:
        for name, function in (("on_update", on_update), ("on_validation", on_validation),
                               ("on_skipped", on_skipped)):
            if function is not None and not callable(function):
                raise InvalidArgument(f"{name} is {type(function).__name__}; it must be a function "
                                      "or None")
        self.error: Optional[BaseException] = None
        self.interrupted = False
        self.settings: Dict[str, Any] = {}
        self.updates = 0
        self.report: Optional[Report] = None
        self.validation: Optional[Validation] = None
        self._teller = teller
        self._on_update, self._on_validation = on_update, on_validation
        self._on_skipped = on_skipped
        self._end = time.monotonic() + seconds if seconds > 0 else float("inf")
        self._asked = False  # to stop, by a function that returned False

    def events(self) -> s.tarn_events:
        return s.tarn_events(
            skipped=s.on_skipped(lambda _, raw: self._guard(self._skipped, raw)),
            started=s.on_started(lambda _, raw, done, __: self._guard(self._start, raw, done)),
            update=s.on_update(lambda _, raw: self._guard(self._update, raw)),
            scored=s.on_scored(lambda _, done, all_: self._guard(self._score, done, all_)),
            validation=s.on_validation(lambda _, raw: self._guard(self._validate, raw)),
            planned=s.on_planned(lambda _, raw: self._guard(self._plan, raw)),
            stop=s.must_stop(lambda _: self._stops()))

    def _guard(self, function: Callable[..., None], *arguments: Any) -> None:
        """ctypes would print an exception and go on."""
        try:
            if self.error is None:
                function(*arguments)
        except BaseException as error:
            self.error = error

    def _call(self, function: Optional[Callable[[Any], Any]], value: Any) -> None:
        if function is not None and function(value) is False:
            self._asked = True

    def _stops(self) -> bool:
        return (self.error is not None or self.interrupted or self._asked
                or time.monotonic() >= self._end)

    def _skipped(self, raw: Any) -> None:
        skipped = skipped_of(raw.contents)
        self._teller.line(f"skipped: {skipped.file}: {skipped.reason}")
        if self._on_skipped is not None:
            self._on_skipped(skipped)

    def _start(self, raw: Any, done: int) -> None:
        self.settings = settings_dict(raw.contents)
        self.updates = done
        self._teller.line("{task}: batch size {batch}, sequence length {length}, optimizer "
                          "{optimizer}, learning rate {lr:g}".format(**self.settings))

    def _plan(self, raw: Any) -> None:
        self.settings["steps"] = raw.contents.steps

    def _update(self, raw: Any) -> None:
        report = self.report = report_of(raw.contents)
        self.updates = report.update
        self._teller.now(f"update {report.update}/{self.settings['steps']}, "
                         f"loss {report.loss:.4f}")
        self._call(self._on_update, report)

    def _score(self, done: int, batches: int) -> None:
        self._teller.now(f"validation: batch {done}/{batches}")

    def _validate(self, raw: Any) -> None:
        now = self.validation = validation_of(raw.contents)
        self._teller.line(f"validation after update {now.update}: loss {now.loss:.4f}, "
                          f"{now.name} {now.metric:.4f}")
        self._call(self._on_validation, now)


@contextmanager
def _ctrl_c(listener: _Listener) -> Iterator[None]:
    """Ctrl-C ends the run after the current update. What its handler raises is kept for the
    listener: raised at the entry of a callback, ctypes would print it and go on."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def heard(number: int, frame: Optional[FrameType]) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            listener.interrupted = True
        except BaseException as error:
            listener.error = listener.error or error

    signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _amount(name: str, value: Any) -> float:
    amount = number(name, value)
    if not 0 <= amount < float("inf"):
        raise InvalidArgument(f"{name} is {amount:g}; it must be a finite number from 0")
    return amount


_VALIDATIONS = 8  # of a run that is fitted to a time, as in the program


def train(task: str, data: Optional[PathLike] = None, out: Optional[PathLike] = None, *,
          preset: Optional[str] = None, start: Optional[PathLike] = None,
          head_width: Optional[int] = None, resume: bool = False, any: bool = False,
          epochs: float = 0.0, minutes: float = 0.0, threads: int = 0,
          progress: Progress = None, on_update: Optional[Callable[[Report], Any]] = None,
          on_validation: Optional[Callable[[Validation], Any]] = None,
          on_skipped: Optional[Callable[[Skipped], Any]] = None, comm: Any = None,
          **options: Any) -> Training:
    """Trains a model and writes checkpoints, the model and a log to the folder `out`, as `tarn
    train TASK` does, with its options, such as attention="linear", layers=4, lr=1e-3, steps=1000.

    on_update and on_validation are called with a Report and a Validation; a function that returns
    False stops the run. progress: True prints lines to standard error, a function gets them.
    Ctrl-C, and an exception of a function, save a checkpoint first and are raised then: resume
    continues from there.

    comm: a communicator of mpi4py, such as MPI.COMM_WORLD, whose processes all make this call and
    train one model. The first of them writes the folder and prints progress; after a RankError
    another one is gone, and comm.Abort() ends the rest."""
    with communicator(comm) as ranks:
        return _train(task, data, out, preset, start, head_width, resume, any, epochs, minutes,
                      threads, progress if is_first(ranks) else None, on_update, on_validation,
                      on_skipped, ranks, options)


def _train(task: str, data: Optional[PathLike], out: Optional[PathLike], preset: Optional[str],
           start: Optional[PathLike], head_width: Optional[int], resume: bool, any: bool,
           epochs: float, minutes: float, threads: int, progress: Progress,
           on_update: Optional[Callable[[Report], Any]],
           on_validation: Optional[Callable[[Validation], Any]],
           on_skipped: Optional[Callable[[Skipped], Any]], ranks: Optional[s.tarn_comm],
           options: Dict[str, Any]) -> Training:
    if out is None:
        raise InvalidArgument("out is None; it must be the path of a folder")
    folder = path_bytes(out)
    if not folder:
        raise InvalidArgument("out is ''; it must be the path of a folder")
    if any and not resume:
        raise InvalidArgument("any needs resume")
    if resume and (preset is not None or start is not None):
        raise InvalidArgument("preset and start cannot be used with resume, which continues the "
                              "model of the folder")
    if start is not None and preset is not None:
        raise InvalidArgument("start and preset cannot be used together")
    passes, limit = _amount("epochs", epochs), _amount("minutes", minutes)
    if "steps" in options and passes > 0:
        raise InvalidArgument("epochs and steps cannot be used together; give one of them")

    recipe, first = Recipe(), None
    if resume:
        recipe.resume(task, folder)
    else:
        recipe.start(task, preset)
    if start is not None:
        first = recipe.start_from(start)
    recipe.set_data(data)
    recipe.override(options, head_width)

    fixed = "steps" in options or passes > 0  # updates: minutes are a limit then
    listener = _Listener(_Teller(progress), on_update, on_validation, on_skipped,
                         60.0 * limit if fixed else 0.0)
    desc = s.tarn_train_desc(
        out=folder, resume=resume, any=any, start=first, epochs=passes,
        host=s.tarn_host(threads_for(ranks, threads_of(threads))), events=listener.events(),
        comm=pointer_of(ranks), minutes=0.0 if fixed else limit, validations=0 if "eval_every" in options else _VALIDATIONS)
    try:
        with _ctrl_c(listener):
            call("tarn_train", c.byref(recipe.config), c.byref(recipe.settings), c.byref(desc))
    finally:
        if listener.error is not None:
            raise listener.error
    steps = listener.settings["steps"]
    if listener.interrupted:
        raise KeyboardInterrupt(f"stopped after update {listener.updates} of {steps} and saved; "
                                "to continue: resume=True")
    return Training(os.fsdecode(folder), listener.updates, listener.updates < steps,
                    listener.settings, listener.report, listener.validation)


# ---- Evaluation --------------------------------------------------------------------


def _settings_of(model: Model, path: Optional[bytes]) -> s.tarn_settings:
    """The settings of a training folder, to repeat its validation; otherwise the task's
    defaults."""
    recipe = Recipe()
    if path is not None and os.path.isdir(path):
        try:
            call("tarn_train_settings", c.byref(recipe.config), c.byref(recipe.settings), path)
            return recipe.settings
        except UnknownName:
            pass  # a folder without checkpoints
    if not model.config.task:
        raise InvalidArgument("model has no task to evaluate")
    call("tarn_settings_start", c.byref(recipe.settings), model.config.task.encode())
    recipe.settings.eval_batches = 0
    return recipe.settings


_EVALUATE = ("validation", "length", "batch", "eval_batches", "seed", "cache", "strict")


def evaluate(model: Union[Model, PathLike], data: Optional[PathLike] = None, *,
             best: bool = False, beam: int = 0, precision: Optional[str] = None,
             threads: int = 0, progress: Progress = None,
             on_skipped: Optional[Callable[[Skipped], Any]] = None, comm: Any = None,
             **settings: Any) -> Validation:
    """Loss and metric of a model on validation data, as `tarn eval` computes them. A training
    folder repeats its validation. settings: validation, length, batch, eval_batches, seed, cache,
    strict. comm: as in train()."""
    path = None if isinstance(model, Model) else path_bytes(model)
    if path is None and best:
        raise InvalidArgument("best requires the path of a training folder")
    loaded = model if isinstance(model, Model) else Model.load(model, best=best)
    recipe = Recipe()
    recipe.settings = _settings_of(loaded, path)
    recipe.set_data(data)
    for name, value in settings.items():
        if name not in _EVALUATE:
            raise InvalidArgument(f"{name}: unknown setting; available: {', '.join(_EVALUATE)}")
        recipe._set(name, value)
    raw = s.tarn_validation()
    with communicator(comm) as ranks, loaded._handle.use() as pointer:
        listener = _Listener(_Teller(progress if is_first(ranks) else None), None, None,
                             on_skipped, 0.0)
        events = listener.events()
        desc = s.tarn_evaluate_desc(
            host=s.tarn_host(threads_for(ranks, threads_of(threads))), beam=count("beam", beam),
            skipped=events.skipped, scored=events.scored, comm=pointer_of(ranks),
            precision=text("precision", precision))
        with _ctrl_c(listener):
            call("tarn_evaluate", c.byref(raw), pointer, c.byref(recipe.settings), c.byref(desc))
    if listener.error is not None:
        raise listener.error
    if listener.interrupted:
        raise KeyboardInterrupt
    return validation_of(raw)
