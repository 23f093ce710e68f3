# SPDX-License-Identifier: MIT
"""The structs of include/tarn/*.h, field by field.

tests/test_structs.py compares every size and offset with those of the C compiler."""
from __future__ import annotations

import ctypes as c
from typing import Any, Dict, Type

NAME_SIZE = 96  # TARN_NAME_SIZE
PATH_SIZE = 1024  # TARN_PATH_SIZE
ATTENTION_INPUTS = 8  # TARN_ATTENTION_INPUTS

# ---- status.h ----


class tarn_error(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 256)]


# ---- machine.h ----


class tarn_host(c.Structure):
    _fields_ = [("threads", c.c_size_t), ("cpu", c.c_char_p), ("allocator", c.c_void_p)]


# ---- attention.h ----


class tarn_attention_desc(c.Structure):
    _fields_ = [
        ("kind", c.c_char_p),
        ("feature_map", c.c_char_p),
        ("causal", c.c_bool),
        ("batch", c.c_size_t),
        ("heads", c.c_size_t),
        ("queries", c.c_size_t),
        ("keys", c.c_size_t),
        ("query_width", c.c_size_t),
        ("value_width", c.c_size_t),
        ("seed", c.c_uint64),
        ("host", tarn_host),
    ]


class tarn_input(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("batch", c.c_ssize_t),
        ("position", c.c_ssize_t),
        ("head", c.c_ssize_t),
    ]


class tarn_output(c.Structure):
    _fields_ = tarn_input._fields_


class tarn_attention_arrays(c.Structure):
    _fields_ = [
        ("in", tarn_input * ATTENTION_INPUTS),
        ("y", tarn_output),
        ("dy", tarn_input),
        ("din", tarn_output * ATTENTION_INPUTS),
        ("key_lengths", c.c_void_p),
        ("state0", c.c_void_p),
        ("state1", c.c_void_p),
        ("dstate1", c.c_void_p),
        ("dstate0", c.c_void_p),
    ]


class tarn_attention_input(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("help", c.c_char_p),
        ("width", c.c_int),
        ("at_keys", c.c_bool),
        ("parameter", c.c_bool),
        ("activation", c.c_int),
        ("start", c.c_float),
    ]


class tarn_dot_product_sizes(c.Structure):
    _fields_ = [
        ("batch", c.c_size_t),
        ("heads", c.c_size_t),
        ("length", c.c_size_t),
        ("query_width", c.c_size_t),
        ("value_width", c.c_size_t),
        ("host", tarn_host),
    ]


class tarn_option_info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("help", c.c_char_p),
        ("minimum", c.c_double),
        ("maximum", c.c_double),
        ("initial", c.c_double),
        ("whole", c.c_bool),
        ("choices", c.POINTER(c.c_char_p)),
    ]


class tarn_table_row(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("help", c.c_char_p),
        ("options", c.POINTER(tarn_option_info)),
    ]


# ---- model.h ----


class tarn_config(c.Structure):
    _fields_ = [
        ("task", c.c_char * NAME_SIZE),
        ("attention", c.c_char * NAME_SIZE),
        ("feature_map", c.c_char * NAME_SIZE),
        ("position", c.c_char * NAME_SIZE),
        ("context", c.c_char * NAME_SIZE),
        ("head", c.c_char * NAME_SIZE),
        ("norm", c.c_char * NAME_SIZE),
        ("activation", c.c_char * NAME_SIZE),
        ("body", c.c_char * NAME_SIZE),
        ("causal", c.c_bool),
        ("symbols", c.c_size_t),
        ("frames", c.c_size_t),
        ("stack", c.c_size_t),
        ("layers", c.c_size_t),
        ("heads", c.c_size_t),
        ("width", c.c_size_t),
        ("feed", c.c_size_t),
        ("positions", c.c_size_t),
        ("dropout", c.c_double),
        ("seed", c.c_uint64),
    ]


class tarn_field(c.Structure):
    _fields_ = [("name", c.c_char_p), ("help", c.c_char_p), ("value", c.c_char_p)]


