/* SPDX-License-Identifier: MIT */
/* loops.c - one row for every loop of struct tn_kernels. */
#include "kernel/loops.h"

#include <string.h>

enum {
    FLOATS = 512, /* of all rows together, if one is not longer */
    ROWS_MAX = 64,
    GAP = 16,   /* floats between rows, at least */
    DEPTH = 32, /* terms of each sum in a product, rows of a state */
    FEW_ROWS = 4,
    PACKED_ROWS = 84, /* whole panels of every table */
    MIXTURES = 10,
    SYMBOLS = 40
};

/* ---- rows, one call each ------------------------------------------------ */

static void run_dot(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->w[i] = a->kernels->dot(a->x + i * a->ld, a->z + i * a->ld, a->width);
}

static void run_max(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->w[i] = a->kernels->max(a->x + i * a->ld, a->width);
}

static void run_scale(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->scale(a->y + i * a->ld, a->x + i * a->ld, 0.7f, a->width);
}

static void run_axpy(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->axpy(a->y + i * a->ld, 0.7f, a->x + i * a->ld, a->width);
}

static void run_exp_sum(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->w[i] = a->kernels->exp_sum(a->y + i * a->ld, a->x + i * a->ld, 1.5f, a->width);
}

static void run_softmax_backward(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->softmax_backward(a->y + i * a->ld, a->u + i * a->ld, 1.5f, 0.1f, a->width);
}

static void run_add(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->add(a->y + i * a->ld, a->x + i * a->ld, a->z + i * a->ld, a->width);
}

static void run_relu(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->relu(a->y + i * a->ld, a->x + i * a->ld, a->width);
}

static void run_relu_backward(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->relu_backward(a->y + i * a->ld, a->x + i * a->ld, a->z + i * a->ld,
                                  a->width);
}

static void run_gelu(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->gelu(a->y + i * a->ld, a->x + i * a->ld, a->width);
}

static void run_gelu_backward(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->gelu_backward(a->y + i * a->ld, a->x + i * a->ld, a->z + i * a->ld,
                                  a->width);
}

static void run_dropout(const struct tn_loop_arrays *a)
{
    const struct tn_dropout_keys keys = {{1, 2, 3}, 1u << 30, 1.25f};

    for (size_t i = 0; i < a->rows; i++)
        a->kernels->dropout(a->y + i * a->ld, a->x + i * a->ld, a->z + i * a->ld, &keys,
                            (uint32_t)(i * a->width), a->width);
}

static void run_update(const struct tn_loop_arrays *a)
{
    const struct tn_update by = {0.1f, 0.01f, 0.001f, 0.0f, 0.001f, 1.0f, 1e-6f};

    for (size_t i = 0; i < a->rows; i++)
        a->kernels->update(a->y + i * a->ld, a->u + i * a->ld, a->v + i * a->ld,
                           a->x + i * a->ld, 0.9f, &by, a->width);
}

/* ---- rows together ------------------------------------------------------ */

static void run_scale_rows(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->scale_rows(a->y, ld, a->x, ld, (struct tn_column){a->w, 1}, a->rows, a->width,
                           false);
}

static void run_scale_dot_rows(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->scale_dot_rows(a->y, ld, a->x, ld, (struct tn_column){a->w, 1},
                               (struct tn_column){a->v, 1}, a->z, ld, a->rows, a->width);
}

static void run_elu1(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->elu1(a->y, ld, a->x, ld, a->rows, a->width);
}

static void run_elu1_backward(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->elu1_backward(a->y, ld, a->x, ld, a->z, ld, a->rows, a->width, false);
}

static void run_narrow(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->narrow(a->halves, ld, a->x, ld, a->rows, a->width);
}

static void run_widen(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->widen(a->y, ld, a->halves, ld, a->rows, a->width);
}

static void run_sum_rows(const struct tn_loop_arrays *a)
{
    a->kernels->sum_rows(a->w, a->x, (ptrdiff_t)a->ld, a->rows, a->width);
}

static void run_scatter_rows(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->scatter_rows(a->y, ld, a->symbols, a->x, ld, a->rows, a->width);
}

static void run_gather_rows(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->gather_rows(a->y, ld, a->x, ld, a->symbols, a->rows, a->width);
}

