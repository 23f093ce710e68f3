/* SPDX-License-Identifier: MIT */
/* test_states.c - sequences in pieces: a forward from a state to a state is what single steps
 * are, bit for bit, however the sequence is cut; gradients flow through both states. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/attention_kind.h"
#include "support/attention_case.h"
#include "tarn/machine.h"

/* Positions from .. from + n of a run, with a plan and memory of its own. */
struct piece {
    const struct attention_run *of;
    tarn_attention *plan;
    size_t from, n;
    struct block saved, work;
};

static struct piece piece_open(const struct attention_run *of, size_t from, size_t n,
                               size_t threads)
{
    tarn_attention_desc desc = of->is.desc;
    struct piece piece = {.of = of, .from = from, .n = n};
    tarn_error err = {0};

    desc.queries = n; /* desc.keys stays: all pieces go into one cache */
    desc.host.threads = threads;
    check_ok(tarn_attention_create(&piece.plan, &desc, &err), &err);
    assert_int_equal(tarn_attention_state_size(piece.plan),
                     tarn_attention_state_size(of->plan));
    piece.saved = block_open(tarn_attention_saved_size(piece.plan), 3, 0xff);
    piece.work = block_open(tarn_attention_workspace_size(piece.plan), 61, 0xff);
    return piece;
}

static void piece_close(struct piece *piece)
{
    tarn_attention_free(piece->plan);
    block_close(&piece->saved);
    block_close(&piece->work);
}

static tarn_attention_arrays piece_arrays(const struct piece *piece)
{
    const struct attention_run *const run = piece->of;
    tarn_attention_arrays arrays = run_arrays(run);

    for (size_t i = 0; i < run->in_count; i++) {
        const size_t from = run->in[i].parameter ? 0 : piece->from;

        arrays.in[i].data = tensor_row(&run->tensors[i], 0, from, 0);
        arrays.din[i].data = tensor_row(&run->tensors[run_gradient(i)], 0, from, 0);
    }
    arrays.y.data = tensor_row(&run->tensors[Y], 0, piece->from, 0);
    arrays.dy.data = tensor_row(&run->tensors[DY], 0, piece->from, 0);
    return arrays;
}

static void piece_forward(struct piece *piece, const void *state0, void *state1,
                          const size_t *lengths)
{
    tarn_attention_arrays arrays = piece_arrays(piece);
    tarn_error err = {0};

    arrays.state0 = state0;
    arrays.state1 = state1;
    arrays.key_lengths = lengths;
    check_ok(tarn_attention_forward(piece->plan, &arrays, piece->saved.bytes, piece->work.bytes,
                                    &err),
             &err);
    pool_check(&piece->of->inputs, run_name(piece->of));
    pool_check(&piece->of->outputs, run_name(piece->of));
    block_check(&piece->saved, "saved");
    block_check(&piece->work, "workspace");
}

static void piece_backward(struct piece *piece, const void *state0, const float *dstate1,
                           float *dstate0)
{
    tarn_attention_arrays arrays = piece_arrays(piece);
    tarn_error err = {0};

    arrays.state0 = state0;
    arrays.dstate1 = dstate1;
    arrays.dstate0 = dstate0;
    check_ok(tarn_attention_backward(piece->plan, &arrays, piece->saved.bytes,
                                     piece->work.bytes, &err),
             &err);
    pool_check(&piece->of->outputs, run_name(piece->of));
    block_check(&piece->saved, "saved");
    block_check(&piece->work, "workspace");
}

static struct attention_case draw(const struct variant *variant, double budget,
                                  struct tn_random *random)
{
    struct attention_case is = case_draw(variant, true, budget, random);

    is.has_lengths = false;
    return is;
}

/* ---- Forward ------------------------------------------------------------ */

static void check_state(const struct attention_run *run, const struct block *want,
                        const struct block *got, size_t position)
{
    for (size_t i = 0; i < want->size; i++)
        if (want->bytes[i] != got->bytes[i])
            fail_msg("%s: state has another byte %zu of %zu after %zu positions", run_name(run),
                     i, want->size, position);
}

/* Positions from .. to, without a look at all guards after each. */
static void run_steps(struct attention_run *run, size_t from, size_t to)
{
    struct piece piece = {.of = run, .plan = run->plan};
    tarn_error err = {0};

    for (piece.from = from; piece.from < to; piece.from++) {
        const tarn_attention_arrays arrays = piece_arrays(&piece);

        check_ok(tarn_attention_step(run->plan, &arrays, run->states, run->is.desc.batch,
                                     run->work.bytes, &err),
                 &err);
    }
}

