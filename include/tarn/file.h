/* SPDX-License-Identifier: MIT */
/* file.h - what a file of tensors holds: names, types, shapes, metadata, numbers.
 *
 *     tarn_file *file;
 *     tarn_file_tensor tensor;
 *     tarn_file_open(&file, "model.safetensors", &err);
 *     for (size_t i = 0; tarn_file_tensor_at(file, i, &tensor); i++)
 *         printf("%zu bytes of %s\n", tensor.bytes, tensor.dtype);
 *
 * Files are safetensors, PyTorch's of torch.save(), and NumPy's .npz; the last two, but for
 * PyTorch's before 1.6, need libarchive. Tensors in dicts within dicts of torch.save() are
 * named by all keys with dots between them; the pickle of such a file is read, and never run.
 *
 * Files are distrusted: one that is not whole and right is refused. Names and texts are UTF-8
 * and otherwise anything, control characters too: mind where they are printed. */
#ifndef TARN_FILE_H
#define TARN_FILE_H

#include <stdbool.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A file that was read; it may be changed or removed meanwhile. Any number of threads may look
 * at one at once. */
typedef struct tarn_file tarn_file;

/* Pointers are good until the file is freed. */
typedef struct tarn_file_tensor {
    const char *name;
    const char *dtype; /* "F32", "BF16", "I64", ... */
    size_t rank;
    const size_t *shape; /* rank of them */
    size_t count, bytes; /* numbers, and what they take */
} tarn_file_tensor;

typedef struct tarn_file_entry {
    const char *key, *text;
} tarn_file_entry;

TARN_API tarn_status tarn_file_open(tarn_file **file, const char *path, tarn_error *err);
TARN_API void tarn_file_free(tarn_file *file); /* accepts NULL */

/* "safetensors", "pth" or "npz", by what is in it. */
TARN_API const char *tarn_file_format(const tarn_file *file);

/* Tensors in the order in which they were saved, of .npz by their names, and pairs of the
 * metadata sorted by their keys; false past the last. */
TARN_API bool tarn_file_tensor_at(const tarn_file *file, size_t index,
                                  tarn_file_tensor *tensor);
TARN_API bool tarn_file_entry_at(const tarn_file *file, size_t index, tarn_file_entry *entry);

/* The text under a key of the metadata; NULL: there is none. */
TARN_API const char *tarn_file_text(const tarn_file *file, const char *key);

/* A tensor's `count` numbers as floats, F64 rounded. TARN_EINVAL: they are no floating point
 * numbers, or there is no such tensor. */
TARN_API tarn_status tarn_file_floats(const tarn_file *file, float *values, size_t index,
                                      tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
