/* SPDX-License-Identifier: MIT */
/* test_masking.c - what a position must not see, later keys and keys past a length, has no
 * effect and gets no gradient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"

typedef void check_case(const struct attention_case *is, struct tn_random *random);

static void for_cases(bool causal, size_t trials, uint64_t seed, check_case *check)
{
    const struct variant *variant;
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t trial = 0; trial < trials; trial++) {
            const struct attention_case is = case_draw(variant, causal, 1e6, &random);

            check(&is, &random);
        }
}

/* Sets rows n >= from, or of each sequence those past its length, to a x + b. */
static void change_rows(const struct tensor *t, const size_t *from, float a, float b)
{
    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; r / t->H % t->n >= from[r / t->H / t->n] && e < t->width; e++)
            tensor_row_at(t, r)[e] = a * tensor_row_at(t, r)[e] + b;
}

static void check_rows_zero(const struct attention_run *run, enum array array,
                            const size_t *from)
{
    const struct tensor *const t = &run->tensors[array];

    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; r / t->H % t->n >= from[r / t->H / t->n] && e < t->width; e++)
            if (tensor_row_at(t, r)[e] != 0.0f)
                fail_msg("%s: %s has %g in row %zu, not 0", run_name(run),
                         run_array_name(run, array), (double)tensor_row_at(t, r)[e], r);
}

/* ---- causal ------------------------------------------------------------- */

static void check_later(const struct attention_case *is, struct tn_random *random)
{
    const size_t cut = below(random, is->desc.queries + 1);
    const size_t from[CASE_BATCH_MAX] = {cut, cut, cut};
    struct attention_run a, b;

    run_open(&a, is);
    run_open(&b, is);
    for (size_t i = 0; i < b.in_count; i++)
        if (!b.in[i].parameter &&
            (is->has_keys || b.in[i].at_keys)) /* or they change the hashes of all */
            change_rows(&b.tensors[i], from, -2.0f, 0.5f);
    run_forward(&a);
    run_forward(&b);
    for (size_t r = 0; r < tensor_rows(&a.tensors[Y]); r++)
        if (r / is->desc.heads % is->desc.queries < cut &&
            memcmp(tensor_row_at(&a.tensors[Y], r), tensor_row_at(&b.tensors[Y], r),
                   is->desc.value_width * sizeof(float)) != 0)
            fail_msg("%s: row %zu depends on what comes after %zu", run_name(&a), r, cut);
    run_close(&a);
    run_close(&b);
}

static void causal_outputs_do_not_depend_on_later_inputs(void **state)
{
    (void)state;
    for_cases(true, 6, 501, check_later);
}

static void check_later_gradients(const struct attention_case *is, struct tn_random *random)
{
    const size_t cut = below(random, is->desc.queries + 1);
    const size_t from[CASE_BATCH_MAX] = {cut, cut, cut};
    struct attention_run run;

    run_open(&run, is);
    change_rows(&run.tensors[DY], from, 0.0f, 0.0f);
    run_forward(&run);
    run_backward(&run);
    for (size_t i = 0; i < run.in_count; i++)
        if (!run.in[i].parameter)
            check_rows_zero(&run, run_gradient(i), from);
    run_close(&run);
}

static void causal_losses_of_early_outputs_have_no_later_gradient(void **state)
{
    (void)state;
    for_cases(true, 3, 502, check_later_gradients);
}

/* ---- lengths ------------------------------------------------------------ */

/* Whether an input ends at a length. Without keys, positions past it are no queries either. */
static bool is_cut(const struct attention_run *run, size_t i)
{
    return run->in[i].at_keys || !run->is.has_keys;
}