/* Cut anywhere, in place or not, by any number of threads. */
static void check_cuts(const struct attention_case *is, struct tn_random *random)
{
    const size_t N = is->desc.queries;
    struct attention_run steps, pieces;

    run_open(&steps, is);
    run_open(&pieces, is);
    struct block other = block_open(pieces.state.size, sizeof(float), 0xff);
    struct block *before = NULL, *after = &pieces.state;

    for (size_t from = 0, n; from < N; from += n) {
        n = below(random, 4) == 0 ? N - from : 1 + below(random, N - from);
        struct piece piece = piece_open(&pieces, from, n, ONE_OF(random, 1, 2, 3, 7));

        if (before && below(random, 2) == 0)
            after = before == &other ? &pieces.state : &other;
        memset(piece.work.bytes, 0xff, piece.work.size);
        piece_forward(&piece, before ? before->bytes : NULL, after->bytes, NULL);
        run_steps(&steps, from, from + n);
        check_state(&steps, &steps.state, after, from + n);
        before = after;
        piece_close(&piece);
    }
    check_same(&pieces, &steps, false);
    block_close(&other);
    run_close(&steps);
    run_close(&pieces);
}

static void pieces_are_single_steps_however_they_are_cut(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 901);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t c = 0; variant->has_step && tarn_cpu_name(c); c++)
            for (size_t trial = 0; trial < 3; trial++) {
                struct attention_case is = draw(variant, 2e5, &random);

                is.desc.host.cpu = tarn_cpu_name(c);
                check_cuts(&is, &random);
            }
}

/* Several blocks of linear attention's sums: heads as tasks, and blocks as tasks. */
static void so_are_pieces_of_long_sequences(void **state)
{
    static const char *const kinds[] = {"linear", "linear:chunk=16", "linear:normalise=0"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 902);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t trial = 0; trial < 4; trial++) {
            const struct variant variant = variant_of(kinds[i], "elu");
            const size_t heads = ONE_OF(&random, 1, 2, 5, 9);
            struct attention_case is =
                case_of(&variant, true, 1 + below(&random, 2), heads, 3500, 8, 5);

            is.layout = (enum layout)below(&random, LAYOUTS);
            check_cuts(&is, &random);
        }
}

/* With lengths each sequence goes on by its own. */
static void lengths_are_the_positions_that_a_state_takes(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 903);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        const struct attention_case is = draw(variant, 1e6, &random);
        const size_t N = is.desc.queries, B = is.desc.batch;
        size_t lengths[CASE_BATCH_MAX];
        struct attention_run steps, padded;

        run_open(&steps, &is);
        run_open(&padded, &is);
        struct piece piece = piece_open(&padded, 0, N, 1 + below(&random, 3));

        for (size_t b = 0; b < CASE_BATCH_MAX; b++)
            lengths[b] = below(&random, N + 1);
        for (size_t n = 0; n < N; n++) {
            run_step(&steps, n);
            for (size_t b = 0; b < B; b++)
                if (n + 1 == lengths[b]) /* in the place of a state that goes on */
                    memcpy((char *)padded.states[b], steps.states[b], steps.state.size / B);
        }
        struct block want = block_open(padded.state.size, sizeof(float), 0);

        memcpy(want.bytes, padded.state.bytes, want.size);
        memset(padded.state.bytes, 0xff, padded.state.size);
        piece_forward(&piece, NULL, padded.state.bytes, lengths);
        check_state(&padded, &want, &padded.state, N);
        for (size_t b = 0; b < B; b++)
            for (size_t n = 0; n < lengths[b]; n++)
                for (size_t h = 0; h < is.desc.heads; h++)
                    assert_memory_equal(tensor_row(&padded.tensors[Y], b, n, h),
                                        tensor_row(&steps.tensors[Y], b, n, h),
                                        is.desc.value_width * sizeof(float));
        check_finite(&padded, false);
        block_close(&want);
        piece_close(&piece);
        run_close(&steps);
        run_close(&padded);
    }
}

