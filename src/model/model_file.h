/* SPDX-License-Identifier: MIT */
/* model_file.h - a model in a safetensors file: its tensors by name, its configuration as JSON
 * under the key `tarn` of the metadata. A checkpoint is the same file with more in it. */
#ifndef TN_MODEL_FILE_H
#define TN_MODEL_FILE_H

#include "file/safetensors.h"
#include "kernel/matmul.h"
#include "model/model_data.h"

extern const char tn_model_key[]; /* of the configuration */
extern const char tn_note_key[];  /* of the task's note, if there is one */

/* An array with a float per parameter as tensors, one per tensor of the model; names are
 * `prefix` and the tensor's. Fills model->tensor_count rows; names[] holds their text. */
struct tn_tensor_text {
    char text[TN_TENSOR_NAME + 32];
};
void tn_model_tensors(struct tn_safetensor *rows, struct tn_tensor_text *names,
                      const tarn_model *model, const char *prefix, const float *values);

/* A file of tensors, and of some metadata: tn_safetensors_write() and its like. */
typedef tarn_status tn_tensors_writer(const char *path, const struct tn_safetensor *tensors,
                                      size_t count, const struct tn_safetensors_entry *metadata,
                                      size_t entries, tarn_error *err);

/* All tensors and the configuration; matrices in f32, bf16 or int8. With `positions` above 0,
 * so many rows of the model's sinusoid, if it has one, as pos_embedding.pe. */
extern const char tn_sinusoid_name[];
tarn_status tn_model_write(const tarn_model *model, const char *path, enum tn_element elements,
                           size_t positions, tn_tensors_writer *write, tarn_error *err);

/* The other way: every tensor must be there, in its shape, finite. */
tarn_status tn_model_read_tensors(float *values, const tarn_model *model,
                                  const struct tn_safetensors *file, const char *prefix,
                                  const char *path, tarn_error *err);

tarn_status tn_config_from_file(tarn_config *config, const struct tn_safetensors *file,
                                const char *path, tarn_error *err);

/* The task's note, if the file has one. */
tarn_status tn_model_read_note(tarn_model *model, const struct tn_safetensors *file,
                               const char *path, tarn_error *err);

/* ---- model_int8.c ------------------------------------------------------- */

/* The name of a tensor's scales. */
void tn_scale_name(struct tn_tensor_text *name, const char *prefix, const char *tensor);

/* How many scales and matrices there are. */
size_t tn_int8_scales(const tarn_model *model, size_t *matrices);

/* Changes the rows of matrices, as tn_model_tensors() filled them, to what q gets, and fills a
 * row of scales for each; names[] holds the text of those. */
void tn_int8_tensors(struct tn_safetensor *rows, struct tn_safetensor *scale_rows,
                     struct tn_tensor_text *names, int8_t *q, float *scales,
                     const tarn_model *model);

/* The numbers of an I8 tensor of the right shape; scales: NULL if the file has none. */
tarn_status tn_int8_expand(float *out, const struct tn_safetensor *found,
                           const struct tn_safetensor *scales,
                           const struct tn_named_tensor *wanted, const char *path,
                           tarn_error *err);

/* ---- Reading models ----------------------------------------------------- */

/* A model from a file that was read. */
tarn_status tn_model_from_file(tarn_model **model, const struct tn_safetensors *file,
                               const char *path, const tarn_allocator *allocator,
                               tarn_error *err);

#endif