static void run_add_rows(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->add_rows(a->y, ld, a->x, ld, a->rows, a->width);
}

static void run_norm(const struct tn_loop_arrays *a)
{
    a->kernels->norm(a->y, NULL, a->x, a->z, a->w, 1e-5f, a->rows, a->width);
}

static void run_norm_backward(const struct tn_loop_arrays *a)
{
    const struct tn_norm_stats stats[ROWS_MAX] = {{0.1f, 0.9f}};

    a->kernels->norm_backward(a->y, false, a->w, a->v, a->x, a->z, stats, a->u, a->rows,
                              a->width);
}

/* The four gates of a row lie behind each other: a quarter of the width each. */
static size_t cells(const struct tn_loop_arrays *a)
{
    return tn_blocks(a->width, 4);
}

static void run_lstm(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->lstm(a->y + i * a->ld, a->u + i * a->ld, a->v + i * a->ld, a->x + i * a->ld,
                         a->z + i * a->ld, cells(a));
}

static void run_lstm_backward(const struct tn_loop_arrays *a)
{
    for (size_t i = 0; i < a->rows; i++)
        a->kernels->lstm_backward(a->y + i * a->ld, a->u + i * a->ld, a->x + i * a->ld,
                                  a->z + i * a->ld, a->x + i * a->ld, a->v + i * a->ld,
                                  cells(a));
}

/* ---- rows in whole vectors ---------------------------------------------- */

static size_t whole(const struct tn_loop_arrays *a)
{
    return tn_padded(a->kernels, a->width);
}

static void run_recur_sum(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->recur_sum(a->v, a->w, a->x, ld, a->z, ld, a->rows, whole(a));
}

static void run_product(const struct tn_loop_arrays *a)
{
    a->kernels->product(a->y, (ptrdiff_t)a->ld, a->z, DEPTH, 1, a->x, 0, a->rows, whole(a),
                        DEPTH, false);
}

static void run_recur(const struct tn_loop_arrays *a)
{
    const ptrdiff_t ld = (ptrdiff_t)a->ld;

    a->kernels->recur(&(struct tn_recurrence){.o = a->y,
                                              .S = a->w,
                                              .q = a->z,
                                              .k = a->x,
                                              .v = a->x,
                                              .ldo = ld,
                                              .ldS = 0,
                                              .ldq = 1,
                                              .ldk = 1,
                                              .ldv = ld,
                                              .n = a->rows,
                                              .rows = DEPTH,
                                              .width = whole(a)});
}

static void run_lsh_buckets(const struct tn_loop_arrays *a)
{
    a->kernels->lsh_buckets(a->exponents_to, a->x, 0, DEPTH,
                            tn_round_up(a->width, TN_LANES_MOST));
}

static struct tn_lsh_scores scores(const struct tn_loop_arrays *a, bool causal)
{
    return (struct tn_lsh_scores){.s = a->y,
                                  .ds = a->u,
                                  .ld = (ptrdiff_t)a->ld,
                                  .rows = a->rows,
                                  .columns = tn_round_up(a->width, TN_LANES_MOST),
                                  .row_position = a->symbols,
                                  .row_bucket = a->symbols,
                                  .position = a->exponents,
                                  .bucket = a->symbols,
                                  .exists = a->skips,
                                  .by = a->x,
                                  .total = a->v,
                                  .lse = a->z,
                                  .delta = a->x,
                                  .w = a->w,
                                  .causal = causal,
                                  .bounded = true};
}

static void run_lsh_score(const struct tn_loop_arrays *a)
{
    const struct tn_lsh_scores of = scores(a, false);

    a->kernels->lsh_score(&of);
}

static void run_lsh_weigh(const struct tn_loop_arrays *a)
{
    const struct tn_lsh_scores of = scores(a, false);

    a->kernels->lsh_weigh(&of);
}

static void run_lsh_backward(const struct tn_loop_arrays *a)
{
    const struct tn_lsh_scores of = scores(a, true);

    a->kernels->lsh_backward(&of);
}

