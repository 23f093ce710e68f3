/* SPDX-License-Identifier: MIT */
/* tensor_file.h - tensors from a file of any format that is known, by its first bytes. */
#ifndef TN_TENSOR_FILE_H
#define TN_TENSOR_FILE_H

#include "file/safetensors.h"

enum tn_tensor_format { TN_FORMAT_SAFETENSORS, TN_FORMAT_PTH, TN_FORMAT_NPZ };

/* As tn_safetensors_read(), and what it was. */
tarn_status tn_tensor_file_read(struct tn_safetensors *out, enum tn_tensor_format *format,
                                const char *path, tarn_error *err);

/* As tn_safetensors_parse(); but the memory may be freed instead of moved. */
tarn_status tn_tensor_file_parse(struct tn_safetensors *out, enum tn_tensor_format *format,
                                 struct tn_bytes *bytes, const char *name, tarn_error *err);

#endif
