/* SPDX-License-Identifier: MIT */
/* test_states.c - sequences in pieces: a forward from a state to a state is what single steps
 * are, bit for bit, however the sequence is cut. */
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"
#include "support/attention_piece.h"
#include "tarn/machine.h"

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
        piece_check_state(&steps, &steps.state, after, from + n);
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
                struct attention_case is = piece_case(variant, 2e5, &random);

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

static void check_whole(const struct attention_case *is, size_t threads)
{
    const size_t N = is->desc.queries;
    struct attention_run steps, whole;

    run_open(&steps, is);
    run_open(&whole, is);
    struct piece piece = piece_open(&whole, 0, N, threads);

    piece_forward(&piece, NULL, whole.state.bytes, NULL);
    run_steps(&steps, 0, N);
    piece_check_state(&steps, &steps.state, &whole.state, N);
    check_same(&whole, &steps, false);
    piece_close(&piece);
    run_close(&steps);
    run_close(&whole);
}

/* Far sums go on from the last of those that were tasks before. */
static void so_are_sequences_of_more_blocks_than_are_tasks_at_once(void **state)
{
    const struct variant variant = variant_of("linear", "elu");

    (void)state;
    for (size_t threads = 2; threads <= 3; threads++) {
        const struct attention_case is = case_of(&variant, true, 1, 1, 14000, 4, 3);

        check_whole(&is, threads);
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
        const struct attention_case is = piece_case(variant, 1e6, &random);
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
        piece_check_state(&padded, &want, &padded.state, N);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_single_steps_however_they_are_cut),
        cmocka_unit_test(so_are_pieces_of_long_sequences),
        cmocka_unit_test(so_are_sequences_of_more_blocks_than_are_tasks_at_once),
        cmocka_unit_test(lengths_are_the_positions_that_a_state_takes),
        cmocka_unit_test(a_short_sequence_in_long_arrays_stays_in_its_workspace),
    };

    return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
