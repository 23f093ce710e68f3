/* SPDX-License-Identifier: MIT */
#include "layer/position.h"
#include "tarn/model.h"

#include <math.h>

#define TN_POSITION(name) extern const struct tn_position_row tn_pos_##name;
#include "layer/positions.def"
#undef TN_POSITION

#define TN_POSITION(name) &tn_pos_##name.about,
const tarn_table_row *const tn_position_rows[] = {
#include "layer/positions.def"
    NULL,
};
#undef TN_POSITION

const tarn_table_row *tarn_position_kind(size_t index)
{
    return tn_row_at(tn_position_rows, index);
}

tarn_status tn_position_init(struct tn_position *position, const char *spec, size_t F,
                             tarn_error *err)
{
    const tarn_table_row *about = NULL;

    *position = (struct tn_position){.F = F};
    const tarn_status status =
        tn_option_choose(&about, &position->options, tn_position_rows, "position", spec, err);

    if (status != TARN_OK)
        return status;
    const struct tn_position_row *const row = (const struct tn_position_row *)about; /* first */

    position->row = row;
    position->embedding = row->embedding(F);
    position->table = row->table(F);
    if (F == 0 || F % row->divisor != 0)
        return tn_fail(
            err, TARN_EINVAL,
            "position: '%s' in a model of width %zu; the width must be a multiple of %zu",
            about->name, F, row->divisor);
    return TARN_OK;
}

void tn_position_fill(const struct tn_position *position, float *table, size_t from, size_t n)
{
    if (position->row->fill)
        position->row->fill(position, table, from, n);
}

void tn_position_apply(const struct tn_position *position, const struct tn_rows *r, float *y,
                       size_t ldy, const float *table, size_t n)
{
    if (position->row->apply)
        position->row->apply(position, r, y, ldy, table, n);
}

/* ---- the gradient of a learned table ------------------------------------ */

struct gradient {
    const struct tn_rows *r;
    float *dtable;
    const float *dy;
    size_t lddy, n;
};

/* The rows of one position in all sequences, the last of which may be cut short. */
static void gradient_row(void *arg, size_t i, size_t thread)
{
    const struct gradient *const g = arg;
    const size_t sequences = tn_blocks(g->r->rows - i, g->n);

    (void)thread;
    g->r->kernels->sum_rows(g->dtable + i * g->r->width, g->dy + i * g->lddy,
                            (ptrdiff_t)(g->n * g->lddy), sequences, g->r->width);
}

void tn_position_backward(const struct tn_position *position, const struct tn_rows *r,
                          float *dtable, const float *dy, size_t lddy, size_t n)
{
    if (position->row->learned)
        tn_parallel(r->threads, tn_min(n, r->rows), gradient_row,
                    &(struct gradient){r, dtable, dy, lddy, n});
}

/* ---- for kinds ---------------------------------------------------------- */

/* In double: sin() reduces p times a frequency exactly enough for millions of positions. */
void tn_position_sinusoid(const struct tn_position *position, float *table, size_t from,
                          size_t n)
{
    const size_t d = position->table;

    for (size_t i = 0; i < d; i += 2) {
        const double frequency = pow(10000.0, -(double)i / (double)d);

        for (size_t p = 0; p < n; p++) {
            const double angle = (double)(from + p) * frequency;

            table[p * d + i] = (float)sin(angle);
            table[p * d + i + 1] = (float)cos(angle);
        }
    }
}

struct addition {
    const struct tn_rows *r;
    float *y;
    size_t ldy;
    const float *table;
    size_t n;
};

static void add_block(void *arg, size_t index, size_t thread)
{
    const struct addition *const a = arg;
    const size_t width = a->r->width, block = tn_rows_block(a->r), from = index * block;
    const size_t to = tn_min(a->r->rows, from + block);

    (void)thread;
    for (size_t i = from; i < to; i++) {
        float *const row = a->y + i * a->ldy;

        a->r->kernels->add(row, row, a->table + i % a->n * width, width);
    }
}

void tn_position_add(const struct tn_position *position, const struct tn_rows *r, float *y,
                     size_t ldy, const float *table, size_t n)
{
    (void)position;
    tn_parallel(r->threads, tn_blocks(r->rows, tn_rows_block(r)), add_block,
                &(struct addition){r, y, ldy, table, n});
}
