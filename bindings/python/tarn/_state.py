# SPDX-License-Identifier: MIT
"""A model as a recurrent network: states, steps, prompts, sampling."""
from __future__ import annotations

import ctypes as c
import threading
from types import TracebackType
from typing import Any, Iterator, Optional, Sequence, Type, Union

import numpy as np

from . import _structs as s
from ._arrays import Floats, Symbols, symbols_of
from ._errors import InvalidArgument
from ._library import (Alone, Handle, PathLike, call, count, create, lib, number, path_bytes,
                       seed_of, text, threads_of)

Prompt = Union[None, str, bytes, Sequence[int], Symbols, Any]

_NEWLINE = 10


class State:
    """The state of `batch` streams that advance together, created by Model.state().

    One thread at a time: a second one gets a BusyError. A state is closed with its model."""

    def __init__(self, model: Handle, task: str, symbols: int, outputs: int, batch: int,
                 longest: int, method: Optional[str], precision: Optional[str],
                 threads: int) -> None:
        desc = s.tarn_generator_desc(
            batch=count("batch", batch), longest=count("longest", longest),
            method=text("method", method), precision=text("precision", precision),
            host=s.tarn_host(threads_of(threads)))
        self._lock = threading.Lock()
        self._model, self._task, self._symbols, self._outputs = model, task, symbols, outputs
        self.batch: int = desc.batch
        with model.use() as pointer:
            self._handle = Handle("state", create("tarn_generator_create", pointer,
                                                  c.byref(desc)),
                                  lib.tarn_generator_free, model)
        with self._handle.use() as generator:
            self._memory = np.zeros(lib.tarn_generator_state_size(generator), np.uint8)
            self.method: str = lib.tarn_generator_method(generator).decode()
        self._next: Optional[Symbols] = None  # sampled and not yet fed

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
    def position(self) -> int:
        """Number of symbols fed so far."""
        return int(lib.tarn_state_position(self._memory.ctypes.data))

    @property
    def nbytes(self) -> int:
        return int(self._memory.size)

    # ---- Use ----

    def step(self, symbols: Any) -> Floats:
        """Feeds the next symbol of every stream, (B), and returns the outputs (B, O)."""
        given = symbols_of("symbols", symbols, "B")
        return self._feed_alone(given.reshape(-1, 1))

    def prefill(self, symbols: Any) -> Floats:
        """Feeds n symbols of every stream, (B, n), faster than n steps; returns the outputs
        (B, O) of the last position."""
        return self._feed_alone(symbols_of("symbols", symbols, "BN"))

    def _feed_alone(self, symbols: Symbols) -> Floats:
        with Alone(self._lock), self._handle.use() as generator:
            outputs = self._feed(generator, symbols)
            self._next = None
            return outputs

    def _feed(self, generator: int, symbols: Symbols) -> Floats:
        if symbols.shape[0] != self.batch:
            raise InvalidArgument(f"symbols: are of {symbols.shape[0]} streams; this state has "
                                  f"{self.batch}")
        outputs = c.c_void_p()
        call("tarn_generator_prefill", generator, self._memory.ctypes.data, c.byref(outputs),
             symbols.ctypes.data, symbols.shape[1])
        values = c.cast(outputs, c.POINTER(c.c_float))
        return np.array(np.ctypeslib.as_array(values, (self.batch, self._outputs)), np.float32)

    def reset(self) -> None:
        """Resets to the initial state, (16), (17)."""
        with Alone(self._lock), self._handle.use():
            self._memory[:] = 0
            self._next = None

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
        raw = s.tarn_sampling(
            temperature=heat, top_k=count("top_k", top_k), top_p=number("top_p", top_p),
            greedy=bool(greedy) or heat == 0, seed=seed_of(seed))
        with self._model.use() as model:
            sampler = Handle("sampler", create("tarn_sampler_create", model, c.byref(raw), None),
                             lib.tarn_sampler_free)
        fed = self._prompt(prompt)
        return self._draw(sampler, fed, left)

    def _draw(self, sampler: Handle, fed: Symbols, left: Optional[int]) -> Iterator[Symbols]:
        while left is None or left > 0:
            with Alone(self._lock), self._handle.use() as generator, sampler.use() as draws:
                outputs = self._feed(generator, fed)
                symbols = np.empty(self.batch, np.int32)
                lib.tarn_sampler_draw(draws, symbols.ctypes.data, outputs.ctypes.data,
                                      self.batch, self.position)
                self._next = symbols.copy()
            fed = symbols.reshape(-1, 1)
            yield symbols.copy()
            left = None if left is None else left - 1

    def _prompt(self, prompt: Prompt) -> Symbols:
        """Symbols (B, P)."""
        if prompt is None and self._next is not None:
            return self._next.reshape(-1, 1).copy()
        if prompt is None:
            prompt = [_NEWLINE if self._task == "text" else 0]
        elif isinstance(prompt, (str, bytes)):
            if self._symbols < 256:
                raise InvalidArgument(f"prompt is text, but the {self._symbols} symbols of this "
                                      "model are not bytes; give a list of numbers")
            prompt = np.frombuffer(prompt.encode() if isinstance(prompt, str) else prompt,
                                   np.uint8)
        symbols = np.asarray(prompt)
        if symbols.ndim == 1:
            symbols = np.broadcast_to(symbols, (self.batch, symbols.size))
        return symbols_of("prompt", symbols, "BP")

    # ---- Snapshots ----

    def to_bytes(self) -> bytes:
        """A snapshot of the state, from which it can continue; the contents of a save() file."""
        with Alone(self._lock), self._handle.use() as generator:
            size, following = c.c_size_t(), self._next_pointer()
            call("tarn_state_pack", generator, None, c.byref(size), self._memory.ctypes.data,
                 following)
            packed = np.empty(size.value, np.uint8)
            call("tarn_state_pack", generator, packed.ctypes.data, c.byref(size),
                 self._memory.ctypes.data, following)
            return packed[:size.value].tobytes()

    def load_bytes(self, data: bytes) -> None:
        """Restores a snapshot of to_bytes() from a state of the same model, method and batch. On
        an error the state is unchanged."""
        packed = np.frombuffer(data, np.uint8)
        about = s.tarn_state_about()
        with Alone(self._lock), self._handle.use() as generator:
            place = packed.ctypes.data
            call("tarn_state_inspect_packed", c.byref(about), place, packed.size)
            following = self._room(about)
            call("tarn_state_unpack", generator, self._memory.ctypes.data,
                 None if following is None else following.ctypes.data, place, packed.size)
            self._next = following

    def save(self, path: PathLike) -> None:
        """Saves a snapshot to a file, which `tarn generate --load-state` can read too."""
        with Alone(self._lock), self._handle.use() as generator:
            call("tarn_state_save", generator, self._memory.ctypes.data, self._next_pointer(),
                 path_bytes(path))

    def load(self, path: PathLike) -> None:
        """Restores a snapshot from a file. On an error the state is unchanged."""
        about, encoded = s.tarn_state_about(), path_bytes(path)
        with Alone(self._lock), self._handle.use() as generator:
            call("tarn_state_inspect", c.byref(about), encoded)
            following = self._room(about)
            call("tarn_state_load", generator, self._memory.ctypes.data,
                 None if following is None else following.ctypes.data, encoded)
            self._next = following

    def _next_pointer(self) -> Optional[int]:
        return None if self._next is None else self._next.ctypes.data

    def _room(self, about: s.tarn_state_about) -> Optional[Symbols]:
        """Room for the next symbols. The library refuses another batch size before it writes."""
        return np.empty(self.batch, np.int32) if about.has_next else None
