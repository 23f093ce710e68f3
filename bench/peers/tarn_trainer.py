# SPDX-License-Identifier: MIT
"""The part of tarn/train.h that the benchmark needs, through ctypes: updates of a tarn.Model.

An error in these structs would show, because an update is compared with those of the peers."""
import ctypes as c

import numpy as np
from tarn._library import Handle, call, create, lib
from tarn._structs import tarn_host

lib.tarn_trainer_free.restype, lib.tarn_trainer_free.argtypes = None, [c.c_void_p]


class tarn_trainer_desc(c.Structure):
    _fields_ = [("batch", c.c_size_t), ("length", c.c_size_t), ("optimizer", c.c_char_p),
                ("schedule", c.c_char_p), ("clip", c.c_char_p), ("lr", c.c_double),
                ("steps", c.c_size_t),
                ("precision", c.c_char_p), ("recompute", c.c_bool), ("varies", c.c_bool),
                ("skip_nonfinite", c.c_bool), ("carry", c.c_bool), ("seed", c.c_uint64),
                ("host", tarn_host)]


class tarn_batch(c.Structure):
    _fields_ = [("inputs", c.c_void_p), ("targets", c.c_void_p), ("weights", c.c_void_p),
                ("frames", c.c_void_p), ("lengths", c.c_void_p), ("counts", c.c_void_p),
                ("length", c.c_size_t), ("position", c.c_uint64)]


class tarn_report(c.Structure):
    _fields_ = [("update", c.c_uint64), ("loss", c.c_double), ("accuracy", c.c_double),
                ("lr", c.c_double), ("norm", c.c_double), ("skipped", c.c_bool),
                ("tokens", c.c_size_t)]


class Trainer:
    """Updates of a model with batches of one shape (B, N)."""

    def __init__(self, model, shape, **settings):
        desc = tarn_trainer_desc(batch=shape[0], length=shape[1], **settings)
        model = model._handle
        with model.use() as pointer:
            made = create("tarn_trainer_create", c.c_void_p(pointer), c.byref(desc))
        self._handle = Handle("trainer", made, lib.tarn_trainer_free, model)

    def update(self, **arrays):
        """An update on arrays named as in tarn_batch, of its types. The loss before it."""
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        batch = tarn_batch(**{name: array.ctypes.data for name, array in arrays.items()})
        report = tarn_report()
        with self._handle.use() as trainer:
            call("tarn_trainer_update", c.c_void_p(trainer), c.byref(report), c.byref(batch),
                 c.c_size_t(1))
        return report.loss
