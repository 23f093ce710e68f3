/* SPDX-License-Identifier: MIT */
#include "support/guarded.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 256, GUARD_FLOATS = 48, GUARD_BYTE = 0xa5, ALIGN = 64 };

static const uint32_t guard_bits = 0x7fc0beef; /* a NaN that no arithmetic makes */

/* ---- Bytes -------------------------------------------------------------- */

struct block block_open(size_t size, size_t past, int fill)
{
    struct block block = {.past = past, .size = size};
    const size_t whole = tn_round_up(2 * GUARD_BYTES + past + size, ALIGN);

    block.memory = aligned_alloc(ALIGN, whole);
    assert_non_null(block.memory);
    memset(block.memory, GUARD_BYTE, whole);
    block.bytes = block.memory + GUARD_BYTES + past;
    memset(block.bytes, fill, size);
    return block;
}

void block_check(const struct block *block, const char *name)
{
    const unsigned char *const after = block->bytes + block->size;

    for (size_t i = 0; i < GUARD_BYTES + block->past; i++)
        if (block->memory[i] != GUARD_BYTE)
            fail_msg("%s: %zu bytes before its start were written", name,
                     GUARD_BYTES + block->past - i);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (after[i] != GUARD_BYTE)
            fail_msg("%s: %zu bytes past its end were written", name, i);
}

void block_close(struct block *block)
{
    free(block->memory);
    *block = (struct block){0};
}

/* ---- Arrays ------------------------------------------------------------- */

float *tensor_row(const struct tensor *t, size_t b, size_t n, size_t h)
{
    return t->data + (ptrdiff_t)b * t->batch + (ptrdiff_t)n * t->position +
           (ptrdiff_t)h * t->head;
}

float *tensor_row_at(const struct tensor *t, size_t r)
{
    return tensor_row(t, r / t->H / t->n, r / t->H % t->n, r % t->H);
}

size_t tensor_rows(const struct tensor *t)
{
    return t->B * t->n * t->H;
}

size_t tensor_count(const struct tensor *t)
{
    return tensor_rows(t) * t->width;
}

float *tensor_copy(const struct tensor *t)
{
    float *const copy = take(tensor_count(t), sizeof *copy);

    for (size_t r = 0; r < tensor_rows(t); r++)
        memcpy(copy + r * t->width, tensor_row_at(t, r), t->width * sizeof *copy);
    return copy;
}

static void set_strides(struct tensor *t, size_t batch, size_t position, size_t head)
{
    t->batch = (ptrdiff_t)batch;
    t->position = (ptrdiff_t)position;
    t->head = (ptrdiff_t)head;
}

/* Floats of a row of the matrix that tensor i is a slice of, and where in the row it lies. */
static size_t slice_row(const struct tensor *tensors, size_t count, size_t i, size_t *offset)
{
    size_t row = 0;

    for (size_t j = 0; j < count; j++) {
        if (j == i)
            *offset = row;
        if (tensors[j].n == tensors[i].n)
            row += tensors[j].H * tensors[j].width;
    }
    return row;
}

static bool first_slice(const struct tensor *tensors, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (tensors[j].n == tensors[i].n)
            return false;
    return true;
}

/* Strides of an array of its own; returns its floats. */
static size_t place_alone(struct tensor *t, enum layout layout)
{
    const size_t gap = layout == ODD_STRIDES ? 1 : 0;
    const size_t head = t->width + 3 * gap, position = t->H * head + 5 * gap;

    if (layout == HEADS_FIRST)
        set_strides(t, t->H * t->n * t->width, t->width, t->n * t->width);
    else
        set_strides(t, t->n * position + 7 * gap, position, head);
    return t->B * (size_t)t->batch;
}

static void turn_backwards(struct tensor *t)
{
    if (tensor_rows(t) == 0)
        return;
    t->data = tensor_row(t, 0, t->n - 1, t->H - 1);
    t->position = -t->position;
    t->head = -t->head;
}

/* Only (B, N, H, D) starts at a multiple of ALIGN: loops that want whole vectors and those that
 * do not both have to work.
 *
 * Strides, and `data` as an offset from `floats`; returns how many floats there are in all. */
static size_t place(struct tensor *tensors, size_t count, enum layout layout, size_t *offsets)
{
    const size_t guard = layout == POSITIONS_FIRST ? GUARD_FLOATS : GUARD_FLOATS - 11;
    size_t used = guard, group[2] = {0};

    for (size_t i = 0; i < count; i++) {
        struct tensor *const t = &tensors[i];
        size_t offset = 0;

        if (tensor_rows(t) == 0) {
            offsets[i] = used;
            continue;
        }
        if (layout != SLICES) {
            offsets[i] = used;
            used += place_alone(t, layout) + guard;
            continue;
        }
        const size_t row = slice_row(tensors, count, i, &offset);
        const size_t which = t->n == tensors[0].n ? 0 : 1; /* there are two lengths at most */

        if (first_slice(tensors, i)) {
            group[which] = used;
            used += t->B * t->n * row + guard;
        }
        set_strides(t, t->n * row, row, t->width);
        offsets[i] = group[which] + offset;
    }
    return used;
}

static void own(struct pool *pool, const struct tensor *t)
{
    for (size_t r = 0; r < tensor_rows(t); r++) {
        bool *const owned = pool->owned + (tensor_row_at(t, r) - pool->floats);

        for (size_t e = 0; e < t->width; e++) {
            assert_false(owned[e]);
            owned[e] = true;
        }
    }
}

struct pool pool_open(struct tensor *tensors, size_t count, enum layout layout)
{
    struct pool pool = {0};
    size_t offsets[ARRAYS_MAX];

    assert_true(count <= ARRAYS_MAX);
    pool.count = place(tensors, count, layout, offsets);
    pool.floats = aligned_alloc(ALIGN, tn_round_up(pool.count * sizeof(float), ALIGN));
    assert_non_null(pool.floats);
    pool.owned = take(pool.count, sizeof *pool.owned);
    for (size_t i = 0; i < pool.count; i++)
        memcpy(&pool.floats[i], &guard_bits, sizeof guard_bits);
    for (size_t i = 0; i < count; i++) {
        tensors[i].data = pool.floats + offsets[i];
        if (layout == BACKWARDS)
            turn_backwards(&tensors[i]);
        own(&pool, &tensors[i]);
    }
    return pool;
}

void pool_check(const struct pool *pool, const char *name)
{
    for (size_t i = 0; i < pool->count; i++)
        if (!pool->owned[i] && memcmp(&pool->floats[i], &guard_bits, sizeof guard_bits) != 0)
            fail_msg("%s: a float that belongs to no array was written", name);
}

void pool_close(struct pool *pool)
{
    free(pool->floats);
    free(pool->owned);
    *pool = (struct pool){0};
}
