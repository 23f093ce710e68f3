/* SPDX-License-Identifier: MIT */
/* tensor_list.h - tensors of other formats as safetensors are: named, listed, found by name. */
#ifndef TN_TENSOR_LIST_H
#define TN_TENSOR_LIST_H

#include "file/safetensors.h"

struct tn_tensor_list {
    struct json_t *header; /* names and metadata live in it */
    struct tn_safetensor *tensors;
    size_t count, room;
    const char *path; /* the file, for messages */
};

tarn_status tn_tensor_list_begin(struct tn_tensor_list *list, const char *path,
                                 tarn_error *err);

/* A copy, with its name and `bytes` made from dtype and shape. Refuses a name that is empty,
 * too long, no UTF-8 or there already. */
tarn_status tn_tensor_list_add(struct tn_tensor_list *list, const struct tn_safetensor *tensor,
                               tarn_error *err);

/* A pair of the metadata, with `length` bytes of text. What cannot be one, since it is no UTF-8
 * or has a zero byte, is left out: it is there for people. */
void tn_tensor_list_note(struct tn_tensor_list *list, const char *key, const char *text,
                         size_t length);

/* Moves everything, and `bytes`, in which the data lies, into *out; the list is empty then. */
tarn_status tn_tensor_list_end(struct tn_tensor_list *list, struct tn_safetensors *out,
                               struct tn_bytes *bytes, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_tensor_list_free(struct tn_tensor_list *list);

#endif
