/* SPDX-License-Identifier: MIT */
/* test_state_gradients.c - gradients flow through the state that a piece of a sequence starts
 * from, and through the one that it ends in. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"
#include "support/attention_piece.h"

/* A state and a gradient of it, of which only floats count that positions have filled. */
struct flow {
    struct block state0, state1, dstate1, dstate0;
};

static float *floats_of(const struct block *block)
{
    return (float *)(void *)block->bytes;
}

static size_t float_count(const struct block *block)
{
    return block->size / sizeof(float);
}

static bool in_header(const struct attention_run *run, size_t i)
{
    return i * sizeof(float) % tarn_attention_state_size(run->plan) < 64;
}

/* L = <dy, y> + <dstate1, state1> */
static double loss(const struct attention_run *run, const struct flow *flow)
{
    const struct tensor *const y = &run->tensors[Y], *const dy = &run->tensors[DY];
    double sum = 0.0;

    for (size_t r = 0; r < tensor_rows(y); r++)
        for (size_t m = 0; m < y->width; m++)
            sum += (double)tensor_row_at(y, r)[m] * (double)tensor_row_at(dy, r)[m];
    for (size_t i = 0; i < float_count(&flow->state1); i++)
        if (!in_header(run, i))
            sum += (double)floats_of(&flow->state1)[i] * (double)floats_of(&flow->dstate1)[i];
    return sum;
}

static struct flow flow_open(struct attention_run *run, struct piece *past, struct piece *piece,
                             struct tn_random *random)
{
    const size_t size = run->state.size;
    struct flow flow = {block_open(size, 4, 0), block_open(size, 8, 0xff),
                        block_open(size, 12, 0), block_open(size, 4, 0xff)};

    if (past)
        piece_forward(past, NULL, flow.state0.bytes, NULL);
    piece_forward(piece, flow.state0.bytes, flow.state1.bytes, NULL);
    for (size_t i = 0; i < float_count(&flow.state1); i++)
        if (!in_header(run, i) && floats_of(&flow.state1)[i] != 0.0f)
            floats_of(&flow.dstate1)[i] = (float)(0.1 * tn_random_normal(random));
    return flow;
}

static void flow_close(struct flow *flow)
{
    block_close(&flow->state0);
    block_close(&flow->state1);
    block_close(&flow->dstate1);
    block_close(&flow->dstate0);
}

static float sign_of(uint64_t seed, size_t i)
{
    struct tn_random random;

    tn_random_seed(&random, seed + i);
    return tn_random_bits(&random) >> 63 ? 1.0f : -1.0f;
}

/* x + e u, of an input or, past the last, of what state0 has. */
static void move(struct attention_run *run, struct flow *flow, size_t of, const float *x,
                 uint64_t seed, double e)
{
    if (of < run->in_count) {
        const struct tensor *const t = &run->tensors[of];

        for (size_t r = 0; r < tensor_rows(t); r++)
            for (size_t i = 0; i < t->width; i++)
                tensor_row_at(t, r)[i] =
                    x[r * t->width + i] + (float)e * sign_of(seed, r * t->width + i);
        return;
    }
    for (size_t i = 0; i < float_count(&flow->state0); i++)
        if (!in_header(run, i) && x[i] != 0.0f)
            floats_of(&flow->state0)[i] = x[i] + (float)e * sign_of(seed, i);
}

static double loss_at(struct piece *piece, struct attention_run *run, struct flow *flow,
                      size_t of, const float *x, uint64_t seed, double e)
{
    move(run, flow, of, x, seed, e);
    piece_forward(piece, flow->state0.bytes, flow->state1.bytes, NULL);
    return loss(run, flow);
}

/* Of the gradient along u, and its square. */
static double along(const struct attention_run *run, const struct flow *flow, size_t of,
                    const float *x, uint64_t seed, double *norm2)
{
    const struct tensor *const t = &run->tensors[run_gradient(of)];
    double sum = 0.0;

    *norm2 = 0.0;
    if (of < run->in_count) {
        for (size_t r = 0; r < tensor_rows(t); r++)
            for (size_t i = 0; i < t->width; i++) {
                const double g = (double)tensor_row_at(t, r)[i];

                sum += g * (double)sign_of(seed, r * t->width + i);
                *norm2 += g * g;
            }
        return sum;
    }
    for (size_t i = 0; i < float_count(&flow->dstate0); i++) {
        const double g = (double)floats_of(&flow->dstate0)[i];

        if (in_header(run, i))
            assert_true(g == 0.0);
        if (in_header(run, i) || x[i] == 0.0f)
            continue;
        sum += g * (double)sign_of(seed, i);
        *norm2 += g * g;
    }
    return sum;
}

