/* SPDX-License-Identifier: MIT */
/* position_concat.c - the authors': half a row is the embedding, the other half the
 * sinusoid. */
#include <string.h>

#include "layer/position.h"

static size_t half(size_t F)
{
    return F / 2;
}

struct call {
    const struct tn_rows *r;
    float *y; /* behind the embedding */
    size_t ldy;
    const float *table;
    size_t width, n;
};

static void apply_block(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const size_t block = tn_rows_block(call->r), from = index * block;
    const size_t to = tn_min(call->r->rows, from + block);

    (void)thread;
    for (size_t i = from; i < to; i++)
        memcpy(call->y + i * call->ldy, call->table + i % call->n * call->width,
               call->width * sizeof(float));
}

static void apply(const struct tn_position *position, const struct tn_rows *r, float *y,
                  size_t ldy, const float *table, size_t n)
{
    tn_parallel(r->threads, tn_blocks(r->rows, tn_rows_block(r)), apply_block,
                &(struct call){r, y + position->embedding, ldy, table, position->table, n});
}

extern const struct tn_position_row tn_pos_concat;
const struct tn_position_row tn_pos_concat = {
    .about = {"concat", "half embedding, half sinusoidal encoding, concatenated",
              (const tarn_option_info[]){{0}}},
    .divisor = 4,
    .embedding = half,
    .table = half,
    .fill = tn_position_sinusoid,
    .apply = apply,
};
