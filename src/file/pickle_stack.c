/* SPDX-License-Identifier: MIT */
/* pickle_stack.c - what the machine works with: nodes, its stack, and the bytes it reads. */
#include <stdlib.h>

#include "file/pickle_machine.h"

tarn_status tn_machine_refuse(const struct tn_machine *m, const char *what)
{
    return tn_fail(m->err, TARN_EFORMAT, "%s: pickle, byte %zu: %s", tn_path_shown(m->name),
                   m->opcode, what);
}

/* ---- Memory ------------------------------------------------------------- */

/* Room for one more of `size` bytes behind `count` of them. */
tarn_status tn_machine_grow(const struct tn_machine *m, void **array, size_t *room, int count,
                            size_t size)
{
    if ((size_t)count < *room)
        return TARN_OK;
    if (count >= TN_PICKLE_NODES)
        return tn_fail(m->err, TARN_EFORMAT, "%s: pickle, byte %zu: has more than %d values",
                       tn_path_shown(m->name), m->opcode, TN_PICKLE_NODES);
    const size_t more = tn_max(64, 2 * *room);
    void *const grown = realloc(*array, more * size);

    if (!grown)
        return tn_fail(m->err, TARN_ENOMEM, "%s: not enough memory for %zu pickle values",
                       tn_path_shown(m->name), more);
    *array = grown;
    *room = more;
    return TARN_OK;
}

tarn_status tn_machine_push(struct tn_machine *m, int node)
{
    void *stack = m->stack;
    const tarn_status status =
        tn_machine_grow(m, &stack, &m->stack_room, m->stack_count, sizeof *m->stack);

    m->stack = stack;
    if (status == TARN_OK)
        m->stack[m->stack_count++] = node;
    return status;
}

tarn_status tn_machine_push_new(struct tn_machine *m, struct tn_pickle_node node)
{
    void *nodes = m->made.nodes;
    const tarn_status status =
        tn_machine_grow(m, &nodes, &m->node_room, m->made.node_count, sizeof *m->made.nodes);

    m->made.nodes = nodes;
    if (status != TARN_OK)
        return status;
    m->made.nodes[m->made.node_count] = node;
    return tn_machine_push(m, m->made.node_count++);
}

tarn_status tn_machine_push_empty(struct tn_machine *m, enum tn_pickle_kind kind)
{
    return tn_machine_push_new(
        m,
        (struct tn_pickle_node){.kind = kind, .as.items = {TN_PICKLE_END, TN_PICKLE_END, 0}});
}

tarn_status tn_machine_append(struct tn_machine *m, int to, int node)
{
    void *items = m->made.items;
    const tarn_status status =
        tn_machine_grow(m, &items, &m->item_room, m->made.item_count, sizeof *m->made.items);

    m->made.items = items;
    if (status != TARN_OK)
        return status;
    struct tn_pickle_node *const into = &m->made.nodes[to];
    const int item = m->made.item_count++;

    m->made.items[item] = (struct tn_pickle_item){node, TN_PICKLE_END};
    if (into->as.items.count++ == 0)
        into->as.items.first = item;
    else
        m->made.items[into->as.items.last].next = item;
    into->as.items.last = item;
    return TARN_OK;
}

/* ---- Stack -------------------------------------------------------------- */

/* The node on top is taken; a mark is none. */
tarn_status tn_machine_pop(struct tn_machine *m, int *node)
{
    if (m->stack_count == 0 || m->stack[m->stack_count - 1] == TN_MACHINE_MARK)
        return tn_machine_refuse(m, "pops from an empty stack");
    *node = m->stack[--m->stack_count];
    return TARN_OK;
}

/* The node on top, of a kind, stays. */
tarn_status tn_machine_top(struct tn_machine *m, int *node, enum tn_pickle_kind kind)
{
    const int found = m->stack_count > 0 ? m->stack[m->stack_count - 1] : TN_MACHINE_MARK;

    if (!tn_machine_is(m, found, kind))
        return tn_machine_refuse(m, "operand has the wrong type");
    *node = found;
    return TARN_OK;
}

/* The place behind the last mark. */
tarn_status tn_machine_find_mark(struct tn_machine *m, int *from)
{
    for (*from = m->stack_count; *from > 0; --*from)
        if (m->stack[*from - 1] == TN_MACHINE_MARK)
            return TARN_OK;
    return tn_machine_refuse(m, "refers to a mark that was not set");
}

/* ---- Bytes -------------------------------------------------------------- */

tarn_status tn_machine_take(struct tn_machine *m, const unsigned char **bytes, size_t count)
{
    *bytes = m->bytes + m->at;
    if (count > m->size - m->at)
        return tn_fail(m->err, TARN_EFORMAT,
                       "%s: pickle, byte %zu: needs %zu more bytes, but %zu are left",
                       tn_path_shown(m->name), m->opcode, count, m->size - m->at);
    m->at += count;
    return TARN_OK;
}

/* Little-endian, up to 8 bytes. */
tarn_status tn_machine_take_number(struct tn_machine *m, uint64_t *number, size_t count)
{
    const unsigned char *bytes;
    const tarn_status status = tn_machine_take(m, &bytes, count);

    *number = 0;
    for (size_t i = count; status == TARN_OK && i-- > 0;)
        *number = *number << 8 | bytes[i];
    return status;
}

/* Up to a newline, which is taken, too. */
tarn_status tn_machine_take_line(struct tn_machine *m, const char **line, size_t *length)
{
    const unsigned char *const from = m->bytes + m->at;
    const unsigned char *const end = memchr(from, '\n', tn_min(m->size - m->at, 256));

    *line = (const char *)from;
    *length = end ? (size_t)(end - from) : 0;
    if (!end)
        return tn_machine_refuse(m, "global name is not terminated");
    m->at += *length + 1;
    return TARN_OK;
}