static void check_slope(struct piece *piece, struct attention_run *run, struct flow *flow,
                        size_t of, uint64_t seed)
{
    const bool input = of < run->in_count;
    const bool small =
        run->is.inputs == SMALL && input && run->in[of].width == TARN_QUERY_WIDTH;
    const double e = small ? 0.05 / sqrt((double)run->is.desc.query_width) : 0.02;
    float *const x = input ? tensor_copy(&run->tensors[of]) : take(flow->state0.size, 1);
    double norm2;

    if (!input)
        memcpy(x, flow->state0.bytes, flow->state0.size);
    const double want = along(run, flow, of, x, seed, &norm2);
    const double near = loss_at(piece, run, flow, of, x, seed, e / 2) -
                        loss_at(piece, run, flow, of, x, seed, -e / 2);
    const double far =
        loss_at(piece, run, flow, of, x, seed, e) - loss_at(piece, run, flow, of, x, seed, -e);
    const double slope = (8.0 * near - far) / (6.0 * e);
    double noise = 0.0;

    loss_at(piece, run, flow, of, x, seed, 0.0);
    for (size_t r = 0; r < tensor_rows(&run->tensors[Y]); r++)
        for (size_t m = 0; m < run->tensors[Y].width; m++)
            noise += fmax(1.0, pow((double)tensor_row_at(&run->tensors[Y], r)[m], 2.0));
    for (size_t i = 0; i < float_count(&flow->state1); i++)
        if (!in_header(run, i))
            noise += 0.01 * pow((double)floats_of(&flow->state1)[i], 2.0);
    noise = 2e-6 * sqrt(noise) / e;
    if (!(fabs(slope - want) <= 1e-3 * sqrt(norm2) + noise))
        fail_msg("%s: %s, slope %g, gradient %g of %g, noise %g", run_name(run),
                 input ? run->in[of].name : "state0", slope, want, sqrt(norm2), noise);
    free(x);
}

/* `past` positions before, which the state has. */
static void check_slopes(struct attention_case is, size_t past, struct tn_random *random)
{
    const size_t N = is.desc.queries;
    struct attention_run run, before;

    is.desc.keys = N + past;
    run_open(&run, &is);
    is.desc.queries = past > 0 ? past : 1;
    is.seed++;
    run_open(&before, &is);
    struct piece first = piece_open(&before, 0, is.desc.queries, 2);
    struct piece piece = piece_open(&run, 0, N, 2);
    struct flow flow = flow_open(&run, past > 0 ? &first : NULL, &piece, random);

    piece_backward(&piece, flow.state0.bytes, floats_of(&flow.dstate1),
                   floats_of(&flow.dstate0));
    for (size_t of = 0; of <= run.in_count; of++)
        check_slope(&piece, &run, &flow, of, tn_random_bits(random));
    flow_close(&flow);
    piece_close(&first);
    piece_close(&piece);
    run_close(&run);
    run_close(&before);
}

static void gradients_are_slopes_through_both_states(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 904);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t trial = 0; variant->has_step && trial < 6; trial++) {
            struct attention_case is = piece_case(variant, 5e4, &random);

            check_slopes(is, below(&random, 3) == 0 ? 0 : below(&random, 60), &random);
        }
}

/* Near becomes far within the piece, at its ends, and before it. */
static void so_they_are_where_blocks_end(void **state)
{
    static const size_t cuts[][2] = {{1000, 24}, {1000, 23}, {1020, 40}, {1024, 30}, {2040, 8},
                                     {0, 1024},  {1, 1024},  {2100, 40}, {500, 1700}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 905);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
        for (size_t heads = 1; heads <= 8; heads += 7) {
            const struct variant variant =
                variant_of(i % 3 == 2 ? "linear:normalise=0" : "linear", "elu");
            const struct attention_case is =
                case_of(&variant, true, 1, heads, cuts[i][1], 4, 3);

            check_slopes(is, cuts[i][0], &random);
        }
}

/* Gradients of parameters are a piece's own, (heads) of each input. */
static void sum_parameters(const struct attention_run *run, double *sums)
{
    for (size_t i = 0; i < run->in_count; i++)
        for (size_t h = 0; run->in[i].parameter && h < run->is.desc.heads; h++)
            sums[i * run->is.desc.heads + h] +=
                (double)*tensor_row(&run->tensors[run_gradient(i)], 0, 0, h);
}

static void put_parameters(const struct attention_run *run, double *sums)
{
    for (size_t i = 0; i < run->in_count; i++)
        for (size_t h = 0; run->in[i].parameter && h < run->is.desc.heads; h++)
            *tensor_row(&run->tensors[run_gradient(i)], 0, 0, h) =
                (float)sums[i * run->is.desc.heads + h];
    free(sums);
}

