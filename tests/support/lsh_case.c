/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/lsh_tile.h"
#include "support/kernel_list.h"
#include "support/lsh_case.h"

/* ---- a case: a plan, its arrays, its memory ------------------------------ */

static float *take_random(size_t n, double scale, struct tn_random *random)
{
    float *const x = take(n, sizeof(float));

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tn_random_normal(random));
    return x;
}

static tarn_output view(const struct lsh *l, float *data, size_t width)
{
    const ptrdiff_t H = (ptrdiff_t)l->H, N = (ptrdiff_t)l->N, W = (ptrdiff_t)width;

    return l->is.heads_first ? (tarn_output){data, H * N * W, W, N * W}
                             : (tarn_output){data, N * H * W, H * W, W};
}

static tarn_input view_in(const struct lsh *l, float *data, size_t width)
{
    const tarn_output out = view(l, data, width);

    return (tarn_input){out.data, out.batch, out.position, out.head};
}

void lsh_open(struct lsh *l, const struct lsh_case *is, uint64_t inputs_seed)
{
    struct tn_random random;
    tarn_error err = {0};

    *l = (struct lsh){.is = *is,
                      .B = is->desc.batch,
                      .H = is->desc.heads,
                      .N = is->desc.queries,
                      .D = is->desc.query_width,
                      .M = is->desc.value_width};
    snprintf(l->kind, sizeof l->kind, "lsh:rounds=%zu,buckets=%zu,chunk=%zu,same_bucket=%zu",
             is->rounds, is->buckets, is->chunk, is->same_bucket);
    l->is.desc.kind = l->kind;
    l->is.desc.keys = l->N;
    check_ok(tarn_attention_create(&l->plan, &l->is.desc, &err), &err);
    if (is->kernels)
        l->plan->host.kernels = is->kernels;
    const size_t rows = l->B * l->H * l->N;

    tn_random_seed(&random, inputs_seed);
    l->q = take_random(rows * l->D, is->scale, &random);
    l->v = take_random(rows * l->M, 1.0, &random);
    l->dy = take_random(rows * l->M, 1.0, &random);
    l->y = take(rows * l->M, sizeof(float));
    l->dq = take(rows * l->D, sizeof(float));
    l->dv = take(rows * l->M, sizeof(float));
    l->saved = take(tarn_attention_saved_size(l->plan), 1);
    l->work = take(tarn_attention_workspace_size(l->plan), 1);
    memset(l->work, 0xff, tarn_attention_workspace_size(l->plan)); /* no floats but NaN */
    l->arrays = (tarn_attention_arrays){.in = {view_in(l, l->q, l->D), view_in(l, l->v, l->M)},
                                        .y = view(l, l->y, l->M),
                                        .dy = view_in(l, l->dy, l->M),
                                        .din = {view(l, l->dq, l->D), view(l, l->dv, l->M)},
                                        .key_lengths = is->lengths};
}

void lsh_close(struct lsh *l)
{
    tarn_attention_free(l->plan);
    free(l->q);
    free(l->v);
    free(l->y);
    free(l->dy);
    free(l->dq);
    free(l->dv);
    free(l->saved);
    free(l->work);
}

void lsh_forward(struct lsh *l)
{
    tarn_error err = {0};

    check_ok(tarn_attention_forward(l->plan, &l->arrays, l->saved, l->work, &err), &err);
}

void lsh_backward(struct lsh *l)
{
    tarn_error err = {0};

    check_ok(tarn_attention_backward(l->plan, &l->arrays, l->saved, l->work, &err), &err);
}

size_t lsh_length(const struct lsh *l, size_t b)
{
    return l->is.lengths ? l->is.lengths[b] : l->N;
}

const float *lsh_order(const struct lsh *l, size_t b, size_t h, size_t round)
{
    return tn_lsh_saved_order(l->plan, (float *)(void *)tn_arena_over(l->saved).base, b, h,
                              round);
}

/* ---- cases -------------------------------------------------------------- */

/* The i-th of the cases that several tests go through, each on the i-th instruction set. */
static struct lsh_case case_draw(size_t i, size_t *lengths, struct tn_random *random)
{
    struct lsh_case is = {
        .desc = {.batch = ONE_OF(random, 1, 2),
                 .heads = ONE_OF(random, 1, 3),
                 .queries = ONE_OF(random, 1, 2, 7, 16, 32, 33, 64, 100),
                 .query_width = ONE_OF(random, 1, 5, 8, 32, 40),
                 .value_width = ONE_OF(random, 1, 7, 16, 32),
                 .causal = ONE_OF(random, 0, 1),
                 .seed = tn_random_bits(random),
                 .host.threads = ONE_OF(random, 1, 2)},
        .rounds = ONE_OF(random, 1, 2, 4),
        .buckets = ONE_OF(random, 2, 6, 16, 64),
        .chunk = ONE_OF(random, 1, 3, 8, 13, 32, 500),
        .same_bucket = ONE_OF(random, 0, 0, 1),
        .scale = (const double[]){1.0, 1.0, 10.0, 50.0, 1e-3}[below(random, 5)],
        .heads_first = ONE_OF(random, 0, 1),
    };
    size_t tables = 0;

    while (kernels_at(tables))
        tables++;
    is.kernels = kernels_at(i % tables);
    if (ONE_OF(random, 0, 1)) {
        for (size_t b = 0; b < is.desc.batch; b++)
            lengths[b] = below(random, is.desc.queries + 1);
        is.lengths = lengths;
    }
    return is;
}

void lsh_for_cases(size_t count, uint64_t seed, void (*check)(struct lsh *l))
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < count; i++) {
        size_t lengths[2];
        const struct lsh_case is = case_draw(i, lengths, &random);
        struct lsh l;

        lsh_open(&l, &is, tn_random_bits(&random));
        check(&l);
        lsh_close(&l);
    }
}

struct lsh_case lsh_plain_case(size_t N)
{
    return (struct lsh_case){
        .desc = {.batch = 2,
                 .heads = 2,
                 .queries = N,
                 .query_width = 16,
                 .value_width = 8,
                 .seed = 7,
                 .host = {.threads = 1, .cpu = forced_cpu()}},
        .rounds = 3,
        .buckets = 8,
        .chunk = 8,
        .scale = 1.0,
    };
}
