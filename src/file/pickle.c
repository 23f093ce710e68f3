/* SPDX-License-Identifier: MIT */
/* pickle.c - the machine: a row per opcode. */
#include "file/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- Numbers and texts -------------------------------------------------- */

static tarn_status push_whole(struct tn_machine *m, int64_t whole)
{
    return tn_machine_push_new(
        m, (struct tn_pickle_node){.kind = TN_PICKLE_WHOLE, .as.whole = whole});
}

static tarn_status op_proto(struct tn_machine *m)
{
    uint64_t version;
    const tarn_status status = tn_machine_take_number(m, &version, 1);

    if (status == TARN_OK && version != 2)
        return tn_fail(m->err, TARN_EFORMAT,
                       "%s: pickle of protocol %ju; expected 2, as torch.save() writes",
                       tn_path_shown(m->name), (uintmax_t)version);
    return status;
}

static tarn_status op_none(struct tn_machine *m)
{
    return tn_machine_push_new(m, (struct tn_pickle_node){.kind = TN_PICKLE_NONE});
}

static tarn_status op_true(struct tn_machine *m)
{
    return tn_machine_push_new(m,
                               (struct tn_pickle_node){.kind = TN_PICKLE_BOOL, .as.whole = 1});
}

static tarn_status op_false(struct tn_machine *m)
{
    return tn_machine_push_new(m,
                               (struct tn_pickle_node){.kind = TN_PICKLE_BOOL, .as.whole = 0});
}

static tarn_status op_binint(struct tn_machine *m)
{
    uint64_t number;
    const tarn_status status = tn_machine_take_number(m, &number, 4);

    return status == TARN_OK ? push_whole(m, (int64_t)(int32_t)(uint32_t)number) : status;
}

static tarn_status op_binint1(struct tn_machine *m)
{
    uint64_t number;
    const tarn_status status = tn_machine_take_number(m, &number, 1);

    return status == TARN_OK ? push_whole(m, (int64_t)number) : status;
}

static tarn_status op_binint2(struct tn_machine *m)
{
    uint64_t number;
    const tarn_status status = tn_machine_take_number(m, &number, 2);

    return status == TARN_OK ? push_whole(m, (int64_t)number) : status;
}

/* Two's complement of any length; none stands for 0. */
static tarn_status op_long1(struct tn_machine *m)
{
    uint64_t count, number = 0;
    tarn_status status = tn_machine_take_number(m, &count, 1);

    if (status == TARN_OK && count > 8)
        return tn_machine_refuse(m, "integer of more than 64 bits");
    if (status == TARN_OK)
        status = tn_machine_take_number(m, &number, (size_t)count);
    if (status != TARN_OK)
        return status;
    if (count > 0 && count < 8 && number >> (8 * count - 1))
        number |= UINT64_MAX << (8 * count);
    return push_whole(m, (int64_t)number);
}

/* Big-endian, alone of all. */
static tarn_status op_binfloat(struct tn_machine *m)
{
    const unsigned char *bytes;
    const tarn_status status = tn_machine_take(m, &bytes, 8);
    uint64_t bits = 0;
    double number;

    if (status != TARN_OK)
        return status;
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&number, &bits, sizeof number);
    return tn_machine_push_new(
        m, (struct tn_pickle_node){.kind = TN_PICKLE_NUMBER, .as.number = number});
}

static tarn_status op_binunicode(struct tn_machine *m)
{
    const unsigned char *bytes;
    uint64_t length;
    tarn_status status = tn_machine_take_number(m, &length, 4);

    if (status != TARN_OK || (status = tn_machine_take(m, &bytes, (size_t)length)) != TARN_OK)
        return status;
    return tn_machine_push_new(m, (struct tn_pickle_node){
                                      .kind = TN_PICKLE_TEXT,
                                      .as.text = {(const char *)bytes, (size_t)length},
                                  });
}

/* ---- Memo --------------------------------------------------------------- */

/* Python numbers what it keeps from 0 on: another number would only ask for memory. */
static tarn_status keep(struct tn_machine *m, uint64_t index)
{
    const int node = m->stack_count > 0 ? m->stack[m->stack_count - 1] : TN_MACHINE_MARK;
    void *memo = m->memo;
    tarn_status status;

    if (node == TN_MACHINE_MARK)
        return tn_machine_refuse(m, "memoizes from an empty stack");
    if (index > (uint64_t)m->memo_count)
        return tn_machine_refuse(m, "memoizes values out of order");
    if (index < (uint64_t)m->memo_count) {
        m->memo[index] = node;
        return TARN_OK;
    }
    status = tn_machine_grow(m, &memo, &m->memo_room, m->memo_count, sizeof *m->memo);
    m->memo = memo;
    if (status == TARN_OK)
        m->memo[m->memo_count++] = node;
    return status;
}

