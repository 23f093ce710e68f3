/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/lsh_tile.h"
#include "support/lsh_definition.h"

/* The bucket of every slot of a sorted row, counted along it. */
static void count_sight(struct lsh_definition *def, const struct lsh *l, const float *order)
{
    const size_t n = def->n, chunk = l->is.chunk;
    size_t *const bucket = take(n, sizeof *bucket), *const position = take(n, sizeof *position);

    for (size_t slot = 0; slot < n; slot++) {
        const uint32_t entry = tn_lsh_entry(order, slot);

        position[slot] = entry & ~TN_LSH_STARTS;
        bucket[slot] = (slot > 0 ? bucket[slot - 1] : 0) + (entry & TN_LSH_STARTS ? 1 : 0);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            const size_t i = position[a], j = position[b];
            const bool near = a / chunk == b / chunk || a / chunk == b / chunk + 1;
            const bool allowed = (!l->is.desc.causal || j <= i) &&
                                 (!l->is.same_bucket || bucket[a] == bucket[b]);

            def->times[i * n + j] += near && allowed && i != j;
        }
    free(bucket);
    free(position);
}

struct lsh_definition lsh_define(const struct lsh *l, size_t b, size_t h)
{
    struct lsh_definition def = {.n = lsh_length(l, b), .D = l->D, .M = l->M};

    def.q = take(def.n * def.D, sizeof(double));
    def.v = take(def.n * def.M, sizeof(double));
    def.times = take(def.n * def.n, sizeof(size_t));
    for (size_t i = 0; i < def.n; i++) {
        for (size_t d = 0; d < def.D; d++)
            def.q[i * def.D + d] = (double)tn_in(l->arrays.in[0], b, h, i)[d];
        for (size_t m = 0; m < def.M; m++)
            def.v[i * def.M + m] = (double)tn_in(l->arrays.in[1], b, h, i)[m];
    }
    for (size_t r = 0; r < l->is.rounds; r++)
        count_sight(&def, l, lsh_order(l, b, h, r));
    for (size_t i = 0; i < def.n; i++) {
        size_t seen = 0;

        for (size_t j = 0; j < def.n; j++)
            seen += def.times[i * def.n + j];
        def.times[i * def.n + i] = seen == 0; /* itself only when it sees nothing else */
    }
    return def;
}

void lsh_definition_free(struct lsh_definition *def)
{
    free(def->q);
    free(def->v);
    free(def->times);
}

static double score(const struct lsh_definition *def, size_t i, size_t j)
{
    const double D = (double)def->D;
    double product = 0.0, length2 = 0.0;

    for (size_t d = 0; d < def->D; d++) {
        const double k = def->q[j * def->D + d];

        product += def->q[i * def->D + d] * k;
        length2 += k * k;
    }
    return product / sqrt(length2 + D * 1e-6) / sqrt(D);
}

/* y (M) of query i. */
void lsh_attend(const struct lsh_definition *def, double *y, size_t i)
{
    double most = -HUGE_VAL, total = 0.0;

    for (size_t j = 0; j < def->n; j++)
        if (def->times[i * def->n + j])
            most = fmax(most, score(def, i, j));
    memset(y, 0, def->M * sizeof *y);
    for (size_t j = 0; j < def->n; j++) {
        const double times = (double)def->times[i * def->n + j];
        const double weight = times > 0.0 ? times * exp(score(def, i, j) - most) : 0.0;

        total += weight;
        for (size_t m = 0; m < def->M; m++)
            y[m] += weight * def->v[j * def->M + m];
    }
    for (size_t m = 0; m < def->M; m++)
        y[m] /= total;
}

/* sum dy . y of a head. */
double lsh_loss(const struct lsh_definition *def, const struct lsh *l, size_t b, size_t h)
{
    double *const y = take(def->M, sizeof(double)), sum = 0.0;

    for (size_t i = 0; i < def->n; i++) {
        lsh_attend(def, y, i);
        for (size_t m = 0; m < def->M; m++)
            sum += y[m] * (double)tn_in(l->arrays.dy, b, h, i)[m];
    }
    free(y);
    return sum;
}
