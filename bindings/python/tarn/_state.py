# SPDX-License-Identifier: MIT
"""A model as a recurrent network: streams, steps, prompts, sampling."""
from __future__ import annotations

import ctypes as c
import operator
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import _structs as s
from ._arrays import Floats, Symbols, chosen_rows, symbols_of
from ._errors import InvalidArgument, OutOfMemory
from ._library import (Alone, Handle, PathLike, call, count, create, lib, number, path_bytes,
                       seed_of, text, threads_of)

if TYPE_CHECKING:
    from ._model import Model

Prompt = Union[None, str, bytes, Sequence[int], Symbols, Any]

_NEWLINE = 10


class Engine:
    """The packed weights of a model, which a state and its copies share: one works at a time."""

    def __init__(self, owner: "Model", model: Handle, batch: int, longest: int,
                 method: Optional[str], precision: Optional[str], threads: int) -> None:
        desc = s.tarn_engine_desc(
            longest=count("longest", longest), capacity=batch, method=text("method", method),
            precision=text("precision", precision), host=s.tarn_host(threads_of(threads)))
        self.owner, self.model, self.outputs = owner, model, owner.outputs
        self.task, self.symbols = owner.config.task, owner.config.symbols
        self.arguments = dict(longest=longest, method=method, precision=precision,
                              threads=threads)
        with model.use() as pointer:
            self.pointer: int = create("tarn_engine_create", pointer, c.byref(desc))
            self.handle = Handle("state", self.pointer, self._free, model)
        self.size: int = lib.tarn_stream_size(self.pointer)
        self.method: str = lib.tarn_engine_method(self.pointer).decode()
        self.lock = threading.Lock()  # of calls
        self._counting = threading.RLock()  # a destructor may run at any allocation
        self._states = 0

    def streams(self, batch: int) -> Any:
        """Memory of streams at their start, (batch, bytes of one)."""
        try:
            return np.zeros((batch, self.size), np.uint8)
        except (MemoryError, ValueError):
            raise OutOfMemory(f"not enough memory for {batch} streams of {self.size} bytes"
                              ) from None

    @staticmethod
    def _free(pointer: int) -> None:
        lib.tarn_engine_free(pointer, None)

    def join(self) -> Handle:
        """A state's handle; the engine is freed after the last."""
        with self._counting:
            self._states += 1
        return Handle("state", self.pointer, self._leave, self.handle)

    def _leave(self, pointer: int) -> None:
        with self._counting:
            self._states -= 1
            last = self._states == 0
        if last:
            self.handle.close()


