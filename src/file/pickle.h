/* SPDX-License-Identifier: MIT */
/* pickle.h - what torch.save() wrote about a state dict, read without running anything.
 *
 * A pickle is a program for a stack machine that makes objects and may call any function of
 * Python's. This machine knows the opcodes that PyTorch's pickles of tensors, numbers, texts,
 * tuples, lists and dicts consist of (protocol 2), and the few globals below; it calls nothing,
 * and refuses all others by name. What it makes are nodes, at most one per opcode, so that
 * memory is bounded by the pickle's bytes.
 *
 *     collections.OrderedDict()                                    a dict
 *     torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...)
 *     torch._utils._rebuild_parameter(tensor, ...)                 its tensor
 *     torch.FloatStorage, ...                                      in the persistent id
 *         ("storage", type, key, device, numbers) of a storage
 *
 * Nodes may hold each other, and themselves: who walks them goes into each once (`seen`). */
#ifndef TN_PICKLE_H
#define TN_PICKLE_H

#include "base/base.h"
#include "file/safetensors.h"

enum tn_pickle_kind {
    TN_PICKLE_NONE,
    TN_PICKLE_BOOL,
    TN_PICKLE_INT,
    TN_PICKLE_FLOAT,
    TN_PICKLE_STRING,
    TN_PICKLE_TUPLE,
    TN_PICKLE_LIST,
    TN_PICKLE_DICT, /* its items are keys and values in turn */
    TN_PICKLE_GLOBAL,
    TN_PICKLE_STORAGE,
    TN_PICKLE_TENSOR
};

enum {
    TN_PICKLE_BYTES = 1 << 26, /* at most */
    TN_PICKLE_NODES = 1 << 20, /* likewise */
    TN_PICKLE_END = -1         /* no item, no node */
};

/* A storage's numbers, by the key of the entry that has them. */
struct tn_pickle_storage {
    enum tn_dtype dtype;
    int key; /* a text */
    size_t count;
};

struct tn_pickle_tensor {
    int storage; /* a node */
    size_t offset;
    size_t rank, shape[TN_SAFETENSOR_RANK], stride[TN_SAFETENSOR_RANK]; /* in numbers */
};

struct tn_pickle_node {
    enum tn_pickle_kind kind;
    bool seen; /* for who walks */
    union {
        int64_t integer; /* also a bool */
        double number;
        struct {
            const char *at; /* in the pickle, not ended by a zero */
            size_t length;
        } text;
        struct {
            int first, last, count; /* items */
        } items;
        int global; /* a row of the table in pickle.c */
        struct tn_pickle_storage storage;
        int tensor; /* among the tensors */
    } as;
};

struct tn_pickle_item {
    int node, next;
};

struct tn_pickle {
    struct tn_pickle_node *nodes;
    struct tn_pickle_item *items;
    struct tn_pickle_tensor *tensors;
    int node_count, item_count, tensor_count;
    int root;
    size_t bytes; /* that it took, up to its STOP */
};

/* The bytes must stay as long as the pickle. `name` is the file, for messages. On failure *out
 * is empty. */
tarn_status tn_pickle_read(struct tn_pickle *out, const unsigned char *bytes, size_t size,
                           const char *name, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_pickle_free(struct tn_pickle *pickle);

/* The first item of a tuple, list or dict; items[].next leads on, to TN_PICKLE_END. */
int tn_pickle_first(const struct tn_pickle *pickle, int node);

bool tn_pickle_is_text(const struct tn_pickle *pickle, int node, const char *text);

#endif
