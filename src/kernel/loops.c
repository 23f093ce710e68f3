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

/* The arrays from row i on. */
static inline struct tn_loop_arrays row_of(const struct tn_loop_arrays *a, size_t i)
{
    struct tn_loop_arrays row = *a;

    row.x += i * a->ld;
    row.z += i * a->ld;
    row.y += i * a->ld;
    row.u += i * a->ld;
    row.v += i * a->ld;
    return row;
}

#define EACH_ROW(name, call)                                                                   \
    static void run_##name(const struct tn_loop_arrays *a)                                     \
    {                                                                                          \
        for (size_t i = 0; i < a->rows; i++) {                                                 \
            const struct tn_loop_arrays r = row_of(a, i);                                      \
            call;                                                                              \
        }                                                                                      \
    }

/* The four gates of a row lie behind each other: a quarter of the width each. */
static inline size_t cells(const struct tn_loop_arrays *a)
{
    return tn_blocks(a->width, 4);
}

static const struct tn_dropout_keys keys = {{1, 2, 3}, 1u << 30, 1.25f};
static const struct tn_update moves = {0.1f, 0.01f, 0.001f, 0.0f, 0.001f, 1.0f, 1e-6f};

EACH_ROW(dot, r.w[i] = r.kernels->dot(r.x, r.z, r.width))
EACH_ROW(max, r.w[i] = r.kernels->max(r.x, r.width))
EACH_ROW(scale, r.kernels->scale(r.y, r.x, 0.7f, r.width))
EACH_ROW(axpy, r.kernels->axpy(r.y, 0.7f, r.x, r.width))
EACH_ROW(exp_sum, r.w[i] = r.kernels->exp_sum(r.y, r.x, 1.5f, r.width))
EACH_ROW(softmax_backward, r.kernels->softmax_backward(r.y, r.u, 1.5f, 0.1f, r.width))
EACH_ROW(add, r.kernels->add(r.y, r.x, r.z, r.width))
EACH_ROW(relu, r.kernels->relu(r.y, r.x, r.width))
EACH_ROW(relu_backward, r.kernels->relu_backward(r.y, r.x, r.z, r.width))
EACH_ROW(gelu, r.kernels->gelu(r.y, r.x, r.width))
EACH_ROW(gelu_backward, r.kernels->gelu_backward(r.y, r.x, r.z, r.width))
EACH_ROW(dropout, r.kernels->dropout(r.y, r.x, r.z, &keys, (uint32_t)i, r.width))
EACH_ROW(update, r.kernels->update(r.y, r.u, r.v, r.x, 0.9f, &moves, r.width))
EACH_ROW(lstm, r.kernels->lstm(r.y, r.u, r.v, r.x, r.z, cells(&r)))
EACH_ROW(lstm_backward, r.kernels->lstm_backward(r.y, r.u, r.x, r.z, r.x, r.v, cells(&r)))

/* ---- rows together ------------------------------------------------------ */

#define ALL_ROWS(name, call)                                                                   \
    static void run_##name(const struct tn_loop_arrays *a)                                     \
    {                                                                                          \
        const ptrdiff_t ld = (ptrdiff_t)a->ld;                                                 \
        call;                                                                                  \
    }

static inline struct tn_column column(float *at)
{
    return (struct tn_column){at, 1};
}

static const struct tn_norm_stats stats[ROWS_MAX] = {{0.1f, 0.9f}};

ALL_ROWS(scale_rows,
         a->kernels->scale_rows(a->y, ld, a->x, ld, column(a->w), a->rows, a->width, false))
ALL_ROWS(scale_dot_rows, a->kernels->scale_dot_rows(a->y, ld, a->x, ld, column(a->w),
                                                    column(a->v), a->z, ld, a->rows, a->width))
ALL_ROWS(elu1, a->kernels->elu1(a->y, ld, a->x, ld, a->rows, a->width))
ALL_ROWS(elu1_backward,
         a->kernels->elu1_backward(a->y, ld, a->x, ld, a->z, ld, a->rows, a->width, false))
ALL_ROWS(narrow, a->kernels->narrow(a->halves, ld, a->x, ld, a->rows, a->width))
ALL_ROWS(widen, a->kernels->widen(a->y, ld, a->halves, ld, a->rows, a->width))
ALL_ROWS(sum_rows, a->kernels->sum_rows(a->w, a->x, ld, a->rows, a->width))
ALL_ROWS(scatter_rows,
         a->kernels->scatter_rows(a->y, ld, a->symbols, a->x, ld, a->rows, a->width))
ALL_ROWS(gather_rows,
         a->kernels->gather_rows(a->y, ld, a->x, ld, a->symbols, a->rows, a->width))
