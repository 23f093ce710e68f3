/* SPDX-License-Identifier: MIT */
/* transformer.h - the model: `tarn_model` is this. */
#ifndef TN_TRANSFORMER_H
#define TN_TRANSFORMER_H

#include "model/weights.h"

enum { TN_TENSOR_NAME = 64 };

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
    void *memory; /* as allocated */
    const tarn_allocator *allocator;
    tarn_allocator allocator_copy;
};

/* Weights undefined. */
tarn_status tn_model_allocate(tarn_model **model, const tarn_config *config,
                              const tarn_allocator *allocator, tarn_error *err);

#endif
