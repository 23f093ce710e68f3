/* SPDX-License-Identifier: MIT */
/* pickle_machine.h - the stack machine that reads pickles: pickle.c has the opcodes of Python,
 * pickle_torch.c what PyTorch's pickles call.
 *
 * The first failure stays in `status`. Whatever runs after it reads zeros, pops TN_PICKLE_END
 * and pushes nothing, so that an opcode needs no checks between its steps. */
#ifndef TN_PICKLE_MACHINE_H
#define TN_PICKLE_MACHINE_H

#include <string.h>

#include "file/cursor.h"
#include "file/pickle.h"

enum { TN_MACHINE_MARK = -2 }; /* on the stack, beside nodes */

struct tn_machine {
    struct tn_pickle made;
    struct tn_cursor in;
    size_t opcode; /* offset of the current one */
    int *stack, *memo;
    int stack_count, memo_count;
    size_t node_room, item_room, tensor_room, stack_room, memo_room;
    bool stopped;
    const char *name;
    tarn_status status;
    tarn_error *err;
};

/* Unless something failed before. */
void tn_machine_refuse(struct tn_machine *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The array with room for one more of `size` bytes after `count` of them. */
void *tn_machine_grow(struct tn_machine *m, void *array, size_t *room, int count, size_t size);

void tn_machine_push(struct tn_machine *m, int node);
void tn_machine_push_new(struct tn_machine *m, struct tn_pickle_node node);
void tn_machine_push_empty(struct tn_machine *m, int kind);

/* The node on top of the stack; a mark is not a node. */
int tn_machine_pop(struct tn_machine *m);

/* Up to a newline, which is read, too. */
const char *tn_machine_read_line(struct tn_machine *m, size_t *length);

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

/* Opcodes of pickle_torch.c. */
void tn_machine_global(struct tn_machine *m, int unused);
void tn_machine_storage(struct tn_machine *m, int unused);
void tn_machine_reduce(struct tn_machine *m, int unused);

#endif