static void check_padding(const struct attention_case *drawn, struct tn_random *random)
{
    struct attention_case is = *drawn;
    struct attention_run a, b;

    (void)random;
    is.has_lengths = true;
    run_open(&a, &is);
    run_open(&b, &is);
    for (size_t i = 0; i < b.in_count; i++)
        if (is_cut(&b, i))
            change_rows(&b.tensors[i], is.lengths, 1.0f, NAN);
    if (!is.has_keys)
        change_rows(&b.tensors[DY], is.lengths, 1.0f, NAN);
    run_forward(&a);
    run_forward(&b);
    run_backward(&a);
    run_backward(&b);
    check_same(&a, &b, true);
    check_finite(&b, true);
    for (size_t i = 0; i < b.in_count; i++)
        if (is_cut(&b, i))
            check_rows_zero(&b, run_gradient(i), is.lengths);
    run_close(&a);
    run_close(&b);
}

static void what_is_past_a_length_is_never_looked_at(void **state)
{
    (void)state;
    for_cases(true, 3, 503, check_padding);
    for_cases(false, 3, 504, check_padding);
}

/* Copies the first rows of every sequence, as many as `to` has. */
static void copy_rows(const struct tensor *to, const struct tensor *from)
{
    for (size_t b = 0; b < to->B; b++)
        for (size_t n = 0; n < to->n; n++)
            for (size_t h = 0; h < to->H; h++)
                memcpy(tensor_row(to, b, n, h), tensor_row(from, b, n, h),
                       to->width * sizeof(float));
}

/* The longer run with its keys cut by a length against one that has no more than these. Queries
 * that the shorter has not are left out of the loss. */
static void check_unpadded(const struct attention_case *drawn, struct tn_random *random)
{
    struct attention_case is = *drawn;
    const size_t length = 1 + below(random, is.desc.keys);
    const bool same_queries = !is.desc.causal && is.has_keys;
    const size_t from[CASE_BATCH_MAX] = {length, length, length};
    struct attention_run padded, plain;

    is.has_lengths = true;
    memcpy(is.lengths, from, sizeof from);
    run_open(&padded, &is);
    is.has_lengths = false;
    is.desc.keys = length;
    is.desc.queries = same_queries ? is.desc.queries : length;
    run_open(&plain, &is);
    if (!same_queries)
        change_rows(&padded.tensors[DY], from, 0.0f, 0.0f);
    for (size_t array = Q; array <= DY; array++)
        copy_rows(&plain.tensors[array], &padded.tensors[array]);
    run_forward(&padded);
    run_forward(&plain);
    run_backward(&padded);
    run_backward(&plain);
    struct attention_run cut = plain; /* the rows of `padded` that `plain` has, in its shape */

    cut.outputs = pool_open(&cut.tensors[Y], ARRAYS - Y, is.layout);
    for (size_t array = Y; array < ARRAYS; array++)
        copy_rows(&cut.tensors[array], &padded.tensors[array]);
    check_close(&cut, &plain, true, 1e-4);
    pool_close(&cut.outputs);
    run_close(&padded);
    run_close(&plain);
}

static void padded_equals_unpadded(void **state)
{
    (void)state;
    for_cases(true, 3, 505, check_unpadded);
    for_cases(false, 3, 506, check_unpadded);
}

/* ---- nothing to see ----------------------------------------------------- */

static void check_blind(const struct attention_case *drawn, struct tn_random *random)
{
    struct attention_case is = *drawn;
    const size_t none[CASE_BATCH_MAX] = {0};
    struct attention_run run;

    (void)random;
    is.has_lengths = true;
    memcpy(is.lengths, none, sizeof none);
    run_open(&run, &is);
    run_forward(&run);
    run_backward(&run);
    for (size_t array = Y; array < ARRAYS; array++)
        check_rows_zero(&run, (enum array)array, none);
    run_close(&run);
}

static void without_keys_outputs_and_gradients_are_zero(void **state)
{
    (void)state;
    for_cases(true, 1, 507, check_blind);
    for_cases(false, 1, 508, check_blind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_outputs_do_not_depend_on_later_inputs),
        cmocka_unit_test(causal_losses_of_early_outputs_have_no_later_gradient),
        cmocka_unit_test(what_is_past_a_length_is_never_looked_at),
        cmocka_unit_test(padded_equals_unpadded),
        cmocka_unit_test(without_keys_outputs_and_gradients_are_zero),
    };

    return cmocka_run_group_tests_name("masking", tests, NULL, NULL);
}