ALL_ROWS(add_rows, a->kernels->add_rows(a->y, ld, a->x, ld, a->rows, a->width))
ALL_ROWS(transpose,
         a->kernels->transpose(a->y, (ptrdiff_t)a->rows, a->x, ld, a->rows, a->width))

static void run_dot_rows(const struct tn_loop_arrays *a)
{
    a->kernels->dot_rows(a->v, a->w, a->x, a->rows, a->width);
}

static void run_mix_rows(const struct tn_loop_arrays *a)
{
    a->kernels->mix_rows(a->w, a->v, a->x, a->rows, a->width, false);
}

static void run_norm(const struct tn_loop_arrays *a)
{
    a->kernels->norm(a->y, NULL, a->x, a->z, a->w, 1e-5f, a->rows, a->width);
}

static void run_norm_backward(const struct tn_loop_arrays *a)
{
    a->kernels->norm_backward(a->y, false, a->w, a->v, a->x, a->z, stats, a->u, a->rows,
                              a->width);
}

/* ---- rows in whole vectors ---------------------------------------------- */

static size_t whole(const struct tn_loop_arrays *a)
{
    return tn_padded(a->kernels, a->width);
}

ALL_ROWS(recur_sum, a->kernels->recur_sum(a->v, a->w, a->x, ld, a->z, ld, a->rows, whole(a)))
ALL_ROWS(product, a->kernels->product(a->y, ld, a->z, DEPTH, 1, a->x, 0, a->rows, whole(a),
                                      DEPTH, false))

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

#define OF_SCORES(name, causal)                                                                \
    static void run_##name(const struct tn_loop_arrays *a)                                     \
    {                                                                                          \
        const struct tn_lsh_scores of = scores(a, causal);                                     \
        a->kernels->name(&of);                                                                 \
    }

OF_SCORES(lsh_score, false)
OF_SCORES(lsh_weigh, false)
OF_SCORES(lsh_backward, true)

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

static void run_logistics(const struct tn_loop_arrays *a)
{
    a->kernels->logistics(&(struct tn_logistics){.dx = a->out,
                                                 .ratio = a->v,
                                                 .peak = a->w,
                                                 .x = a->x,
                                                 .ldx = 0,
                                                 .symbols = a->symbols,
                                                 .dloss = a->z,
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

#define LOOP(name, any_width)                                                                  \
    {                                                                                          \
#name, any_width, run_##name                                                           \
    }

static const struct tn_loop loops[] = {
    LOOP(dot, true),
    LOOP(max, true),
    LOOP(scale, true),
    LOOP(axpy, true),
    LOOP(exp_sum, true),
    LOOP(softmax_backward, true),
    LOOP(scale_rows, true),
    LOOP(scale_dot_rows, true),
    LOOP(dot_rows, true),
    LOOP(mix_rows, true),
    LOOP(elu1, true),
    LOOP(elu1_backward, true),
    LOOP(narrow, true),
    LOOP(widen, true),
    LOOP(add, true),
    LOOP(sum_rows, true),
    LOOP(scatter_rows, true),
    LOOP(gather_rows, true),
    LOOP(add_rows, true),
    LOOP(norm, true),
    LOOP(norm_backward, true),
    LOOP(relu, true),
    LOOP(relu_backward, true),
    LOOP(gelu, true),
    LOOP(gelu_backward, true),
    LOOP(dropout, true),
    LOOP(lstm, true),
    LOOP(lstm_backward, true),
    LOOP(update, true),
    LOOP(recur_sum, false),
    LOOP(product, false),
    LOOP(recur, false),
    LOOP(lsh_buckets, false),
    LOOP(lsh_score, false),
    LOOP(lsh_weigh, false),
    LOOP(lsh_backward, false),
    LOOP(ctc_emit, false),
    LOOP(ctc_forward, false),
    LOOP(ctc_backward, false),
    LOOP(ctc_posteriors, false),
    LOOP(logistics, false),
    LOOP(transpose, true),
    LOOP(pack_across, false),
    LOOP(pack_along, false),
    LOOP(product_packed, false),
    LOOP(product_few, false),
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
    const size_t rows = tn_max(1, tn_min(ROWS_MAX, FLOATS / width));
    const size_t ld = tn_round_up(width, GAP) + GAP;
    /* Room for a row of every symbol. Arrays that lie a multiple of 4096 bytes apart would wait
     * for each other's stores. */
    const size_t tables = rows > 1 ? SYMBOLS * ld : 0;
    const size_t floats = tn_round_up(tn_max(ROWS_MAX * DEPTH, tables) + 4 * width, 1024) + 320;
    const size_t large = PACKED_ROWS * (tn_round_up(width, 64) + 64);

    return (struct tn_loop_arrays){
        .kernels = kernels,
        .width = width,
        .rows = rows,
        .ld = ld,
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