static tarn_status recall(struct tn_machine *m, uint64_t index)
{
    if (index >= (uint64_t)m->memo_count)
        return tn_machine_refuse(m, "reads a memo entry that was not written");
    return tn_machine_push(m, m->memo[index]);
}

/* A place in the memo, of so many bytes, and what is done with it. */
static tarn_status with_place(struct tn_machine *m, size_t bytes,
                              tarn_status (*use)(struct tn_machine *m, uint64_t index))
{
    uint64_t index;
    const tarn_status status = tn_machine_take_number(m, &index, bytes);

    return status == TARN_OK ? use(m, index) : status;
}

static tarn_status op_binput(struct tn_machine *m)
{
    return with_place(m, 1, keep);
}

static tarn_status op_long_binput(struct tn_machine *m)
{
    return with_place(m, 4, keep);
}

static tarn_status op_binget(struct tn_machine *m)
{
    return with_place(m, 1, recall);
}

static tarn_status op_long_binget(struct tn_machine *m)
{
    return with_place(m, 4, recall);
}

/* ---- Tuples, lists, dicts ----------------------------------------------- */

static tarn_status op_mark(struct tn_machine *m)
{
    return tn_machine_push(m, TN_MACHINE_MARK);
}

static tarn_status op_empty_tuple(struct tn_machine *m)
{
    return tn_machine_push_empty(m, TN_PICKLE_TUPLE);
}

static tarn_status op_empty_list(struct tn_machine *m)
{
    return tn_machine_push_empty(m, TN_PICKLE_LIST);
}

static tarn_status op_empty_dict(struct tn_machine *m)
{
    return tn_machine_push_empty(m, TN_PICKLE_DICT);
}

/* stack[from] and what is above it become a tuple in place `into`. */
static tarn_status tuple_of(struct tn_machine *m, int from, int into)
{
    const int count = m->stack_count - from;
    tarn_status status = tn_machine_push_empty(m, TN_PICKLE_TUPLE);
    const int tuple = m->made.node_count - 1;

    for (int i = 0; i < count && status == TARN_OK; i++)
        status = tn_machine_append(m, tuple, m->stack[from + i]);
    if (status == TARN_OK) {
        m->stack[into] = tuple;
        m->stack_count = into + 1;
    }
    return status;
}

static tarn_status op_tuple(struct tn_machine *m)
{
    int from = 0;
    const tarn_status status = tn_machine_find_mark(m, &from);

    return status == TARN_OK ? tuple_of(m, from, from - 1) : status;
}

static tarn_status tuple_of_few(struct tn_machine *m, int count)
{
    if (m->stack_count < count)
        return tn_machine_refuse(m, "pops from an empty stack");
    for (int i = 1; i <= count; i++)
        if (m->stack[m->stack_count - i] == TN_MACHINE_MARK)
            return tn_machine_refuse(m, "pops from an empty stack");
    return tuple_of(m, m->stack_count - count, m->stack_count - count);
}

static tarn_status op_tuple1(struct tn_machine *m)
{
    return tuple_of_few(m, 1);
}

static tarn_status op_tuple2(struct tn_machine *m)
{
    return tuple_of_few(m, 2);
}

static tarn_status op_tuple3(struct tn_machine *m)
{
    return tuple_of_few(m, 3);
}

static tarn_status op_append(struct tn_machine *m)
{
    int value = 0, list = 0;
    tarn_status status;

    if ((status = tn_machine_pop(m, &value)) != TARN_OK ||
        (status = tn_machine_top(m, &list, TN_PICKLE_LIST)) != TARN_OK)
        return status;
    return tn_machine_append(m, list, value);
}

/* What is above the mark goes into the list or dict below it. */
static tarn_status append_marked(struct tn_machine *m, enum tn_pickle_kind kind, int multiple)
{
    int from = 0;
    tarn_status status = tn_machine_find_mark(m, &from);

    if (status != TARN_OK)
        return status;
    const int count = m->stack_count - from;
    const int into = from >= 2 ? m->stack[from - 2] : TN_MACHINE_MARK;

    if (!tn_machine_is(m, into, kind))
        return tn_machine_refuse(m,
                                 "adds items to something that is neither a list nor a dict");
    if (count % multiple != 0)
        return tn_machine_refuse(m, "adds a key without a value to a dict");
    for (int i = 0; i < count && status == TARN_OK; i++)
        status = tn_machine_append(m, into, m->stack[from + i]);
    m->stack_count = from - 1;
    return status;
}

