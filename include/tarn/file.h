/* SPDX-License-Identifier: MIT */
/* file.h - reading tensor files: names, types, shapes, metadata and values.
 *
 *     tarn_file *file;
 *     tarn_file_tensor tensor;
 *     tarn_file_open(&file, "model.safetensors", &err);
 *     for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
 *         printf("%zu bytes of %s\n", tensor.bytes, tensor.dtype);
 *
 * Supported are safetensors, PyTorch files (torch.save()) and NumPy .npz files. Tensors in
 * nested dicts of a PyTorch file are named by all keys, joined with dots. Pickles are parsed
 * safely: no code is ever executed.
 *
 * Files may come from untrusted sources: damaged and malicious files are refused. Names and
 * metadata are valid UTF-8, but may contain control characters: escape them before printing. */
#ifndef TARN_FILE_H
#define TARN_FILE_H

#include <stdbool.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The contents of a file, in memory: the file itself may be changed or deleted after opening.
 * Any number of threads may read one tarn_file at the same time. */
typedef struct tarn_file tarn_file;

/* Pointers are valid until tarn_file_free(). */
typedef struct tarn_file_tensor {
    const char *name;
    const char *dtype; /* "F32", "BF16", "I64", ... */
    size_t rank;
    const size_t *shape; /* `rank` dimensions */
    size_t count, bytes; /* number of elements, and their size in bytes */
} tarn_file_tensor;

typedef struct tarn_file_entry {
    const char *key, *text;
} tarn_file_entry;

/* Reads a whole file. TARN_EFORMAT: it is damaged or of an unknown format. */
TARN_API tarn_status tarn_file_open(tarn_file **file, const char *path, tarn_error *err);
TARN_API void tarn_file_free(tarn_file *file); /* accepts NULL */

/* "safetensors", "pth" (PyTorch) or "npz", as recognised by the contents. */
TARN_API const char *tarn_file_format(const tarn_file *file);

/* Tensor or metadata entry 0, 1, ...; false past the last. Tensors are in the order of the
 * file, those of .npz sorted by name; metadata is sorted by key. */
TARN_API bool tarn_file_tensor_at(const tarn_file *file, size_t index,
                                  tarn_file_tensor *tensor);
TARN_API bool tarn_file_entry_at(const tarn_file *file, size_t index, tarn_file_entry *entry);

/* The metadata under a key; NULL if there is none. */
TARN_API const char *tarn_file_text(const tarn_file *file, const char *key);

/* Converts all `count` elements of a tensor to floats; F64 is rounded. TARN_EINVAL: the tensor
 * is not of a floating-point type, or there is no such tensor. */
TARN_API tarn_status tarn_file_floats(const tarn_file *file, float *values, size_t index,
                                      tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