/* Blocks of positions are tasks here, and all that is past the length belongs to the last. */
static void a_short_sequence_in_long_arrays_stays_in_its_workspace(void **state)
{
    enum { LONG = 20000, SHORT = 2000, WIDTH = 4 };
    const size_t lengths[] = {SHORT};
    float *const in = take(3 * LONG * WIDTH, sizeof *in), *const y = take(2 * LONG * WIDTH, 4);
    struct tn_random random;
    struct block states[2];

    (void)state;
    tn_random_seed(&random, 905);
    for (size_t i = 0; i < 3 * LONG * WIDTH; i++)
        in[i] = (float)tn_random_normal(&random);
    for (size_t i = 0; i < 2; i++) {
        const size_t N = i == 0 ? LONG : SHORT;
        const tarn_attention_desc desc = {.kind = "linear",
                                          .causal = true,
                                          .batch = 1,
                                          .heads = 1,
                                          .queries = N,
                                          .keys = N,
                                          .query_width = WIDTH,
                                          .value_width = WIDTH,
                                          .host = {.threads = 2, .cpu = forced_cpu()}};
        tarn_attention *plan;
        tarn_error err;

        check_ok(tarn_attention_create(&plan, &desc, &err), &err);
        struct block work = block_open(tarn_attention_workspace_size(plan), 61, 0xff);

        states[i] = block_open(tarn_attention_state_size(plan), sizeof(float), 0);
        tarn_attention_arrays arrays = {
            .y = {y + i * LONG * WIDTH, 0, WIDTH, 0},
            .key_lengths = lengths,
            .state1 = states[i].bytes,
        };

        for (size_t k = 0; k < 3; k++)
            arrays.in[k] = (tarn_input){in + k * LONG * WIDTH, 0, WIDTH, 0};
        check_ok(tarn_attention_forward(plan, &arrays, NULL, work.bytes, &err), &err);
        block_check(&work, "workspace");
        block_close(&work);
        tarn_attention_free(plan);
    }
    assert_memory_equal(states[0].bytes, states[1].bytes, states[0].size);
    assert_memory_equal(y, y + LONG * WIDTH, SHORT * WIDTH * sizeof *y);
    block_close(&states[0]);
    block_close(&states[1]);
    free(in);
    free(y);
}

/* ---- Gradients ---------------------------------------------------------- */

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
            struct attention_case is = draw(variant, 5e4, &random);

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
            struct attention_case is = draw(variant, 2e5, &random);

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
        check_state(&one, &flow.state1, &other.state1, is->desc.queries);
        check_state(&one, &flow.dstate0, &other.dstate0, 0);
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
            const struct attention_case is = draw(variant, 1e5, &random);

            check_threads(&is, 1 + below(&random, 50), &random);
        }
    for (size_t heads = 1; heads <= 8; heads += 7) {
        const struct variant linear = variant_of("linear", "elu");
        const struct attention_case is = case_of(&linear, true, 1, heads, 2500, 8, 8);

        check_threads(&is, 700, &random);
    }
}

/* ---- Refusals ----------------------------------------------------------- */

static void check_refused(struct piece *piece, const tarn_attention_arrays *arrays,
                          bool backward, const char *text)
{
    tarn_error err = {0};
    const tarn_status status =
        backward ? tarn_attention_backward(piece->plan, arrays, piece->saved.bytes,
                                           piece->work.bytes, &err)
                 : tarn_attention_forward(piece->plan, arrays, piece->saved.bytes,
                                          piece->work.bytes, &err);

    assert_int_equal(status, TARN_EINVAL);
    if (!strstr(err.text, text))
        fail_msg("'%s' has no '%s'", err.text, text);
    for (size_t i = 0; i < piece->of->outputs.count; i++)
        assert_true(isnan(piece->of->outputs.floats[i]));
}

static void states_that_cannot_be_used_are_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct attention_case is = case_of(variant, causal, 2, 2, 5, 3, 4);
            struct attention_run run;
            float memory[64] = {0};

            run_open(&run, &is);
            struct piece piece = piece_open(&run, 0, 5, 1);
            tarn_attention_arrays arrays = piece_arrays(&piece);

            if (!variant->has_step || !causal) {
                arrays.state0 = memory;
                check_refused(&piece, &arrays, false, "attention: ");
                arrays.state0 = NULL;
                arrays.state1 = memory;
                check_refused(&piece, &arrays, false, "attention: ");
                arrays.state1 = NULL;
                arrays.dstate0 = memory;
                check_refused(&piece, &arrays, true, "attention: ");
            } else {
                arrays.state0 = run.state.bytes + 1;
                check_refused(&piece, &arrays, false, "state0 is misaligned");
                arrays.state0 = run.state.bytes;
                arrays.state1 = run.state.bytes + 2;
                check_refused(&piece, &arrays, false, "state1 is misaligned");
                arrays.dstate1 = (const float *)(const void *)(run.state.bytes + 3);
                arrays.state1 = NULL;
                check_refused(&piece, &arrays, true, "dstate1 is misaligned");
            }
            piece_close(&piece);
            run_close(&run);
        }
}