/* The gradient of each piece's state0 is that of the state1 of the one before. */
static void check_chain(const struct attention_case *is, struct tn_random *random)
{
    enum { PIECES = 4 };
    const size_t N = is->desc.queries;
    struct attention_run whole, cut;
    struct piece pieces[PIECES];
    struct block states[PIECES + 1], gradients[PIECES + 1];
    size_t at[PIECES + 1] = {0, 0, 0, 0, N};
    double *const sums = take(TARN_ATTENTION_INPUTS * is->desc.heads, sizeof *sums);

    run_open(&whole, is);
    run_open(&cut, is);
    run_forward(&whole);
    run_backward(&whole);
    for (size_t i = 1; i < PIECES; i++)
        at[i] = tn_min(N - (PIECES - i), at[i - 1] + 1 + below(random, N / 2));
    for (size_t i = 0; i <= PIECES; i++) {
        states[i] = block_open(cut.state.size, 4, 0);
        gradients[i] = block_open(cut.state.size, 4, i == PIECES ? 0 : 0xff);
    }
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = piece_open(&cut, at[i], at[i + 1] - at[i], 1 + below(random, 3));
        piece_forward(&pieces[i], states[i].bytes, states[i + 1].bytes, NULL);
    }
    for (size_t i = PIECES; i-- > 0;) {
        piece_backward(&pieces[i], states[i].bytes, floats_of(&gradients[i + 1]),
                       floats_of(&gradients[i]));
        sum_parameters(&cut, sums);
    }
    put_parameters(&cut, sums);
    check_close(&cut, &whole, true, 2e-4);
    for (size_t i = 0; i < PIECES; i++)
        piece_close(&pieces[i]);
    for (size_t i = 0; i <= PIECES; i++) {
        block_close(&states[i]);
        block_close(&gradients[i]);
    }
    run_close(&whole);
    run_close(&cut);
}

static void gradients_of_pieces_are_those_of_one_pass(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 906);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t trial = 0; variant->has_step && trial < 4; trial++) {
            struct attention_case is = piece_case(variant, 2e5, &random);

            is.desc.queries = is.desc.keys = tn_max(8, is.desc.queries);
            check_chain(&is, &random);
        }
    for (size_t heads = 1; heads <= 9; heads += 4) {
        const struct variant linear = variant_of("linear", "elu");
        const struct attention_case is = case_of(&linear, true, 1, heads, 3000, 4, 3);

        check_chain(&is, &random);
    }
}

/* One thread and many: outputs, states and all gradients. */
static void check_threads(const struct attention_case *is, size_t past,
                          struct tn_random *random)
{
    static const size_t counts[] = {2, 3, 7};
    struct attention_case later = *is;
    struct attention_run one, many, before;

    later.desc.keys = is->desc.queries + past;
    run_open(&one, &later);
    run_open(&many, &later);
    later.desc.queries = past;
    run_open(&before, &later);
    struct piece first = piece_open(&before, 0, past, 1);
    struct piece piece = piece_open(&one, 0, is->desc.queries, 1);
    struct flow flow = flow_open(&one, &first, &piece, random);
    struct flow other = {.state1 = block_open(flow.state1.size, 4, 0xff),
                         .dstate0 = block_open(flow.state1.size, 4, 0xff)};

    piece_backward(&piece, flow.state0.bytes, floats_of(&flow.dstate1),
                   floats_of(&flow.dstate0));
    for (size_t t = 0; t < sizeof counts / sizeof counts[0]; t++) {
        struct piece again = piece_open(&many, 0, is->desc.queries, counts[t]);

        piece_forward(&again, flow.state0.bytes, other.state1.bytes, NULL);
        piece_backward(&again, flow.state0.bytes, floats_of(&flow.dstate1),
                       floats_of(&other.dstate0));
        check_same(&one, &many, true);
        piece_check_state(&one, &flow.state1, &other.state1, is->desc.queries);
        piece_check_state(&one, &flow.dstate0, &other.dstate0, 0);
        piece_close(&again);
    }
    flow_close(&flow);
    block_close(&other.state1);
    block_close(&other.dstate0);
    piece_close(&first);
    piece_close(&piece);
    run_close(&one);
    run_close(&many);
    run_close(&before);
}

static void states_and_gradients_do_not_depend_on_threads(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 907);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        if (variant->has_step) {
            const struct attention_case is = piece_case(variant, 1e5, &random);

            check_threads(&is, 1 + below(&random, 50), &random);
        }
    for (size_t heads = 1; heads <= 8; heads += 7) {
        const struct variant linear = variant_of("linear", "elu");
        const struct attention_case is = case_of(&linear, true, 1, heads, 2500, 8, 8);

        check_threads(&is, 700, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes_through_both_states),
        cmocka_unit_test(so_they_are_where_blocks_end),
        cmocka_unit_test(gradients_of_pieces_are_those_of_one_pass),
        cmocka_unit_test(states_and_gradients_do_not_depend_on_threads),
    };

    return cmocka_run_group_tests_name("state gradients", tests, NULL, NULL);
}
