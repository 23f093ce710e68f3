# SPDX-License-Identifier: MIT
"""What `tarn train` makes of its options: the configuration of a model and the settings of a run.

Options have the names of the program's, with underscores, and are the fields of tarn_config and
tarn_settings; the library checks their values."""
from __future__ import annotations

import ctypes as c
import os
from dataclasses import dataclass, fields
from typing import Any, Callable, Dict, FrozenSet, Optional

import numpy as np

from . import _structs as s
from ._errors import FileError, InvalidArgument, UnknownName
from ._library import PathLike, call, count, create, lib, number, path_bytes, text


@dataclass(frozen=True)
class Config:
    """Configuration of a model: tarn_config of tarn/model.h."""

    task: str
    attention: str
    feature_map: str
    position: str
    context: str
    head: str
    norm: str
    activation: str
    body: str
    causal: bool
    symbols: int
    frames: int
    stack: int
    layers: int
    heads: int
    width: int
    feed: int
    positions: int
    dropout: float
    seed: int

    @classmethod
    def preset(cls, name: str = "tiny", **changes: Any) -> "Config":
        """A preset, with changes to fields."""
        raw = s.tarn_config()
        call("tarn_config_preset", c.byref(raw), text("preset", name))
        return config_of(changed(raw, changes))

    @classmethod
    def of_task(cls, task: str, preset: Optional[str] = None, **changes: Any) -> "Config":
        """A preset, or the task's default one, with the symbols, frames and head that a task
        needs."""
        raw = s.tarn_config()
        call("tarn_config_start", c.byref(raw), text("task", task), text("preset", preset))
        return config_of(changed(raw, changes))


def config_of(raw: s.tarn_config) -> Config:
    values: Dict[str, Any] = {field.name: getattr(raw, field.name) for field in fields(Config)}
    for name, value in values.items():
        if isinstance(value, bytes):
            values[name] = value.decode("utf-8", "replace")
    return Config(**values)


def raw_config(config: Config) -> s.tarn_config:
    """Names and sizes are checked where a model is created."""
    raw = s.tarn_config()
    for field in fields(Config):
        value = getattr(config, field.name)
        if field.type == "str":
            value = text(field.name, value) or b""
            if len(value) >= s.NAME_SIZE:
                raise InvalidArgument(f"{field.name} has {len(value)} bytes; it must have at most "
                                      f"{s.NAME_SIZE - 1}")
        elif field.type == "int":
            value = count(field.name, value, 0, 2**64 - 1)
        elif field.type == "float":
            value = number(field.name, value)
        elif not isinstance(value, (bool, np.bool_)):
            raise InvalidArgument(f"{field.name} is {type(value).__name__}; it must be bool")
        setattr(raw, field.name, value)
    return raw


# ---- Fields as text --------------------------------------------------------------


def shown(name: str, value: Any) -> Optional[bytes]:
    """A value as the program's command line has it."""
    if isinstance(value, (bool, np.bool_)):
        return b"true" if value else b"false"
    if isinstance(value, os.PathLike):
        return path_bytes(value)
    if isinstance(value, (str, int, float, np.floating)) or hasattr(value, "__index__"):
        return text(name, str(value))
    raise InvalidArgument(f"{name} is {type(value).__name__}; it must be a number, str or bool")


def changed(raw: s.tarn_config, changes: Dict[str, Any]) -> s.tarn_config:
    for name, value in changes.items():
        call("tarn_config_set", c.byref(raw), text("setting", name), shown(name, value))
    return raw


def _names(function: Callable[[int], Any]) -> FrozenSet[str]:
    found: Dict[str, None] = {}
    row = function(0)
    while row:
        found[row.contents.name.decode()] = None
        row = function(len(found))
    return frozenset(found)


config_names = _names(lib.tarn_config_field)
settings_names = _names(lib.tarn_settings_field)

# They follow from the task or from head_width, or are arguments.
_no_options = frozenset(("task", "symbols", "frames", "width", "data"))


def settings_dict(raw: s.tarn_settings) -> Dict[str, Any]:
    return {name: os.fsdecode(value) if isinstance(value, bytes) else value
            for name, value in s.values_of(raw).items()}


# ---- Recipes ---------------------------------------------------------------------


def model_file(path: PathLike, best: bool = False) -> bytes:
    """The model file of a training folder, or the path itself."""
    encoded = path_bytes(path)
    if os.path.isdir(encoded):
        return os.path.join(encoded, b"best.safetensors" if best else b"model.safetensors")
    if best:
        raise InvalidArgument("best requires the path of a training folder")
    return encoded


def _whole_task(task: bytes, preset: Optional[bytes]) -> bytes:
    """The task as it was given; without options of its own as the preset's recipe has it."""
    made_for: bytes = lib.tarn_preset_task(preset) or b"" if preset else b""
    return made_for if made_for.startswith(task + b":") else task


class Recipe:
    """A configuration and settings, for train()."""

    def __init__(self) -> None:
        self.config = s.tarn_config()
        self.settings = s.tarn_settings()

    def start(self, task: str, preset: Optional[str]) -> None:
        name = text("task", task)
        if not name:
            raise InvalidArgument("task must not be None or empty")
        chosen = text("preset", preset) or lib.tarn_task_preset(name)
        whole = _whole_task(name, chosen)
        call("tarn_settings_start", c.byref(self.settings), whole)
        call("tarn_config_start", c.byref(self.config), whole, chosen)
        if chosen:
            call("tarn_settings_preset", c.byref(self.settings), chosen)

    def start_from(self, path: PathLike) -> bytes:
        """The architecture of a trained model, whose file is returned, with the task chosen
        before."""
        file, task = model_file(path), self.config.task
        model = create("tarn_model_load", file, None)
        c.memmove(c.byref(self.config), lib.tarn_model_config(model), c.sizeof(self.config))
        lib.tarn_model_free(model)
        self.config.task = task
        return file

    def resume(self, task: str, folder: bytes) -> None:
        try:
            call("tarn_train_settings", c.byref(self.config), c.byref(self.settings), folder)
        except UnknownName as error:  # a folder without checkpoints
            raise FileError(str(error)) from None
        before = self.settings.task.decode("utf-8", "replace")
        if task not in (before, before.split(":")[0]):
            raise InvalidArgument(f"task is '{task}'; {os.fsdecode(folder)} was started with task "
                                  f"'{before}'; use that task to resume it")

    def override(self, options: Dict[str, Any], head_width: Optional[int]) -> None:
        config = self.config
        width = config.width // config.heads if config.heads else config.width
        if head_width is not None:
            width = count("head_width", head_width, 1)
        for name, value in options.items():
            self._set(name, value)
        config.width = config.heads * width
        if config.body == b"lstm" and config.frames > 0 and "position" not in options:
            call("tarn_config_set", c.byref(config), b"position", b"none")

    def _set(self, name: str, value: Any) -> None:
        known = (settings_names | config_names) - _no_options
        if name not in known:
            raise UnknownName(f"{name}: unknown option; available: {', '.join(sorted(known))}")
        if name in settings_names:
            call("tarn_settings_set", c.byref(self.settings), name.encode(), shown(name, value))
        if name in config_names:
            call("tarn_config_set", c.byref(self.config), name.encode(), shown(name, value))

    def set_data(self, data: Optional[PathLike]) -> None:
        if data is not None:
            call("tarn_settings_set", c.byref(self.settings), b"data", path_bytes(data))