/* Of `width` labels and the blanks around them. */
static struct tn_ctc_states states(const struct tn_loop_arrays *a, float *m, int32_t *e)
{
    const size_t lanes = a->kernels->lanes, part = tn_ctc_width(a->kernels, a->width);

    return (struct tn_ctc_states){{m + lanes, e + lanes}, {m + part + lanes, e + part + lanes}};
}

static struct tn_ctc_states states_to(const struct tn_loop_arrays *a)
{
    return states(a, a->y, a->exponents_to);
}

static struct tn_ctc_states states_from(const struct tn_loop_arrays *a)
{
    return states(a, a->v, a->exponents_from);
}

static void run_ctc_emit(const struct tn_loop_arrays *a)
{
    a->kernels->ctc_emit((struct tn_wide){a->y, a->exponents}, a->x, a->symbols, a->width, 2.0f,
                         0.5f, -100);
}

static void run_ctc_forward(const struct tn_loop_arrays *a)
{
    a->kernels->ctc_forward(states_to(a), states_from(a), (struct tn_wide){a->w, a->exponents},
                            a->skips, a->width);
}

static void run_ctc_backward(const struct tn_loop_arrays *a)
{
    a->kernels->ctc_backward(states_to(a), states_from(a), (struct tn_wide){a->w, a->exponents},
                             a->skips, a->width);
}

static void run_ctc_posteriors(const struct tn_loop_arrays *a)
{
    float sums[2];

    a->kernels->ctc_posteriors(a->w, sums, states_to(a), states_from(a), 0, a->width);
}

/* ---- matrices ----------------------------------------------------------- */

static void run_transpose(const struct tn_loop_arrays *a)
{
    a->kernels->transpose(a->y, (ptrdiff_t)a->rows, a->x, (ptrdiff_t)a->ld, a->rows, a->width);
}

static void run_logistics(const struct tn_loop_arrays *a)
{
    a->kernels->logistics(&(struct tn_logistics){.dx = a->out,
                                                 .ratio = a->v,
                                                 .peak = a->w,
                                                 .x = a->x,
                                                 .ldx = 0,
                                                 .symbols = a->symbols,
                                                 .slopes = a->z,
                                                 .n = a->width,
                                                 .K = MIXTURES,
                                                 .values = SYMBOLS,
                                                 .work = a->u});
}

static void run_pack_across(const struct tn_loop_arrays *a)
{
    a->kernels->pack(a->out, true, a->panels, (ptrdiff_t)tn_round_up(a->width, GAP), true,
                     a->width, DEPTH);
}

static void run_pack_along(const struct tn_loop_arrays *a)
{
    a->kernels->pack(a->out, true, a->panels, DEPTH, false, a->width, DEPTH);
}

static struct tn_panels panels_of(const struct tn_loop_arrays *a)
{
    return (struct tn_panels){.c = a->out,
                              .a = a->panels,
                              .b = a->panels,
                              .bias = a->z,
                              .ldc = (ptrdiff_t)a->width,
                              .m = PACKED_ROWS,
                              .n = a->width,
                              .k = DEPTH};
}

static void run_product_packed(const struct tn_loop_arrays *a)
{
    const struct tn_panels panels = panels_of(a);

    a->kernels->product_packed(&panels);
}

/* Few rows, read in place. */
static void run_product_few(const struct tn_loop_arrays *a)
{
    struct tn_panels panels = panels_of(a);

    panels.a = a->x;
    panels.lda = DEPTH;
    panels.m = FEW_ROWS;
    a->kernels->product_packed(&panels);
}

/* ---- the list ----------------------------------------------------------- */