static tarn_status op_appends(struct tn_machine *m)
{
    return append_marked(m, TN_PICKLE_LIST, 1);
}

static tarn_status op_setitems(struct tn_machine *m)
{
    return append_marked(m, TN_PICKLE_DICT, 2);
}

static tarn_status op_setitem(struct tn_machine *m)
{
    int key = 0, value = 0, dict = 0;
    tarn_status status;

    if ((status = tn_machine_pop(m, &value)) != TARN_OK ||
        (status = tn_machine_pop(m, &key)) != TARN_OK ||
        (status = tn_machine_top(m, &dict, TN_PICKLE_DICT)) != TARN_OK ||
        (status = tn_machine_append(m, dict, key)) != TARN_OK)
        return status;
    return tn_machine_append(m, dict, value);
}

/* A dict's attributes: torch keeps versions of modules there, which change no number. */
static tarn_status op_build(struct tn_machine *m)
{
    int attributes = 0, dict = 0;
    const tarn_status status = tn_machine_pop(m, &attributes);

    return status == TARN_OK ? tn_machine_top(m, &dict, TN_PICKLE_DICT) : status;
}

static tarn_status op_stop(struct tn_machine *m)
{
    const tarn_status status = tn_machine_pop(m, &m->made.root);

    if (status == TARN_OK && m->stack_count != 0)
        return tn_machine_refuse(m, "ends with more than one value on the stack");
    m->stopped = true;
    return status;
}

/* ---- The machine -------------------------------------------------------- */

typedef tarn_status operation(struct tn_machine *m);

static operation *const operations[256] = {
    [0x80] = op_proto,
    ['.'] = op_stop,
    ['N'] = op_none,
    [0x88] = op_true,
    [0x89] = op_false,
    ['J'] = op_binint,
    ['K'] = op_binint1,
    ['M'] = op_binint2,
    [0x8a] = op_long1,
    ['G'] = op_binfloat,
    ['X'] = op_binunicode,
    ['q'] = op_binput,
    ['r'] = op_long_binput,
    ['h'] = op_binget,
    ['j'] = op_long_binget,
    ['('] = op_mark,
    [')'] = op_empty_tuple,
    ['t'] = op_tuple,
    [0x85] = op_tuple1,
    [0x86] = op_tuple2,
    [0x87] = op_tuple3,
    [']'] = op_empty_list,
    ['a'] = op_append,
    ['e'] = op_appends,
    ['}'] = op_empty_dict,
    ['s'] = op_setitem,
    ['u'] = op_setitems,
    ['c'] = tn_machine_global,
    ['R'] = tn_machine_reduce,
    ['b'] = op_build,
    ['Q'] = tn_machine_storage,
};

static tarn_status step(struct tn_machine *m)
{
    const unsigned char *opcode;
    tarn_status status;

    m->opcode = m->at;
    if ((status = tn_machine_take(m, &opcode, 1)) != TARN_OK)
        return status;
    if (operations[*opcode])
        return operations[*opcode](m);
    return tn_fail(
        m->err, TARN_EFORMAT,
        "%s: pickle, byte %zu: opcode 0x%02x is not supported; expected a plain state dict",
        tn_path_shown(m->name), m->opcode, *opcode);
}

tarn_status tn_pickle_read(struct tn_pickle *out, const unsigned char *bytes, size_t size,
                           const char *name, tarn_error *err)
{
    struct tn_machine m = {.bytes = bytes, .size = size, .name = name, .err = err};
    tarn_status status = TARN_OK;

    *out = (struct tn_pickle){0};
    while (status == TARN_OK && !m.stopped)
        status = step(&m);
    m.made.bytes = m.at;
    free(m.stack);
    free(m.memo);
    if (status == TARN_OK)
        *out = m.made;
    else
        tn_pickle_free(&m.made);
    return status;
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
    if (node < 0 || pickle->nodes[node].kind != TN_PICKLE_TEXT)
        return false;
    return tn_machine_equals(text, pickle->nodes[node].as.text.at,
                             pickle->nodes[node].as.text.length);
}
