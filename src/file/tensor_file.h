/* SPDX-License-Identifier: MIT */
/* tensor_file.h - tensors from a file of any known format, recognised by its first bytes. */
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

/* ---- For readers of other formats ---------------------------------------- */

/* Zeros, and a path, are an empty one. */
struct tn_tensor_list {
    struct tn_safetensor *tensors;
    size_t count, room;
    struct tn_safetensors_entry *notes;
    size_t noted;
    struct tn_texts texts;
    const char *path; /* the file, for messages */
};

/* A copy, with its name and `bytes` made from dtype and shape. Refuses a name that is empty,
 * too long or not UTF-8. */
tarn_status tn_tensor_list_add(struct tn_tensor_list *list, const struct tn_safetensor *tensor,
                               tarn_error *err);

/* A pair of the metadata, with `length` bytes of text; it replaces one of the same key. It is
 * there for people: what cannot be one, since it is not UTF-8 or has a zero byte, is left out,
 * and so is what comes after the first TN_NOTES_MOST. */
enum { TN_NOTES_MOST = 1024 };
tarn_status tn_tensor_list_note(struct tn_tensor_list *list, const char *key, const char *text,
                                size_t length, tarn_error *err);

/* Moves everything, and `bytes`, in which the data lies, into *out; the list is empty then.
 * Refuses a name that is there twice. */
tarn_status tn_tensor_list_end(struct tn_tensor_list *list, struct tn_safetensors *out,
                               struct tn_bytes *bytes, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_tensor_list_free(struct tn_tensor_list *list);

#endif
