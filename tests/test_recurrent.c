/* SPDX-License-Identifier: MIT */
/* test_recurrent.c - every kind that has a step: it is what forward computes, position by
 * position, and its state is a block of bytes that can be copied, moved and started again. */
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"
#include "tarn/machine.h"

static struct attention_case draw(const struct variant *variant, struct tn_random *random)
{
    struct attention_case is = case_draw(variant, true, 2e6, random);

    is.has_lengths = false; /* a step takes none */
    return is;
}

static void run_steps(struct attention_run *run, size_t from, size_t to)
{
    for (size_t n = from; n < to; n++)
        run_step(run, n);
}

static void step_equals_forward(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 401);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t trial = 0; variant->has_step && trial < 8; trial++) {
            const struct attention_case is = draw(variant, &random);
            struct attention_run parallel, recurrent;

            run_open(&parallel, &is);
            run_open(&recurrent, &is);
            run_forward(&parallel);
            run_steps(&recurrent, 0, is.desc.queries);
            check_close(&recurrent, &parallel, false, 1e-4);
            run_close(&parallel);
            run_close(&recurrent);
        }
}

/* A copy of the state, half way, goes on as the state itself does, in another run of the plan.
 * */
static void a_copied_state_continues_alike(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 402);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        const struct attention_case is = draw(variant, &random);
        const size_t N = is.desc.queries;
        struct attention_run whole, copied;

        run_open(&whole, &is);
        run_open(&copied, &is);
        run_steps(&whole, 0, N / 2);
        run_steps(&copied, 0, N / 2);
        memset(copied.state.bytes, 0xff, copied.state.size);
        memcpy(copied.state.bytes, whole.state.bytes, whole.state.size);
        run_steps(&whole, N / 2, N);
        run_steps(&copied, N / 2, N);
        check_same(&whole, &copied, false);
        run_close(&whole);
        run_close(&copied);
    }
}

static void zeros_start_again(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 403);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        const struct attention_case is = draw(variant, &random);
        struct attention_run once, twice;

        run_open(&once, &is);
        run_open(&twice, &is);
        run_steps(&once, 0, is.desc.queries);
        run_steps(&twice, 0, is.desc.queries);
        memset(twice.state.bytes, 0, twice.state.size);
        run_steps(&twice, 0, is.desc.queries);
        check_same(&once, &twice, false);
        run_close(&once);
        run_close(&twice);
    }
}

/* The next position of the sequence that each state is of. */
static void step_some(struct attention_run *run, const size_t *which, const size_t *positions,
                      size_t n)
{
    const tarn_attention_arrays all = run_arrays(run);
    void *states[CASE_BATCH_MAX];
    tarn_error err = {0};

    for (size_t s = 0; s < n; s++)
        states[s] = run->states[which[s]];

    /* Their rows do not lie in steps of one stride: a buffer has them together. */
    tarn_attention_arrays some = all;
    float *buffers[TARN_ATTENTION_INPUTS + 1];

    for (size_t i = 0; i <= run->in_count; i++) {
        const struct tensor *const t = &run->tensors[i < run->in_count ? i : Y];
        const size_t row = t->H * t->width;

        buffers[i] = take(n * row, sizeof(float));
        if (i < run->in_count && run->in[i].parameter)
            continue;
        for (size_t s = 0; s < n * t->H && i < run->in_count; s++)
            memcpy(buffers[i] + s * t->width,
                   tensor_row(t, which[s / t->H], positions[s / t->H], s % t->H),
                   t->width * sizeof(float));
        if (i < run->in_count)
            some.in[i] = (tarn_input){buffers[i], (ptrdiff_t)row, 0, (ptrdiff_t)t->width};
        else
            some.y = (tarn_output){buffers[i], (ptrdiff_t)row, 0, (ptrdiff_t)t->width};
    }
    check_ok(tarn_attention_step(run->plan, &some, states, n, run->work.bytes, &err), &err);
    const struct tensor *const y = &run->tensors[Y];

    for (size_t s = 0; s < n * y->H; s++)
        memcpy(tensor_row(y, which[s / y->H], positions[s / y->H], s % y->H),
               buffers[run->in_count] + s * y->width, y->width * sizeof(float));
    for (size_t i = 0; i <= run->in_count; i++)
        free(buffers[i]);
}

