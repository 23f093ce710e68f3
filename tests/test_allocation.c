/* SPDX-License-Identifier: MIT */
/* test_allocation.c - forward, backward and step allocate nothing. This program's own malloc
 * and its kin count the calls of everything in the process, and hand them to glibc. */
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/attention_case.h"
#include "support/count_calls.h"

#ifdef COUNTS_CALLS

/* A forward to states and a backward from them. */
static tarn_status pieces(struct attention_run *run)
{
    tarn_attention_arrays arrays = run_arrays(run);

    arrays.state1 = run->state.bytes;
    const tarn_status status =
        tarn_attention_forward(run->plan, &arrays, run->saved.bytes, run->work.bytes, NULL);

    memset(run->state.bytes, 0, run->state.size); /* a gradient of zeros, and empty again */
    arrays.dstate1 = (const float *)arrays.state1;
    return status == TARN_OK ? tarn_attention_backward(run->plan, &arrays, run->saved.bytes,
                                                       run->work.bytes, NULL)
                             : status;
}

/* Calls of malloc and its kin by one round of calls of the library. */
static size_t allocations(struct attention_run *run, bool steps)
{
    const tarn_attention_arrays arrays = run_arrays(run);
    const size_t before = atomic_load(&calls);
    tarn_status status =
        tarn_attention_forward(run->plan, &arrays, run->saved.bytes, run->work.bytes, NULL);

    if (status == TARN_OK)
        status = tarn_attention_backward(run->plan, &arrays, run->saved.bytes, run->work.bytes,
                                         NULL);
    if (steps && status == TARN_OK)
        status = pieces(run);
    for (size_t i = 0; steps && status == TARN_OK && i < 3; i++)
        status = tarn_attention_step(run->plan, &arrays, run->states, run->is.desc.batch,
                                     run->work.bytes, NULL);
    const size_t made = atomic_load(&calls) - before;

    assert_int_equal(status, TARN_OK);
    return made;
}

/* After a round to warm up, in which the threads are started. */
static void check_case(const struct attention_case *is, bool steps)
{
    struct attention_run run;

    run_open(&run, is);
    allocations(&run, steps);
    assert_int_equal(allocations(&run, steps), 0);
    run_close(&run);
}

static void no_call_allocates(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t causal = 0; causal < 2; causal++) {
            const bool steps = causal && variant->has_step;
            const struct attention_case few = case_of(variant, causal, 1, 2, 130, 8, 7);
            const struct attention_case many = case_of(variant, causal, 3, 30, 10, 64, 65);

            check_case(&few, steps);
            check_case(&many, steps);
        }
}

static void segments_allocate_nothing(void **state)
{
    static const char *const kinds[] = {"linear", "linear:chunk=24", "softmax", "lsh"};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const struct variant variant = variant_of(kinds[k], NULL);
        const struct attention_case is = case_of(&variant, true, 1, 1, 2000, 8, 8);

        check_case(&is, false);
    }
}

static void dot_products_allocate_nothing(void **state)
{
    enum { N = 700, D = 8, M = 5 };
    const tarn_dot_product_sizes sizes = {1, 1, N, D, M, {.threads = 2}};
    void *const work = take(tarn_causal_dot_product_workspace_size(&sizes), 1);
    float *const x = take((size_t)N * D, sizeof *x), *const dx = take((size_t)N * D, sizeof *x);
    float *const dk = take((size_t)N * D, sizeof *x), *const v = take((size_t)N * M, sizeof *x);
    float *const y = take((size_t)N * M, sizeof *x);
    const tarn_input q = {x, 0, D, 0}, values = {v, 0, M, 0};
    size_t made = 0;

    (void)state;
    for (size_t round = 0; round < 2; round++) {
        const size_t before = atomic_load(&calls);

        tarn_causal_dot_product_workspace_size(&sizes);
        tarn_causal_dot_product(&sizes, (tarn_output){y, 0, M, 0}, q, q, values, work, NULL);
        tarn_causal_dot_product_backward(&sizes, (tarn_output){dx, 0, D, 0},
                                         (tarn_output){dk, 0, D, 0}, (tarn_output){y, 0, M, 0},
                                         q, q, values, values, work, NULL);
        made = atomic_load(&calls) - before;
    }
    assert_int_equal(made, 0);
    float *const all[] = {x, dx, dk, v, y};

    for (size_t i = 0; i < 5; i++)
        free(all[i]);
    free(work);
}

static void products_of_few_rows_allocate_nothing(void **state)
{
    enum { ROWS = 3, OUT = 500, IN = 210 };
    float *const a = take((size_t)ROWS * IN, sizeof *a);
    float *const c = take((size_t)ROWS * OUT, sizeof *c);
    void *const b = take((size_t)2 * OUT * IN, sizeof(float)); /* also if it is packed */

    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const struct tn_matmul_desc desc = {.m = ROWS,
                                            .n = OUT,
                                            .k = IN,
                                            .transpose_b = true,
                                            .elements = bf16 ? TN_BF16 : TN_F32,
                                            .packed = true};
        struct tn_matmul *plan;
        tarn_error err = {0};

        check_ok(tn_matmul_create(&plan, &desc, forced_host(3), &err), &err);
        void *const scratch = take(tn_matmul_scratch_size(plan), 1);
        size_t before = 0;

        for (size_t round = 0; round < 2; round++) {
            before = atomic_load(&calls);
            tn_matmul_run(plan, c, a, b, NULL, scratch);
        }
        assert_int_equal(atomic_load(&calls) - before, 0);
        free(scratch);
        tn_matmul_free(plan);
    }
    free(a);
    free(b);
    free(c);
}

/* Or a count of zero would mean nothing. */
static void allocations_are_counted(void **state)
{
    const size_t before = atomic_load(&calls);

    (void)state;
    free(take(10, 1));
    assert_true(atomic_load(&calls) > before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(no_call_allocates),
        cmocka_unit_test(segments_allocate_nothing),
        cmocka_unit_test(dot_products_allocate_nothing),
        cmocka_unit_test(products_of_few_rows_allocate_nothing),
    };

    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}

#else

static void calls_cannot_be_counted_here(void **state)
{
    (void)state;
    print_message("skipped: allocations are counted with glibc and without sanitizers\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_cannot_be_counted_here)};

    return cmocka_run_group_tests_name("allocation", tests, NULL, NULL);
}

#endif