class tarn_tensor(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("rows", c.c_size_t),
        ("columns", c.c_size_t),
        ("values", c.c_void_p),
    ]


class tarn_run_desc(c.Structure):
    _fields_ = [
        ("batch", c.c_size_t),
        ("length", c.c_size_t),
        ("host", tarn_host),
    ]


# ---- train.h ----


class tarn_trainer_desc(c.Structure):
    _fields_ = [
        ("batch", c.c_size_t),
        ("length", c.c_size_t),
        ("optimizer", c.c_char_p),
        ("schedule", c.c_char_p),
        ("clip", c.c_char_p),
        ("lr", c.c_double),
        ("steps", c.c_size_t),
        ("precision", c.c_char_p),
        ("recompute", c.c_bool),
        ("varies", c.c_bool),
        ("skip_nonfinite", c.c_bool),
        ("carry", c.c_bool),
        ("seed", c.c_uint64),
        ("host", tarn_host),
        ("micro_batches", c.c_size_t),
        ("bf16_gradients", c.c_bool),
        ("shard_optimizer", c.c_bool),
        ("comm", c.c_void_p),
        ("sequence_chunks", c.c_size_t),
        ("sequence_parallel", c.c_size_t),
    ]


class tarn_batch(c.Structure):
    _fields_ = [
        ("inputs", c.c_void_p),
        ("targets", c.c_void_p),
        ("weights", c.c_void_p),
        ("frames", c.c_void_p),
        ("lengths", c.c_void_p),
        ("counts", c.c_void_p),
        ("length", c.c_size_t),
        ("position", c.c_uint64),
    ]


class tarn_report(c.Structure):
    _fields_ = [
        ("update", c.c_uint64),
        ("loss", c.c_double),
        ("accuracy", c.c_double),
        ("lr", c.c_double),
        ("norm", c.c_double),
        ("skipped", c.c_bool),
        ("tokens", c.c_size_t),
    ]


class tarn_score(c.Structure):
    _fields_ = [
        ("loss", c.c_double),
        ("correct", c.c_double),
        ("weight", c.c_double),
        ("labels", c.c_double),
        ("substitutions", c.c_double),
        ("insertions", c.c_double),
        ("deletions", c.c_double),
    ]


class tarn_settings(c.Structure):
    _fields_ = [
        ("task", c.c_char * NAME_SIZE),
        ("data", c.c_char * PATH_SIZE),
        ("validation", c.c_double),
        ("length", c.c_size_t),
        ("batch", c.c_size_t),
        ("accumulate", c.c_size_t),
        ("steps", c.c_size_t),
        ("optimizer", c.c_char * NAME_SIZE),
        ("schedule", c.c_char * NAME_SIZE),
        ("clip", c.c_char * NAME_SIZE),
        ("precision", c.c_char * NAME_SIZE),
        ("lr", c.c_double),
        ("recompute", c.c_bool),
        ("skip_nonfinite", c.c_bool),
        ("eval_every", c.c_size_t),
        ("eval_batches", c.c_size_t),
        ("save_every", c.c_size_t),
        ("keep", c.c_size_t),
        ("seed", c.c_uint64),
        ("cache", c.c_char * PATH_SIZE),
        ("strict", c.c_bool),
        ("carry", c.c_bool),
        ("micro_batches", c.c_size_t),
        ("bf16_gradients", c.c_bool),
        ("shard_optimizer", c.c_bool),
        ("sequence_chunks", c.c_size_t),
        ("sequence_parallel", c.c_size_t),
    ]


class tarn_validation(c.Structure):
    _fields_ = [
        ("update", c.c_uint64),
        ("loss", c.c_double),
        ("metric", c.c_double),
        ("name", c.c_char_p),
        ("positions", c.c_double),
        ("sums", tarn_score),
    ]


class tarn_skipped(c.Structure):
    _fields_ = [("file", c.c_char_p), ("line", c.c_size_t), ("reason", c.c_char_p)]


