/* SPDX-License-Identifier: MIT */
/* pickle_machine.h - the inside of the machine that reads pickles: pickle.c has what is
 * Python's, pickle_torch.c what is PyTorch's. */
#ifndef TN_PICKLE_MACHINE_H
#define TN_PICKLE_MACHINE_H

#include <string.h>

#include "file/pickle.h"

enum { TN_MACHINE_MARK = -2 }; /* on the stack, beside nodes */

struct tn_machine {
    struct tn_pickle made;
    const unsigned char *bytes;
    size_t size, at; /* at: the next byte */
    size_t opcode;   /* where the running one stands */
    int *stack, *memo;
    int stack_count, memo_count;
    size_t node_room, item_room, tensor_room, stack_room, memo_room;
    bool stopped;
    const char *name;
    tarn_error *err;
};

/* ---- pickle_stack.c ------------------------------------------------------ */

tarn_status tn_machine_refuse(const struct tn_machine *m, const char *what);

/* Room for one more of `size` bytes behind `count` of them. */
tarn_status tn_machine_grow(const struct tn_machine *m, void **array, size_t *room, int count,
                            size_t size);
tarn_status tn_machine_push(struct tn_machine *m, int node);
tarn_status tn_machine_push_new(struct tn_machine *m, struct tn_pickle_node node);
tarn_status tn_machine_push_empty(struct tn_machine *m, enum tn_pickle_kind kind);
tarn_status tn_machine_append(struct tn_machine *m, int to, int node);

/* The node on top is taken; a mark is none. */
tarn_status tn_machine_pop(struct tn_machine *m, int *node);

/* The node on top, of a kind, stays. */
tarn_status tn_machine_top(struct tn_machine *m, int *node, enum tn_pickle_kind kind);

/* The place behind the last mark. */
tarn_status tn_machine_find_mark(struct tn_machine *m, int *from);
tarn_status tn_machine_take(struct tn_machine *m, const unsigned char **bytes, size_t count);

/* Little-endian, up to 8 bytes. */
tarn_status tn_machine_take_number(struct tn_machine *m, uint64_t *number, size_t count);

/* Up to a newline, which is taken, too. */
tarn_status tn_machine_take_line(struct tn_machine *m, const char **line, size_t *length);

static inline const struct tn_pickle_node *tn_machine_node(const struct tn_machine *m, int node)
{
    return &m->made.nodes[node];
}

static inline bool tn_machine_is(const struct tn_machine *m, int node, enum tn_pickle_kind kind)
{
    return node >= 0 && tn_machine_node(m, node)->kind == kind;
}

static inline bool tn_machine_equals(const char *text, const char *at, size_t length)
{
    return strlen(text) == length && memcmp(text, at, length) == 0;
}

/* ---- pickle_torch.c: opcodes -------------------------------------------- */

tarn_status tn_machine_global(struct tn_machine *m);
tarn_status tn_machine_storage(struct tn_machine *m);
tarn_status tn_machine_reduce(struct tn_machine *m);

#endif