/* At every step some of the sequences, in any order. */
static void run_scattered(struct attention_run *run, struct tn_random *random)
{
    const size_t B = run->is.desc.batch, N = run->is.desc.queries;
    size_t done[CASE_BATCH_MAX] = {0}, left = B * N;

    while (left > 0) {
        size_t which[CASE_BATCH_MAX], positions[CASE_BATCH_MAX], n = 0;
        const size_t first = below(random, B);

        for (size_t i = 0; i < B; i++) {
            const size_t b = (first + i) % B;

            if (done[b] < N && below(random, 2) == 0) {
                which[n] = b;
                positions[n++] = done[b]++;
            }
        }
        step_some(run, which, positions, n);
        left -= n;
    }
}

static void sequences_at_positions_of_their_own_are_what_they_are_together(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 405);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        struct attention_case is = draw(variant, &random);
        struct attention_run together, scattered;

        is.desc.batch = CASE_BATCH_MAX;
        run_open(&together, &is);
        run_open(&scattered, &is);
        run_steps(&together, 0, is.desc.queries);
        run_scattered(&scattered, &random);
        check_same(&together, &scattered, false);
        assert_memory_equal(together.state.bytes, scattered.state.bytes, together.state.size);
        run_close(&together);
        run_close(&scattered);
    }
}

/* The layout of a state does not depend on the instruction set. */
static void a_state_moves_to_another_cpu(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 404);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t c = 0; variant->has_step && tarn_cpu_name(c); c++) {
            struct attention_case is = draw(variant, &random);
            const size_t N = is.desc.queries;
            struct attention_run here, there;

            is.desc.host.cpu = tarn_cpu_name(c);
            run_open(&here, &is);
            is.desc.host.cpu = "portable";
            run_open(&there, &is);
            assert_int_equal(here.state.size, there.state.size);
            run_steps(&here, 0, N / 2);
            run_steps(&there, 0, N / 2);
            memcpy(there.state.bytes, here.state.bytes, here.state.size);
            run_steps(&here, N / 2, N);
            run_steps(&there, N / 2, N);
            check_close(&there, &here, false, 1e-4);
            run_close(&here);
            run_close(&there);
        }
}

static size_t state_size(const char *kind, bool causal, size_t length)
{
    const struct variant variant = variant_of(kind, NULL);
    const struct attention_case is = case_of(&variant, causal, 2, 3, length, 16, 8);
    tarn_attention *plan = NULL;

    assert_int_equal(tarn_attention_create(&plan, &is.desc, NULL), TARN_OK);
    const size_t size = tarn_attention_state_size(plan);

    tarn_attention_free(plan);
    return size;
}

static void the_state_of_linear_does_not_depend_on_the_length(void **state)
{
    (void)state;
    assert_true(state_size("linear", true, 1) > 0);
    assert_int_equal(state_size("linear", true, 1), state_size("linear", true, 100));
    assert_int_equal(state_size("linear", true, 1), state_size("linear", true, 10000000));
}

static void plans_without_a_recurrent_form_have_no_state(void **state)
{
    const tarn_table_row *kind;

    (void)state;
    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++)
        assert_int_equal(state_size(kind->name, false, 10), 0);
    assert_int_equal(state_size("lsh", true, 10), 0);
}

static void check_full(struct attention_run *run)
{
    const tarn_attention_arrays arrays = run_arrays(run);
    float *const before = tensor_copy(&run->tensors[Y]);
    tarn_error err = {0};

    assert_int_equal(
        tarn_attention_step(run->plan, &arrays, run->states, 2, run->work.bytes, &err),
        TARN_EINVAL);
    assert_int_equal(err.status, TARN_EINVAL);
    assert_non_null(strstr(err.text, "state"));
    float *const after = tensor_copy(&run->tensors[Y]);

    assert_memory_equal(before, after, tensor_count(&run->tensors[Y]) * sizeof(float));
    free(before);
    free(after);
}

static void a_full_cache_is_refused(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        const struct attention_case is = case_of(variant, true, 2, 2, 5, 3, 4);
        struct attention_run run;

        if (!variant->has_step)
            continue;
        run_open(&run, &is);
        run_steps(&run, 0, 5);
        if (state_size(variant->kind, true, 5) != state_size(variant->kind, true, 6))
            check_full(&run);
        else
            run_step(&run, 0); /* it never is full */
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_equals_forward),
        cmocka_unit_test(a_copied_state_continues_alike),
        cmocka_unit_test(zeros_start_again),
        cmocka_unit_test(sequences_at_positions_of_their_own_are_what_they_are_together),
        cmocka_unit_test(a_state_moves_to_another_cpu),
        cmocka_unit_test(the_state_of_linear_does_not_depend_on_the_length),
        cmocka_unit_test(plans_without_a_recurrent_form_have_no_state),
        cmocka_unit_test(a_full_cache_is_refused),
    };

    return cmocka_run_group_tests_name("recurrent", tests, NULL, NULL);
}
