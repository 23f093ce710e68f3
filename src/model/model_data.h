/* SPDX-License-Identifier: MIT */
/* model_data.h - `tarn_model` is this: a configuration that was looked up, and its weights. */
#ifndef TN_MODEL_DATA_H
#define TN_MODEL_DATA_H

#include "model/weights.h"

enum { TN_TENSOR_NAME = 96 };

struct tn_named_tensor {
    char name[TN_TENSOR_NAME];
    size_t rows, columns, from; /* from: its first float among all */
};

struct tarn_model {
    struct tn_arch arch;
    struct tn_weights weights;
    float *values; /* of all tensors */
    size_t count;  /* floats */
    struct tn_named_tensor *tensors;
    size_t tensor_count;
    char *note;   /* what its task must know to use it without data, as JSON; NULL: nothing */
    void *memory; /* as allocated */
    tarn_allocator allocator;
};

enum { TN_NOTE_MOST = 1 << 26 }; /* bytes */

/* Keeps a copy of the note, which goes into the model's files; NULL: none. */
tarn_status tn_model_note(tarn_model *model, const char *note, tarn_error *err);

/* Weights undefined. */
tarn_status tn_model_allocate(tarn_model **model, const tarn_config *config,
                              const tarn_allocator *allocator, tarn_error *err);

#endif
