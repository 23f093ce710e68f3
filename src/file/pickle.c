/* SPDX-License-Identifier: MIT */
/* pickle.c - the stack machine: its memory, and a row for each opcode. */
#include "file/pickle_machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tn_machine_refuse(struct tn_machine *m, const char *format, ...)
{
    char what[sizeof m->err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (m->status == TARN_OK)
        m->status = tn_fail_path(m->err, TARN_EFORMAT, m->name, "pickle, byte %zu: %s",
                                 m->opcode, what);
}

/* ---- Nodes -------------------------------------------------------------- */

void *tn_machine_grow(struct tn_machine *m, void *array, size_t *room, int count, size_t size)
{
    if (count >= TN_PICKLE_NODES)
        tn_machine_refuse(m, "has more than %d values", TN_PICKLE_NODES);
    if (m->status != TARN_OK)
        return array;
    void *const grown = tn_grow(array, room, (size_t)count, size);

    if (!grown)
        m->status = tn_fail_path(m->err, TARN_ENOMEM, m->name,
                                 "not enough memory for %d pickle values", count);
    return grown ? grown : array;
}

void tn_machine_push(struct tn_machine *m, int node)
{
    m->stack = tn_machine_grow(m, m->stack, &m->stack_room, m->stack_count, sizeof *m->stack);
    if (m->status == TARN_OK)
        m->stack[m->stack_count++] = node;
}

void tn_machine_push_new(struct tn_machine *m, struct tn_pickle_node node)
{
    struct tn_pickle *const made = &m->made;

    made->nodes =
        tn_machine_grow(m, made->nodes, &m->node_room, made->node_count, sizeof *made->nodes);
    if (m->status == TARN_OK) {
        made->nodes[made->node_count] = node;
        tn_machine_push(m, made->node_count++);
    }
}

void tn_machine_push_empty(struct tn_machine *m, int kind)
{
    tn_machine_push_new(m, (struct tn_pickle_node){
                               .kind = (enum tn_pickle_kind)kind,
                               .as.items = {TN_PICKLE_END, TN_PICKLE_END, 0},
                           });
}

static void append(struct tn_machine *m, int to, int node)
{
    struct tn_pickle *const made = &m->made;

    made->items =
        tn_machine_grow(m, made->items, &m->item_room, made->item_count, sizeof *made->items);
    if (m->status != TARN_OK)
        return;
    struct tn_pickle_node *const into = &made->nodes[to];
    const int item = made->item_count++;

    made->items[item] = (struct tn_pickle_item){node, TN_PICKLE_END};
    if (into->as.items.count++ == 0)
        into->as.items.first = item;
    else
        made->items[into->as.items.last].next = item;
    into->as.items.last = item;
}

/* ---- Stack -------------------------------------------------------------- */

/* TN_MACHINE_MARK: it is empty, too. */
static int top(const struct tn_machine *m)
{
    return m->stack_count > 0 ? m->stack[m->stack_count - 1] : TN_MACHINE_MARK;
}

int tn_machine_pop(struct tn_machine *m)
{
    const int node = top(m);

    if (node == TN_MACHINE_MARK)
        tn_machine_refuse(m, "pops from an empty stack");
    if (m->status != TARN_OK)
        return TN_PICKLE_END;
    m->stack_count--;
    return node;
}

/* The node on top, which stays. */
static int top_of_kind(struct tn_machine *m, enum tn_pickle_kind kind)
{
    if (!tn_machine_is(m, top(m), kind))
        tn_machine_refuse(m, "operand has the wrong type");
    return top(m);
}

/* The place after the last mark. */
static int find_mark(struct tn_machine *m)
{
    for (int from = m->stack_count; from > 0; from--)
        if (m->stack[from - 1] == TN_MACHINE_MARK)
            return from;
    tn_machine_refuse(m, "refers to a mark that was not set");
    return 0;
}

/* ---- Bytes -------------------------------------------------------------- */

static const unsigned char *take(struct tn_machine *m, size_t bytes)
{
    const unsigned char *const from = tn_cursor_read(&m->in, bytes);

    if (!from)
        tn_machine_refuse(m, "needs %zu more bytes, but %zu are left", bytes,
                          tn_cursor_left(&m->in));
    return from;
}

static uint64_t take_number(struct tn_machine *m, size_t bytes)
{
    if (bytes > tn_cursor_left(&m->in))
        take(m, bytes);
    return tn_cursor_number(&m->in, bytes);
}

const char *tn_machine_read_line(struct tn_machine *m, size_t *length)
{
    const char *const from = (const char *)m->in.data + m->in.at;
    const char *const end = memchr(from, '\n', tn_min(tn_cursor_left(&m->in), 256));

    *length = end ? (size_t)(end - from) : 0;
    if (!end)
        tn_machine_refuse(m, "global name is not terminated");
    else
        tn_cursor_read(&m->in, *length + 1);
    return from;
}

/* ---- Opcodes: numbers and strings --------------------------------------- */

static void check_protocol(struct tn_machine *m, int unused)
{
    const uint64_t version = take_number(m, 1);

    (void)unused;
    if (version != 2)
        tn_machine_refuse(m, "has protocol %ju; expected 2, as torch.save() writes",
                          (uintmax_t)version);
}

static void push_bool(struct tn_machine *m, int value)
{
    tn_machine_push_new(m,
                        (struct tn_pickle_node){.kind = TN_PICKLE_BOOL, .as.integer = value});
}

static void push_integer(struct tn_machine *m, uint64_t value)
{
    tn_machine_push_new(
        m, (struct tn_pickle_node){.kind = TN_PICKLE_INT, .as.integer = (int64_t)value});
}

static void push_unsigned(struct tn_machine *m, int bytes)
{
    push_integer(m, take_number(m, (size_t)bytes));
}

/* Two's complement; no bytes are 0. */
static void push_signed(struct tn_machine *m, int bytes)
{
    uint64_t number = take_number(m, (size_t)bytes);

    if (bytes > 0 && bytes < 8 && number >> (8 * bytes - 1))
        number |= UINT64_MAX << (8 * bytes);
    push_integer(m, number);
}

static void push_long(struct tn_machine *m, int unused)
{
    const int bytes = (int)take_number(m, 1);

    (void)unused;
    if (bytes > 8)
        tn_machine_refuse(m, "integer of more than 64 bits");
    else
        push_signed(m, bytes);
}

/* The only big-endian number. */
static void push_float(struct tn_machine *m, int unused)
{
    const unsigned char *const bytes = take(m, 8);
    uint64_t bits = 0;
    double number;

    (void)unused;
    for (size_t i = 0; bytes && i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&number, &bits, sizeof number);
    tn_machine_push_new(m,
                        (struct tn_pickle_node){.kind = TN_PICKLE_FLOAT, .as.number = number});
}

static void push_string(struct tn_machine *m, int unused)
{
    const size_t length = (size_t)take_number(m, 4);
    const char *const bytes = (const char *)take(m, length);

    (void)unused;
    tn_machine_push_new(
        m, (struct tn_pickle_node){.kind = TN_PICKLE_STRING, .as.text = {bytes, length}});
}

/* ---- Opcodes: the memo -------------------------------------------------- */

/* Python numbers its entries from 0: another index would only ask for memory. */
static void put_memo(struct tn_machine *m, int bytes)
{
    const uint64_t index = take_number(m, (size_t)bytes);

    if (top(m) == TN_MACHINE_MARK)
        tn_machine_refuse(m, "memoizes from an empty stack");
    if (index > (uint64_t)m->memo_count)
        tn_machine_refuse(m, "memoizes values out of order");
    if (index == (uint64_t)m->memo_count)
        m->memo = tn_machine_grow(m, m->memo, &m->memo_room, m->memo_count, sizeof *m->memo);
    if (m->status != TARN_OK)
        return;
    m->memo_count += index == (uint64_t)m->memo_count;
    m->memo[index] = top(m);
}

static void get_memo(struct tn_machine *m, int bytes)
{
    const uint64_t index = take_number(m, (size_t)bytes);

    if (index >= (uint64_t)m->memo_count)
        tn_machine_refuse(m, "reads a memo entry that was not written");
    else
        tn_machine_push(m, m->memo[index]);
}

/* ---- Opcodes: tuples, lists, dicts -------------------------------------- */

/* stack[from] and what is above it become a tuple in place `into`. */
static void make_tuple(struct tn_machine *m, int from, int into)
{
    const int count = m->stack_count - from;

    tn_machine_push_empty(m, TN_PICKLE_TUPLE);
    const int tuple = m->made.node_count - 1;

    for (int i = 0; i < count && m->status == TARN_OK; i++)
        append(m, tuple, m->stack[from + i]);
    if (m->status == TARN_OK) {
        m->stack[into] = tuple;
        m->stack_count = into + 1;
    }
}

static void push_marked_tuple(struct tn_machine *m, int unused)
{
    const int from = find_mark(m);

    (void)unused;
    if (m->status == TARN_OK)
        make_tuple(m, from, from - 1);
}

static void push_tuple(struct tn_machine *m, int count)
{
    for (int i = 1; i <= count; i++)
        if (i > m->stack_count || m->stack[m->stack_count - i] == TN_MACHINE_MARK)
            tn_machine_refuse(m, "pops from an empty stack");
    if (m->status == TARN_OK)
        make_tuple(m, m->stack_count - count, m->stack_count - count);
}

static void append_item(struct tn_machine *m, int unused)
{
    const int value = tn_machine_pop(m), list = top_of_kind(m, TN_PICKLE_LIST);

    (void)unused;
    append(m, list, value);
}

/* What is above the mark goes into the list or dict below it. */
static void append_marked(struct tn_machine *m, int kind)
{
    const int from = find_mark(m), count = m->stack_count - from;
    const int into = from >= 2 ? m->stack[from - 2] : TN_MACHINE_MARK;

    if (!tn_machine_is(m, into, (enum tn_pickle_kind)kind))
        tn_machine_refuse(m, "adds items to something that is neither a list nor a dict");
    if (kind == TN_PICKLE_DICT && count % 2 != 0)
        tn_machine_refuse(m, "adds a key without a value to a dict");
    for (int i = 0; i < count && m->status == TARN_OK; i++)
        append(m, into, m->stack[from + i]);
    if (m->status == TARN_OK)
        m->stack_count = from - 1;
}

static void set_item(struct tn_machine *m, int unused)
{
    const int value = tn_machine_pop(m), key = tn_machine_pop(m);
    const int dict = top_of_kind(m, TN_PICKLE_DICT);

    (void)unused;
    append(m, dict, key);
    append(m, dict, value);
}

/* A dict's attributes: torch keeps versions of modules there, which change no number. */
static void drop_attributes(struct tn_machine *m, int unused)
{
    (void)unused;
    tn_machine_pop(m);
    top_of_kind(m, TN_PICKLE_DICT);
}

static void stop(struct tn_machine *m, int unused)
{
    (void)unused;
    m->made.root = tn_machine_pop(m);
    if (m->stack_count != 0)
        tn_machine_refuse(m, "ends with more than one value on the stack");
    m->stopped = true;
}

/* ---- The machine -------------------------------------------------------- */

static const struct {
    void (*run)(struct tn_machine *m, int argument);
    int argument;
} opcodes[256] = {
    [0x80] = {check_protocol, 0},
    ['.'] = {stop, 0},
    ['N'] = {tn_machine_push_empty, TN_PICKLE_NONE},
    [0x88] = {push_bool, true},
    [0x89] = {push_bool, false},
    ['J'] = {push_signed, 4},
    ['K'] = {push_unsigned, 1},
    ['M'] = {push_unsigned, 2},
    [0x8a] = {push_long, 0},
    ['G'] = {push_float, 0},
    ['X'] = {push_string, 0},
    ['q'] = {put_memo, 1},
    ['r'] = {put_memo, 4},
    ['h'] = {get_memo, 1},
    ['j'] = {get_memo, 4},
    ['('] = {tn_machine_push, TN_MACHINE_MARK},
    [')'] = {tn_machine_push_empty, TN_PICKLE_TUPLE},
    ['t'] = {push_marked_tuple, 0},
    [0x85] = {push_tuple, 1},
    [0x86] = {push_tuple, 2},
    [0x87] = {push_tuple, 3},
    [']'] = {tn_machine_push_empty, TN_PICKLE_LIST},
    ['a'] = {append_item, 0},
    ['e'] = {append_marked, TN_PICKLE_LIST},
    ['}'] = {tn_machine_push_empty, TN_PICKLE_DICT},
    ['s'] = {set_item, 0},
    ['u'] = {append_marked, TN_PICKLE_DICT},
    ['c'] = {tn_machine_global, 0},
    ['R'] = {tn_machine_reduce, 0},
    ['b'] = {drop_attributes, 0},
    ['Q'] = {tn_machine_storage, 0},
};

static void step(struct tn_machine *m)
{
    m->opcode = m->in.at;
    const unsigned opcode = (unsigned)take_number(m, 1);

    if (m->status == TARN_OK && opcodes[opcode].run)
        opcodes[opcode].run(m, opcodes[opcode].argument);
    else
        tn_machine_refuse(m, "opcode 0x%02x is not supported; expected a plain state dict",
                          opcode);
}

tarn_status tn_pickle_read(struct tn_pickle *out, const unsigned char *bytes, size_t size,
                           const char *name, tarn_error *err)
{
    struct tn_machine m = {.in = {.data = bytes, .size = size}, .name = name, .err = err};

    *out = (struct tn_pickle){0};
    while (m.status == TARN_OK && !m.stopped)
        step(&m);
    m.made.bytes = m.in.at;
    free(m.stack);
    free(m.memo);
    if (m.status == TARN_OK)
        *out = m.made;
    else
        tn_pickle_free(&m.made);
    return m.status;
}

void tn_pickle_free(struct tn_pickle *pickle)
{
    free(pickle->nodes);
    free(pickle->items);
    free(pickle->tensors);
    *pickle = (struct tn_pickle){0};
}

int tn_pickle_first(const struct tn_pickle *pickle, int node)
{
    const enum tn_pickle_kind kind = pickle->nodes[node].kind;

    return kind == TN_PICKLE_TUPLE || kind == TN_PICKLE_LIST || kind == TN_PICKLE_DICT
               ? pickle->nodes[node].as.items.first
               : TN_PICKLE_END;
}

bool tn_pickle_is_text(const struct tn_pickle *pickle, int node, const char *text)
{
    if (node < 0 || pickle->nodes[node].kind != TN_PICKLE_STRING)
        return false;
    return tn_machine_equals(text, pickle->nodes[node].as.text.at,
                             pickle->nodes[node].as.text.length);
}