on_skipped = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(tarn_skipped))
on_started = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(tarn_settings), c.c_uint64, c.c_size_t)
on_update = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(tarn_report))
on_scored = c.CFUNCTYPE(None, c.c_void_p, c.c_size_t, c.c_size_t)
on_validation = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(tarn_validation))
on_saved = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)
on_planned = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(tarn_settings))
must_stop = c.CFUNCTYPE(c.c_bool, c.c_void_p)


class tarn_events(c.Structure):
    _fields_ = [
        ("context", c.c_void_p),
        ("skipped", on_skipped),
        ("started", on_started),
        ("update", on_update),
        ("scored", on_scored),
        ("validation", on_validation),
        ("saved", on_saved),
        ("planned", on_planned),
        ("stop", must_stop),
    ]


class tarn_comm(c.Structure):
    _fields_ = [
        ("rank", c.c_size_t),
        ("size", c.c_size_t),
        ("sharing", c.c_size_t),
        ("timeout", c.c_double),
        ("context", c.c_void_p),
        ("start", c.c_void_p),
        ("test", c.c_void_p),
        ("abort", c.c_void_p),
        ("close", c.c_void_p),
    ]


class tarn_train_desc(c.Structure):
    _fields_ = [
        ("out", c.c_char_p),
        ("resume", c.c_bool),
        ("any", c.c_bool),
        ("start", c.c_char_p),
        ("epochs", c.c_double),
        ("host", tarn_host),
        ("events", tarn_events),
        ("minutes", c.c_double),
        ("validations", c.c_size_t),
        ("comm", c.c_void_p),
    ]


class tarn_evaluate_desc(c.Structure):
    _fields_ = [
        ("host", tarn_host),
        ("beam", c.c_size_t),
        ("skipped", on_skipped),
        ("scored", on_scored),
        ("context", c.c_void_p),
        ("precision", c.c_char_p),
        ("comm", c.c_void_p),
    ]


class tarn_batches_desc(c.Structure):
    _fields_ = [
        ("model", c.c_void_p),
        ("stack", c.c_size_t),
        ("threads", c.c_size_t),
        ("skipped", on_skipped),
        ("context", c.c_void_p),
    ]


# ---- image.h ----


class tarn_image_size(c.Structure):
    _fields_ = [("height", c.c_size_t), ("width", c.c_size_t), ("channels", c.c_size_t)]


# ---- generate.h ----


class tarn_engine_desc(c.Structure):
    _fields_ = [
        ("longest", c.c_size_t),
        ("capacity", c.c_size_t),
        ("method", c.c_char_p),
        ("precision", c.c_char_p),
        ("host", tarn_host),
    ]


class tarn_sampling(c.Structure):
    _fields_ = [
        ("temperature", c.c_double),
        ("top_k", c.c_size_t),
        ("top_p", c.c_double),
        ("greedy", c.c_bool),
        ("seed", c.c_uint64),
        ("number", c.c_uint64),
    ]


class tarn_streams_about(c.Structure):
    _fields_ = [
        ("model", c.c_uint64),
        ("method", c.c_char * NAME_SIZE),
        ("count", c.c_size_t),
        ("position", c.c_uint64),
        ("has_next", c.c_bool),
    ]


# ---- import.h ----

import_tell = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)


class tarn_import_desc(c.Structure):
    _fields_ = [
        ("heads", c.c_size_t),
        ("attention", c.c_char_p),
        ("feature_map", c.c_char_p),
        ("norm", c.c_char_p),
        ("activation", c.c_char_p),
        ("head", c.c_char_p),
        ("position", c.c_char_p),
        ("task", c.c_char_p),
        ("tell", import_tell),
        ("context", c.c_void_p),
        ("allocator", c.c_void_p),
    ]


def structs() -> Dict[str, Type[c.Structure]]:
    """All of the above by name."""
    found: Dict[str, Any] = {name: value for name, value in globals().items()
                             if name.startswith("tarn_")}
    return found


def values_of(raw: c.Structure) -> Dict[str, Any]:
    """The fields of a struct by name."""
    return {field[0]: getattr(raw, field[0]) for field in raw._fields_}
