/* SPDX-License-Identifier: MIT */
#include "layer/context.h"

#include <stdlib.h>
#include <string.h>

#include "layer/embed.h"

/* ---- Reading a spec ----------------------------------------------------- */

static tarn_status refuse(const char *spec, tarn_error *err)
{
    return tn_fail(err, TARN_EINVAL,
                   "context is '%.60s'; it must be a list such as 1,27,28 of distances from 1 "
                   "to %d, each once and at most %d of them",
                   spec, TN_CONTEXT_FARTHEST, TN_CONTEXT_MOST);
}

static bool is_in(const struct tn_context *context, size_t distance)
{
    for (size_t j = 0; j < context->count; j++)
        if (context->distance[j] == distance)
            return true;
    return false;
}

/* A number without sign or space, which ends where *text is left. */
static bool read_distance(size_t *distance, const char **text)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    *distance = strtoul(*text, &end, 10);
    *text = end;
    return *distance >= 1 && *distance <= TN_CONTEXT_FARTHEST;
}

tarn_status tn_context_init(struct tn_context *context, const char *spec, size_t symbols,
                            tarn_error *err)
{
    const char *at = spec;
    size_t distance;

    *context = (struct tn_context){.symbols = symbols};
    while (*at) {
        if (context->count == TN_CONTEXT_MOST || !read_distance(&distance, &at) ||
            is_in(context, distance))
            return refuse(spec, err);
        context->distance[context->count++] = distance;
        context->reach = tn_max(context->reach, distance);
        if (*at == ',' && at[1])
            at++;
        else if (*at)
            return refuse(spec, err);
    }
    if (tn_context_rows(context) > INT32_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "context has %zu distances of %zu symbols each; its tables would have "
                       "more than 2^31 rows",
                       context->count, symbols);
    return TARN_OK;
}

size_t tn_context_rows(const struct tn_context *context)
{
    return context->count * (context->symbols + 1);
}

/* ---- Looking up --------------------------------------------------------- */

/* The symbol d before position i of sequence b; none is the number of symbols. */
static int32_t symbol_before(const struct tn_context *context,
                             const struct tn_context_place *place, size_t b, size_t i, size_t d)
{
    if (i >= d)
        return place->symbols[b * place->n + i - d];
    if (place->from + i >= d)
        return place->past[(b + 1) * context->reach + i - d];
    return (int32_t)context->symbols;
}

void tn_context_find(const struct tn_context *context, int32_t *rows,
                     const struct tn_context_place *place)
{
    for (size_t j = 0; j < context->count; j++) {
        const int32_t table = (int32_t)(j * (context->symbols + 1));

        for (size_t b = 0; b < place->B; b++)
            for (size_t i = 0; i < place->n; i++)
                *rows++ = table + symbol_before(context, place, b, i, context->distance[j]);
    }
}

void tn_context_remember(const struct tn_context *context, int32_t *past,
                         const struct tn_context_place *place)
{
    const size_t reach = context->reach, added = tn_min(place->n, reach), kept = reach - added;

    for (size_t b = 0; b < place->B; b++) {
        int32_t *const own = past + b * reach;

        memmove(own, own + added, kept * sizeof *own);
        memcpy(own + kept, place->symbols + (b + 1) * place->n - added, added * sizeof *own);
    }
}

/* ---- Adding ------------------------------------------------------------- */

struct addition {
    const struct tn_context *context;
    const struct tn_rows *r;
    float *y;
    size_t ldy;
    const float *tables;
    const int32_t *rows;
};

static void add_rows(void *arg, size_t from, size_t n)
{
    const struct addition *const a = arg;
    const size_t width = a->r->width;

    for (size_t i = from; i < from + n; i++)
        for (size_t j = 0; j < a->context->count; j++) {
            const size_t row = (size_t)a->rows[j * a->r->rows + i];
            float *const y = a->y + i * a->ldy;

            a->r->kernels->add(y, y, a->tables + row * width, width);
        }
}

void tn_context_forward(const struct tn_context *context, const struct tn_rows *r, float *y,
                        size_t ldy, const float *tables, const int32_t *rows)
{
    if (context->count > 0)
        tn_rows_parallel(r, add_rows, &(struct addition){context, r, y, ldy, tables, rows});
}

/* The tables do not overlap: an embedding's gradient each. */
void tn_context_backward(const struct tn_context *context, const struct tn_rows *r,
                         float *dtables, const float *dy, size_t lddy, const int32_t *rows)
{
    for (size_t j = 0; j < context->count; j++)
        tn_embed_backward(r, dtables, dy, lddy, rows + j * r->rows);
}