static const struct tn_loop loops[] = {
    {"dot", true, run_dot},
    {"max", true, run_max},
    {"scale", true, run_scale},
    {"axpy", true, run_axpy},
    {"exp_sum", true, run_exp_sum},
    {"softmax_backward", true, run_softmax_backward},
    {"scale_rows", true, run_scale_rows},
    {"scale_dot_rows", true, run_scale_dot_rows},
    {"elu1", true, run_elu1},
    {"elu1_backward", true, run_elu1_backward},
    {"narrow", true, run_narrow},
    {"widen", true, run_widen},
    {"add", true, run_add},
    {"sum_rows", true, run_sum_rows},
    {"scatter_rows", true, run_scatter_rows},
    {"gather_rows", true, run_gather_rows},
    {"add_rows", true, run_add_rows},
    {"norm", true, run_norm},
    {"norm_backward", true, run_norm_backward},
    {"relu", true, run_relu},
    {"relu_backward", true, run_relu_backward},
    {"gelu", true, run_gelu},
    {"gelu_backward", true, run_gelu_backward},
    {"dropout", true, run_dropout},
    {"lstm", true, run_lstm},
    {"lstm_backward", true, run_lstm_backward},
    {"update", true, run_update},
    {"recur_sum", false, run_recur_sum},
    {"product", false, run_product},
    {"recur", false, run_recur},
    {"lsh_buckets", false, run_lsh_buckets},
    {"lsh_score", false, run_lsh_score},
    {"lsh_weigh", false, run_lsh_weigh},
    {"lsh_backward", false, run_lsh_backward},
    {"ctc_emit", false, run_ctc_emit},
    {"ctc_forward", false, run_ctc_forward},
    {"ctc_backward", false, run_ctc_backward},
    {"ctc_posteriors", false, run_ctc_posteriors},
    {"logistics", false, run_logistics},
    {"transpose", true, run_transpose},
    {"pack_across", false, run_pack_across},
    {"pack_along", false, run_pack_along},
    {"product_packed", false, run_product_packed},
    {"product_few", false, run_product_few},
};

const struct tn_loop *tn_loop_row(size_t index)
{
    return index < sizeof loops / sizeof loops[0] ? &loops[index] : NULL;
}

/* ---- arrays ------------------------------------------------------------- */

/* Numbers from `least` to 2. */
static float *floats_take(struct tn_arena *arena, size_t n, uint32_t seed, float least)
{
    float *const x = tn_arena_floats(arena, n);

    for (size_t i = 0; x && i < n; i++)
        x[i] = least + (2.0f - least) * (float)((seed + i) * 40503 % 65521) / 65521.0f;
    return x;
}

static int32_t *symbols_take(struct tn_arena *arena, size_t n, int32_t base, int32_t count)
{
    int32_t *const x = tn_arena_alloc(arena, n, sizeof *x);

    for (size_t i = 0; x && i < n; i++)
        x[i] = base + (int32_t)(i * 7 % (size_t)count);
    return x;
}

static uint16_t *halves_take(struct tn_arena *arena, size_t n)
{
    uint16_t *const x = tn_arena_alloc(arena, n, sizeof *x);

    for (size_t i = 0; x && i < n; i++)
        x[i] = (uint16_t)(0x3f80 + i % 64);
    return x;
}

struct tn_loop_arrays tn_loop_arrays_lay_out(const struct tn_kernels *kernels, size_t width,
                                             struct tn_arena *arena)
{
    /* Arrays that lie a multiple of 4096 bytes apart would wait for each other's stores. */
    const size_t floats = tn_round_up(ROWS_MAX * DEPTH + 4 * width, 1024) + 320;
    const size_t large = PACKED_ROWS * (tn_round_up(width, 64) + 64);

    return (struct tn_loop_arrays){
        .kernels = kernels,
        .width = width,
        .rows = tn_max(1, tn_min(ROWS_MAX, FLOATS / width)),
        .ld = tn_round_up(width, GAP) + GAP,
        .floats = floats,
        .x = floats_take(arena, floats, 1, -2.0f),
        .z = floats_take(arena, floats, 2, -2.0f),
        .y = floats_take(arena, floats, 3, -2.0f),
        .u = floats_take(arena, floats, 4, -2.0f),
        .v = floats_take(arena, floats, 5, 0.0f),
        .w = floats_take(arena, floats, 6, -2.0f),
        .panels = floats_take(arena, large, 7, -2.0f),
        .out = floats_take(arena, large, 8, -2.0f),
        .halves = halves_take(arena, floats),
        .symbols = symbols_take(arena, floats, 0, SYMBOLS),
        .skips = symbols_take(arena, floats, -1, 2),
        .exponents = symbols_take(arena, floats, -5, 5),
        .exponents_to = symbols_take(arena, floats, -5, 5),
        .exponents_from = symbols_take(arena, floats, -5, 5),
    };
}
