/* SPDX-License-Identifier: MIT */
/* embed.c - forward by rows; backward by columns, because a symbol may occur in any row: a task
 * owns a few columns of the whole table and adds rows in their order. */
#include "layer/embed.h"

#include <string.h>

enum { COLUMNS = 16 }; /* of a task: a cache line, so that no two write to one */

struct call {
    const struct tn_rows *r;
    float *to; /* y, or the table's gradient */
    const float *from;
    size_t ld;
    const int32_t *symbols;
};

static void forward_rows(void *arg, size_t from, size_t n)
{
    const struct call *const call = arg;
    const size_t width = call->r->width;

    for (size_t i = from; i < from + n; i++)
        memcpy(call->to + i * call->ld, call->from + (size_t)call->symbols[i] * width,
               width * sizeof(float));
}

void tn_embed_forward(const struct tn_rows *r, float *y, size_t ldy, const float *table,
                      const int32_t *symbols)
{
    tn_rows_parallel(r, forward_rows, &(struct call){r, y, table, ldy, symbols});
}

static void backward_columns(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const size_t column = index * COLUMNS, width = call->r->width;

    (void)thread;
    call->r->kernels->scatter_rows(call->to + column, (ptrdiff_t)width, call->symbols,
                                   call->from + column, (ptrdiff_t)call->ld, call->r->rows,
                                   tn_min(COLUMNS, width - column));
}

void tn_embed_backward(const struct tn_rows *r, float *dtable, const float *dy, size_t lddy,
                       const int32_t *symbols)
{
    tn_parallel(r->threads, tn_blocks(r->width, COLUMNS), backward_columns,
                &(struct call){r, dtable, dy, lddy, symbols});
}
