/* SPDX-License-Identifier: MIT */
#include "layer/position.h"

#include <math.h>
#include <string.h>

#include "tarn/model.h"

static const struct tn_position_row rows[] = {
    {
        .about = {"concat", "half embedding, half sinusoidal encoding, concatenated",
                  tn_no_options},
        .divisor = 4,
        .embedding = 2,
        .table = 2,
    },
    {
        .about = {"add", "sinusoidal encoding added to the embedding", tn_no_options},
        .divisor = 2,
        .embedding = 1,
        .table = 1,
    },
    {
        .about = {"learned",
                  "learned encoding, one vector per position, added to the embedding",
                  tn_no_options},
        .learned = true,
        .divisor = 1,
        .embedding = 1,
        .table = 1,
    },
    {
        .about = {"none", "no position encoding", tn_no_options},
        .divisor = 1,
        .embedding = 1,
    },
};

const struct tn_table tn_positions = {"position", tarn_position_kind};

const tarn_table_row *tarn_position_kind(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index].about : NULL;
}

tarn_status tn_position_init(struct tn_position *position, const char *spec, size_t F,
                             tarn_error *err)
{
    struct tn_options none_has_any;
    tarn_status status;
    const struct tn_position_row *const row =
        tn_table_find(&tn_positions, &none_has_any, spec, &status, err);

    if (!row)
        return status;
    if (F == 0 || F % row->divisor != 0)
        return tn_fail(
            err, TARN_EINVAL,
            "position: '%s' in a model of width %zu; the width must be a multiple of %zu",
            row->about.name, F, row->divisor);
    *position = (struct tn_position){
        .row = row,
        .F = F,
        .embedding = F / row->embedding,
        .table = row->table ? F / row->table : 0,
    };
    return TARN_OK;
}

bool tn_position_is_sinusoid(const struct tn_position *position)
{
    return position->table > 0 && !position->row->learned;
}

/* pe[p, 2i] = sin(p 10000^(-2i/d)), pe[p, 2i+1] = cos of the same     Vaswani et al. 2017, 3.5
 *
 * In double: sin() reduces p times a frequency exactly enough for millions of positions. */
void tn_position_fill(const struct tn_position *position, float *table, size_t from, size_t n)
{
    const size_t d = tn_position_is_sinusoid(position) ? position->table : 0;

    for (size_t i = 0; i < d; i += 2) {
        const double frequency = pow(10000.0, -(double)i / (double)d);

        for (size_t p = 0; p < n; p++) {
            const double angle = (double)(from + p) * frequency;

            table[p * d + i] = (float)sin(angle);
            table[p * d + i + 1] = (float)cos(angle);
        }
    }
}

/* ---- embedding and position --------------------------------------------- */

struct application {
    const struct tn_position *position;
    const struct tn_rows *r;
    float *y;
    size_t ldy;
    const float *table;
    size_t n;
};

static void apply_rows(void *arg, size_t from, size_t n)
{
    const struct application *const a = arg;
    const size_t embedding = a->position->embedding, width = a->position->table;

    for (size_t i = from; i < from + n; i++) {
        float *const y = a->y + i * a->ldy;
        const float *const encoding = a->table + i % a->n * width;

        if (embedding < a->position->F)
            memcpy(y + embedding, encoding, width * sizeof *y);
        else
            a->r->kernels->add(y, y, encoding, width);
    }
}

void tn_position_apply(const struct tn_position *position, const struct tn_rows *r, float *y,
                       size_t ldy, const float *table, size_t n)
{
    if (position->table > 0)
        tn_rows_parallel(r, apply_rows, &(struct application){position, r, y, ldy, table, n});
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