class State:
    """The state of `batch` streams that advance together, created by Model.state().

    One thread at a time: a second one gets a BusyError. A state is closed with its model."""

    def __init__(self, engine: Engine, memory: Any) -> None:
        self._engine = engine
        self._memory = memory  # (B, bytes of a stream)
        self._streams = (memory.ctypes.data
                         + memory.strides[0] * np.arange(len(memory), dtype=np.uintp))
        self._sampling: Optional[object] = None  # whose settings the streams have
        self._lock = threading.Lock()
        self._handle = engine.join()

    # ---- Closing ----

    def close(self) -> None:
        self._handle.close()

    def __enter__(self) -> "State":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.closed:
            return "<tarn.State, closed>"
        return (f"<tarn.State {self.method}, batch {self.batch}, position {self.position}, "
                f"{self.nbytes} bytes>")

    # ---- Information ----

    @property
    def batch(self) -> int:
        return len(self._memory)

    @property
    def method(self) -> str:
        return self._engine.method

    @property
    def positions(self) -> Any:
        """Number of symbols fed to each stream so far, (B)."""
        return np.array([lib.tarn_stream_position(stream) for stream in self._streams.tolist()])

    @property
    def position(self) -> int:
        """Number of symbols fed so far, to the longest stream."""
        return int(self.positions.max())

    @property
    def nbytes(self) -> int:
        return int(self._memory.size)

    # ---- Forks ----

    def copy(self) -> "State":
        """A state that continues from here on its own, with the same weights in memory."""
        return self.take(range(self.batch))

    def take(self, streams: Sequence[int]) -> "State":
        """A copy of some streams, in any order and any number of times."""
        with Alone(self._lock), self._handle.use():
            try:
                memory = self._memory[np.array([operator.index(i) for i in streams], np.intp)]
            except (IndexError, OverflowError, TypeError) as error:
                raise InvalidArgument(f"streams: {error}") from None
            if len(memory) == 0:
                raise InvalidArgument("streams must have at least one index")
            return State(self._engine, memory)

    fork = copy

    def __len__(self) -> int:
        return self.batch

    def __getitem__(self, streams: Any) -> "State":
        """A copy of some streams: state[2], state[1:], state[[0, 0, 3]], state[mask]."""
        chosen = chosen_rows("streams", self.batch, streams)
        if chosen.size == 0:
            raise IndexError("streams: at least one must be selected")
        return self.take(chosen.tolist())

    def __copy__(self) -> "State":
        return self.copy()

    def __deepcopy__(self, _: Any) -> "State":
        """The weights are shared: only training changes them, and it needs all states closed."""
        return self.copy()

    def __reduce__(self) -> Tuple[Any, ...]:
        """For pickle: the model, once for all its states, and the streams."""
        return _restored, (self._engine.owner, self.batch, self._engine.arguments,
                           self.to_bytes())

    def join(self, other: "State") -> "State":
        """A copy of the streams of both, which may be at different positions. `other` must be a
        copy of this state, or of one that this is a copy of."""
        if not isinstance(other, State) or other._engine is not self._engine:
            raise InvalidArgument("other must be a state that copy(), take() or join() made of "
                                  "this one")
        if other is self:
            return self.take(2 * list(range(self.batch)))
        with Alone(self._lock), Alone(other._lock), self._handle.use(), other._handle.use():
            return State(self._engine, np.concatenate([self._memory, other._memory]))

    # ---- Use ----

    def step(self, symbols: Any) -> Floats:
        """Feeds the next symbol of every stream, (B), and returns the outputs (B, O)."""
        given = symbols_of("symbols", symbols, "B")
        with Alone(self._lock), self._handle.use() as engine:
            return self._feed(engine, given.reshape(-1, 1))

    def prefill(self, symbols: Any) -> Floats:
        """Feeds n symbols of every stream, (B, n), faster than n steps; returns the outputs
        (B, O) of the last position."""
        given = symbols_of("symbols", symbols, "BN")
        with Alone(self._lock), self._handle.use() as engine:
            return self._feed(engine, given)

    def _feed(self, engine: int, symbols: Optional[Symbols]) -> Floats:
        """symbols None: those drawn last."""
        outputs = np.empty((self.batch, self._engine.outputs), np.float32)
        if symbols is not None and symbols.shape[0] != self.batch:
            raise InvalidArgument(f"symbols: are of {symbols.shape[0]} streams; this state has "
                                  f"{self.batch}")
        with self._engine.lock:
            if symbols is None or symbols.shape[1] == 1:
                call("tarn_engine_step", engine, self._streams.ctypes.data, outputs.ctypes.data,
                     None if symbols is None else symbols.ctypes.data, self.batch)
            else:
                self._prefill(engine, symbols, outputs)
        return outputs

    def _prefill(self, engine: int, symbols: Symbols, outputs: Floats) -> None:
        """All or nothing; streams that are equal are fed once."""
        before = self._memory.copy()
        try:
            for b, stream in enumerate(self._streams.tolist()):
                if (b > 0 and np.array_equal(symbols[b], symbols[b - 1])
                        and np.array_equal(before[b], before[b - 1])):
                    self._memory[b], outputs[b] = self._memory[b - 1], outputs[b - 1]
                else:
                    call("tarn_engine_prefill", engine, stream, outputs[b].ctypes.data,
                         symbols[b].ctypes.data, symbols.shape[1])
        except BaseException:
            self._memory[:] = before
            raise

    def reset(self) -> None:
        """Resets to the initial state, (16), (17)."""
        with Alone(self._lock), self._handle.use():
            self._memory[:] = 0
            self._sampling = None

    def generate(self, prompt: Prompt = None, n: int = 256, **sampling: Any) -> Symbols:
        """Generates n symbols per stream, (B, n); arguments as for stream()."""
        n = count("n", n, 1)
        drawn = np.empty((self.batch, n), np.int32)
        for i, symbols in enumerate(self.stream(prompt, n, **sampling)):
            drawn[:, i] = symbols
        return drawn

    def stream(self, prompt: Prompt = None, n: Optional[int] = None, *,
               temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
               greedy: bool = False, seed: int = 1) -> Iterator[Symbols]:
        """Feeds the prompt, then yields symbols (B) as they are sampled, n times or forever.

        prompt: symbols (B, P), or symbols (P), bytes or text for all streams. None continues
        after the symbols sampled last; at the start, after a newline for models of text and
        after symbol 0 for others. The symbols depend only on seed, stream and position, so two
        calls give the same symbols as one long one."""
        left = None if n is None else count("n", n)
        heat = number("temperature", temperature)
        sampling = s.tarn_sampling(
            temperature=heat, top_k=count("top_k", top_k), top_p=number("top_p", top_p),
            greedy=bool(greedy) or heat == 0, seed=seed_of(seed))
        with self._engine.model.use():
            room = np.zeros(self._engine.size, np.uint8)  # refused before anything is fed
            call("tarn_stream_sampling", room.ctypes.data, c.byref(sampling))
        return self._draw(sampling, self._prompt(prompt), left)

    def _draw(self, sampling: s.tarn_sampling, fed: Optional[Symbols],
              left: Optional[int]) -> Iterator[Symbols]:
        while left is None or left > 0:
            with Alone(self._lock), self._handle.use() as engine:
                outputs = self._feed(engine, fed)
                self._set(sampling)
                symbols = np.empty(self.batch, np.int32)
                with self._engine.lock:
                    call("tarn_engine_draw", engine, self._streams.ctypes.data,
                         symbols.ctypes.data, outputs.ctypes.data, self.batch)
            fed = symbols.reshape(-1, 1).copy()
            yield symbols
            left = None if left is None else left - 1

    def _set(self, sampling: s.tarn_sampling) -> None:
        """Streams sample in this way from now on, each with random numbers of its own."""
        if self._sampling is sampling:
            return
        for b, stream in enumerate(self._streams.tolist()):
            sampling.number = b
            call("tarn_stream_sampling", stream, c.byref(sampling))
        self._sampling = sampling

    def _prompt(self, prompt: Prompt) -> Optional[Symbols]:
        """Symbols (B, P); None: those drawn last."""
        if prompt is None and all(lib.tarn_stream_next(stream) >= 0
                                  for stream in self._streams.tolist()):
            return None
        if prompt is None:
            prompt = [_NEWLINE if self._engine.task == "text" else 0]
        elif isinstance(prompt, (str, bytes)):
            if self._engine.symbols < 256:
                raise InvalidArgument(f"prompt is text, but the {self._engine.symbols} symbols of "
                                      "this model are not bytes; give a list of numbers")
            prompt = np.frombuffer(prompt.encode() if isinstance(prompt, str) else prompt,
                                   np.uint8)
        symbols = np.asarray(prompt)
        if symbols.ndim == 1:
            symbols = np.broadcast_to(symbols, (self.batch, symbols.size))
        fed = symbols_of("prompt", symbols, "BP")
        if fed.shape[1] == 0:
            raise InvalidArgument("prompt is empty; it must have at least one symbol, or be None")
        return fed

    # ---- Snapshots ----

    def to_bytes(self) -> bytes:
        """A snapshot of the state, from which it can continue; the contents of a save() file."""
        with Alone(self._lock), self._handle.use() as engine:
            size, streams = c.c_size_t(), self._streams.ctypes.data
            call("tarn_streams_pack", engine, None, c.byref(size), streams, self.batch)
            packed = np.empty(size.value, np.uint8)
            call("tarn_streams_pack", engine, packed.ctypes.data, c.byref(size), streams,
                 self.batch)
            return packed[:size.value].tobytes()

    def load_bytes(self, data: bytes) -> None:
        """Restores a snapshot of to_bytes() from a state of the same model, method and batch. On
        an error the state is unchanged."""
        packed = np.frombuffer(data, np.uint8)
        with Alone(self._lock), self._handle.use() as engine:
            call("tarn_streams_unpack", engine, self._streams.ctypes.data, self.batch,
                 packed.ctypes.data, packed.size)
            self._sampling = None

    def save(self, path: PathLike) -> None:
        """Saves a snapshot to a file, which `tarn generate --load-state` can read too."""
        with Alone(self._lock), self._handle.use() as engine:
            call("tarn_streams_save", engine, self._streams.ctypes.data, self.batch,
                 path_bytes(path))

    def load(self, path: PathLike) -> None:
        """Restores a snapshot from a file. On an error the state is unchanged."""
        with Alone(self._lock), self._handle.use() as engine:
            call("tarn_streams_load", engine, self._streams.ctypes.data, self.batch,
                 path_bytes(path))
            self._sampling = None


def _restored(model: "Model", batch: int, arguments: Dict[str, Any], data: bytes) -> State:
    state = model.state(batch, **arguments)
    state.load_bytes(data)
    return state
