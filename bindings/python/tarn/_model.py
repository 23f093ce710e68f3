# SPDX-License-Identifier: MIT
"""Models: loading, saving, and running whole sequences."""
from __future__ import annotations

import ctypes as c
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

import numpy as np

from . import _structs as s
from ._arrays import Floats, Symbols, floats, lengths_of, plain, symbols_of
from ._errors import InvalidArgument
from ._library import (Handle, PathLike, call, count, create, lib, path_bytes, table, text,
                       threads_of)
from ._recipe import Config, changed, config_of, model_file, raw_config
from ._state import Engine, Prompt, State


class Note(NamedTuple):
    """What happened to a tensor or a field in an import."""

    event: str  # "read", "skipped", "missing", "inferred", "assumed"
    name: str
    value: str


_events = ("read", "skipped", "missing", "inferred", "assumed")


def presets() -> Dict[str, str]:
    """Names of presets for Model.create(), with descriptions."""
    return table("tarn_preset")


class Model:
    """Weights and their configuration. Created by load(), import_() or create().

    Any number of threads may use a model at the same time. It is closed by close(), at the end
    of a `with` block, or when it is garbage collected."""

    def __init__(self, handle: Handle, notes: List[Note]) -> None:
        self._handle = handle
        self.notes = notes  #: reports of import_()
        with handle.use() as model:
            self._config = config_of(lib.tarn_model_config(model).contents)
            self._outputs: int = lib.tarn_model_outputs(model)

    @classmethod
    def _made(cls, pointer: int, notes: Optional[List[Note]] = None) -> "Model":
        return cls(Handle("model", pointer, lib.tarn_model_free), notes or [])

    # ---- Creating, saving, closing ----

    @classmethod
    def load(cls, path: PathLike, *, best: bool = False) -> "Model":
        """Loads a model file, a checkpoint, or the model in a training folder; best: use the
        model with the best validation score of the folder, instead of the last."""
        return cls._made(create("tarn_model_load", model_file(path, best), None))

    @classmethod
    def import_(cls, path: PathLike, *, heads: int = 0, attention: Optional[str] = None,
                feature_map: Optional[str] = None, norm: Optional[str] = None,
                activation: Optional[str] = None, head: Optional[str] = None,
                position: Optional[str] = None, task: Optional[str] = None) -> "Model":
        """Imports a PyTorch, safetensors or .npz file with the parameter names of the paper's
        authors. Pickles are parsed safely: no code is ever executed.

        The arguments say what the tensor shapes do not; .notes lists what was read, skipped,
        inferred and assumed."""
        notes: List[Note] = []

        def tell(_: Any, event: int, name: bytes, value: bytes) -> None:
            notes.append(Note(_events[event], (name or b"").decode("utf-8", "replace"),
                              (value or b"").decode("utf-8", "replace")))

        desc = s.tarn_import_desc(
            heads=count("heads", heads), attention=text("attention", attention),
            feature_map=text("feature_map", feature_map), norm=text("norm", norm),
            activation=text("activation", activation), head=text("head", head),
            position=text("position", position), task=text("task", task),
            tell=s.import_tell(tell))
        return cls._made(create("tarn_model_import", path_bytes(path), c.byref(desc)), notes)

    @classmethod
    def create(cls, config: Union[None, str, Config, Mapping[str, Any]] = None, *,
               preset: Optional[str] = None,
               **changes: Union[str, int, float, bool]) -> "Model":
        """Creates a model with random weights: the name of a preset, "tiny" by default, a Config, or a
        mapping of all fields of one; with changes to fields."""
        if preset is not None:
            if config is not None:
                raise InvalidArgument("config and preset cannot be used together; give one of them")
            config = preset
        config = "tiny" if config is None else config
        if isinstance(config, str):
            config = Config.preset(config)
        elif not isinstance(config, Config):
            try:
                config = Config(**config)
            except TypeError as error:
                raise InvalidArgument(f"config: {error}") from None
        raw = changed(raw_config(config), changes)
        return cls._made(create("tarn_model_create", c.byref(raw), None))

    def __reduce__(self) -> Tuple[Any, ...]:
        """For pickle and copy.deepcopy(): the bytes of a model file, and the notes."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.safetensors"
            self.save(file)
            return _restored, (file.read_bytes(), self.notes)

    def close(self) -> None:
        """Closes the model and its states. May be called again."""
        self._handle.close()

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def save(self, path: PathLike) -> None:
        """Saves the model as safetensors. The file is replaced atomically."""
        with self._handle.use() as model:
            call("tarn_model_save", model, path_bytes(path))

    def export(self, path: PathLike, precision: Optional[str] = None,
               positions: int = 0) -> None:
        """Exports the model: as .npz if the path ends in it, otherwise as safetensors. precision:
        "f32", or for safetensors "bf16", half the size, or "int8", a quarter. positions: rows of pos_embedding.pe, the
        sinusoidal encoding of the authors' module; 0: 5000."""
        with self._handle.use() as model:
            call("tarn_model_export", model, path_bytes(path), text("precision", precision),
                 count("positions", positions))

    # ---- Information ----

    @property
    def config(self) -> Config:
        return self._config

    @property
    def outputs(self) -> int:
        """Number of output floats per position, O."""
        return self._outputs

    @property
    def parameters(self) -> int:
        """Number of floats in all tensors."""
        with self._handle.use() as model:
            return int(lib.tarn_model_parameters(model))

    @property
    def fingerprint(self) -> int:
        """A hash of configuration and weights: equal models have equal fingerprints."""
        with self._handle.use() as model:
            return int(lib.tarn_model_fingerprint(model))

    def tensors(self) -> Dict[str, Floats]:
        """Copies of all weights, by name."""
        found: Dict[str, Floats] = {}
        raw = s.tarn_tensor()
        with self._handle.use() as model:
            while lib.tarn_model_tensor(model, len(found), c.byref(raw)):
                shape = (raw.rows, raw.columns) if raw.columns else (raw.rows,)
                found[raw.name.decode()] = copied(raw.values, shape)
        return found

    def __repr__(self) -> str:
        if self.closed:
            return "<tarn.Model, closed>"
        config = self._config
        return (f"<tarn.Model {config.attention}, layers {config.layers}, heads {config.heads}, "
                f"width {config.width}, parameters {self.parameters}>")

    # ---- Use ----

    def forward(self, inputs: Any, lengths: Any = None, *, threads: int = 0) -> Floats:
        """Outputs (B, N, O) for whole sequences: symbols (B, N), or floats (B, T, frames) for a
        model of frames. lengths: B whole numbers; outputs past a length are undefined."""
        framed = self._config.frames > 0
        given: Union[Floats, Symbols]
        if framed:
            given = plain(floats("inputs", inputs, "BTF"), np.float32)
            if given.shape[2] != self._config.frames:
                raise InvalidArgument(f"inputs: have frames of {given.shape[2]} floats; the model "
                                      f"needs {self._config.frames}")
        else:
            given = symbols_of("inputs", inputs, "BN")
        B, N = given.shape[:2]
        counted = lengths_of("lengths", lengths, B, N)
        stack = self._config.stack if framed else 1
        with self._handle.use() as model, _run(model, B, N, threads_of(threads)) as run:
            outputs = c.c_void_p()
            call("tarn_run_frames" if framed else "tarn_run_forward", run, c.byref(outputs),
                 given.ctypes.data, None if counted is None else counted.ctypes.data)
            return copied(outputs.value, (B, -(-N // stack), self._outputs))

    __call__ = forward

    def state(self, batch: int = 1, *, longest: int = 0, method: Optional[str] = None,
              precision: Optional[str] = None, threads: int = 0) -> State:
        """A state to run the model as a recurrent network, for `batch` streams.

        longest: maximum sequence length; required if the state grows, as with softmax. method:
        "recurrent" or "recompute". precision: "f32", or "bf16" or "int8", weights of half or
        a quarter of the size, or "bf16-inputs", inputs of products in bf16, too."""
        streams = count("batch", batch, 1)
        engine = Engine(self, self._handle, streams, longest, method, precision, threads)
        return State(engine, engine.streams(streams))

    def _own(self, state: State) -> State:
        if not isinstance(state, State) or state._engine.model is not self._handle:
            raise InvalidArgument("state must be one that state() of this model created")
        return state

    def step(self, state: State, symbols: Any) -> Floats:
        """The same as state.step(symbols)."""
        return self._own(state).step(symbols)

    def prefill(self, state: State, symbols: Any) -> Floats:
        """The same as state.prefill(symbols)."""
        return self._own(state).prefill(symbols)

    def generate(self, prompt: Prompt = None, n: int = 256, *, batch: int = 1,
                 temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
                 greedy: bool = False, seed: int = 1, method: Optional[str] = None,
                 precision: Optional[str] = None, threads: int = 0) -> Symbols:
        """Generates n symbols per stream, (B, n), after a prompt: symbols (B, P), or symbols (P),
        bytes or text for all `batch` streams. The same symbols as those of `tarn generate`."""
        n = count("n", n, 1)
        if isinstance(prompt, (list, np.ndarray)) and np.ndim(prompt) == 2:
            batch = len(prompt)
        with self.state(batch, longest=n + prompt_size(prompt), method=method,
                        precision=precision, threads=threads) as state:
            return state.generate(prompt, n, temperature=temperature, top_k=top_k, top_p=top_p,
                                  greedy=greedy, seed=seed)


def _restored(data: bytes, notes: List[Note]) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        file.write_bytes(data)
        model = Model.load(file)
    model.notes = list(notes)
    return model


def prompt_size(prompt: Prompt) -> int:
    if prompt is None:
        return 1
    if isinstance(prompt, (str, bytes)):
        return max(1, len(prompt.encode() if isinstance(prompt, str) else prompt))
    return max(1, int(np.shape(prompt)[-1])) if np.ndim(prompt) else 1


def copied(pointer: Optional[int], shape: Any) -> Floats:
    """A copy of memory of the library."""
    values = c.cast(c.c_void_p(pointer), c.POINTER(c.c_float))
    return np.array(np.ctypeslib.as_array(values, shape), np.float32)


class _run:
    """A run of whole sequences, for one call."""

    def __init__(self, model: int, batch: int, length: int, threads: int) -> None:
        desc = s.tarn_run_desc(batch, length, s.tarn_host(threads))
        self._pointer = create("tarn_run_create", model, c.byref(desc))

    def __enter__(self) -> int:
        return self._pointer

    def __exit__(self, *exception: object) -> None:
        lib.tarn_run_free(self._pointer)