static bool same_kind(const struct variant *a, const struct variant *b)
{
    const size_t name = strcspn(a->kind, ":");

    return name == strcspn(b->kind, ":") && strncmp(a->kind, b->kind, name) == 0;
}

static void check_foreign(const struct variant *variant, const struct variant *other,
                          size_t width)
{
    const struct attention_case is = case_of(variant, true, 1, 2, 5, 3, 4);
    const struct attention_case others = case_of(other, true, 1, 2, 5, 3, width);
    struct attention_run run, from;
    tarn_error err = {0};

    run_open(&run, &is);
    run_open(&from, &others);
    run_step(&from, 0);
    struct piece piece = piece_open(&run, 0, 5, 1);
    tarn_attention_arrays arrays = piece_arrays(&piece);

    arrays.state0 = from.state.bytes;
    arrays.state1 = run.state.bytes;
    check_refused(&piece, &arrays, false, "state0[0] is a state of another");
    assert_int_equal(
        tarn_attention_step(run.plan, &arrays, from.states, 1, run.work.bytes, &err),
        TARN_EINVAL);
    assert_non_null(strstr(err.text, "states[0] is a state of another"));
    piece_close(&piece);
    run_close(&run);
    run_close(&from);
}

static void states_of_another_attention_are_refused(void **state)
{
    const struct variant *variant, *other;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        check_foreign(variant, variant, 5); /* of another width */
        for (size_t j = 0; (other = variant_at(j)) != NULL; j++)
            if (other->has_step && !same_kind(variant, other))
                check_foreign(variant, other, 4);
    }
}

static void more_positions_than_a_cache_has_are_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct attention_case is = case_of(variant, true, 2, 2, 5, 3, 4);
        struct attention_run run;

        if (!variant->has_step)
            continue;
        is.desc.keys = 7;
        run_open(&run, &is);
        for (size_t n = 0; n < 3; n++) /* 5 more are one too many for a cache of 7 */
            run_step(&run, n);
        memset(run.outputs.floats, 0xff, run.outputs.count * sizeof(float));
        struct block copy = block_open(run.state.size, 4, 0);
        struct piece piece = piece_open(&run, 0, 5, 1);
        tarn_attention_arrays arrays = piece_arrays(&piece);

        memcpy(copy.bytes, run.state.bytes, copy.size);
        arrays.state0 = run.state.bytes;
        if (strncmp(variant->kind, "linear", 6) != 0 && strcmp(variant->kind, "gated") != 0) {
            arrays.state1 = run.state.bytes;
            check_refused(&piece, &arrays, false, "state0[0] is full");
            arrays.state1 = NULL;
            arrays.key_lengths = (const size_t[]){4, 4};
            check_refused(&piece, &arrays, false, "state1 is NULL");
            check_state(&run, &copy, &run.state, 3);
        } else { /* a state that does not grow takes them */
            arrays.state1 = run.state.bytes;
            assert_int_equal(
                tarn_attention_forward(piece.plan, &arrays, NULL, piece.work.bytes, NULL),
                TARN_OK);
            assert_int_equal(tn_state_count(run.state.bytes), 8);
        }
        piece_close(&piece);
        block_close(&copy);
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_single_steps_however_they_are_cut),
        cmocka_unit_test(so_are_pieces_of_long_sequences),
        cmocka_unit_test(lengths_are_the_positions_that_a_state_takes),
        cmocka_unit_test(a_short_sequence_in_long_arrays_stays_in_its_workspace),
        cmocka_unit_test(gradients_are_slopes_through_both_states),
        cmocka_unit_test(so_they_are_where_blocks_end),
        cmocka_unit_test(gradients_of_pieces_are_those_of_one_pass),
        cmocka_unit_test(states_and_gradients_do_not_depend_on_threads),
        cmocka_unit_test(states_that_cannot_be_used_are_refused),
        cmocka_unit_test(states_of_another_attention_are_refused),
        cmocka_unit_test(more_positions_than_a_cache_has_are_refused),
    };

    return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
