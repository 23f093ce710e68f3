/* SPDX-License-Identifier: MIT */
/* test_clip.c - norms against plain sums in double, the factors that follow, gradients that are
 * no numbers, and any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/kernel_list.h"
#include "support/testing.h"
#include "train/clip.h"

static const struct tn_range tensors[] = {{0, 100000}, {100000, 1},  {100001, 0},
                                          {100003, 7}, {100010, 33}, {100050, 40000}};
enum { COUNT = sizeof tensors / sizeof tensors[0], N = 140050 };

struct run {
    float *g;
    double *scratch;
    float scales[COUNT];
};

static struct run run_open(uint64_t seed)
{
    struct run run = {.g = take(N, sizeof(float)),
                      .scratch = take(tn_pieces_count(tensors, COUNT), sizeof(double))};
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < N; i++)
        run.g[i] = (float)tn_random_normal(&random);
    return run;
}

static void run_close(struct run *run)
{
    free(run->g);
    free(run->scratch);
}

static struct tn_clip_result clip_as(struct run *run, const char *spec,
                                     const struct tn_kernels *kernels, size_t threads)
{
    struct tn_clip clip;
    tarn_error err = {0};

    check_ok(tn_clip_init(&clip, spec, &err), &err);
    return tn_clip_scales(&clip, run->scales, run->scratch, run->g, tensors, COUNT,
                          host_of(kernels, threads));
}

static double norm_of(const float *g, struct tn_range range)
{
    double sum = 0.0;

    for (size_t i = range.from; i < range.from + range.count; i++)
        sum += (double)g[i] * (double)g[i];
    return sqrt(sum);
}

static double norm_of_all(const float *g)
{
    double sum = 0.0;

    for (size_t t = 0; t < COUNT; t++)
        sum += pow(norm_of(g, tensors[t]), 2.0);
    return sqrt(sum);
}

static void check_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want)))
        fail_msg("%.9g, not %.9g", got, want);
}

/* ---- factors ------------------------------------------------------------ */

static void each_tensor_is_cut_to_the_norm(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct run run = run_open(1);
        const struct tn_clip_result result = clip_as(&run, "tensor:norm=2", kernels, 2);

        assert_int_equal(result.wrong, COUNT);
        check_near(result.norm, norm_of_all(run.g));
        for (size_t t = 0; t < COUNT; t++)
            check_near((double)run.scales[t], fmin(1.0, 2.0 / norm_of(run.g, tensors[t])));
        assert_true(run.scales[0] < 0.01f); /* both sides of the norm are there */
        assert_true(run.scales[1] == 1.0f && run.scales[2] == 1.0f);
        run_close(&run);
    }
}

static void all_together_are_cut_to_the_norm(void **state)
{
    struct run run = run_open(2);
    const struct tn_kernels *const kernels = tn_kernels_pick(forced_cpu());

    (void)state;
    clip_as(&run, "global:norm=5", kernels, 1);
    for (size_t t = 0; t < COUNT; t++)
        check_near((double)run.scales[t], 5.0 / norm_of_all(run.g));
    clip_as(&run, "global:norm=1000", kernels, 1);
    for (size_t t = 0; t < COUNT; t++)
        assert_true(run.scales[t] == 1.0f);
    run_close(&run);
}

static void none_leaves_everything_and_reports_the_norm(void **state)
{
    struct run run = run_open(3);

    (void)state;
    check_near(clip_as(&run, "none", tn_kernels_pick(forced_cpu()), 1).norm,
               norm_of_all(run.g));
    for (size_t t = 0; t < COUNT; t++)
        assert_true(run.scales[t] == 1.0f);
    run_close(&run);
}

/* Equal terms round the same way over and over: the worst that a sum in float can meet. */
static void norms_of_equal_gradients_are_accurate(void **state)
{
    static const float values[] = {0.1f, 0.3f, 1e-15f, 3e15f, 0.7777777f};
    const struct tn_kernels *kernels;
    struct run run = run_open(4);

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            for (size_t i = 0; i < N; i++)
                run.g[i] = values[v];
            check_near(clip_as(&run, "none", kernels, 1).norm, norm_of_all(run.g));
        }
    run_close(&run);
}

static void gradients_of_zero_stay(void **state)
{
    struct run run = run_open(5);

    (void)state;
    memset(run.g, 0, N * sizeof(float));
    assert_true(clip_as(&run, "tensor", tn_kernels_pick(forced_cpu()), 1).norm == 0.0);
    for (size_t t = 0; t < COUNT; t++)
        assert_true(run.scales[t] == 1.0f);
    run_close(&run);
}

/* ---- what must not depend ----------------------------------------------- */

static void one_thread_equals_many(void **state)
{
    const struct tn_kernels *kernels;
    struct run one = run_open(6), many = run_open(6);

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const double norm = clip_as(&one, "tensor", kernels, 1).norm;

        for (size_t threads = 2; threads <= 7; threads++) {
            assert_true(clip_as(&many, "tensor", kernels, threads).norm == norm);
            assert_memory_equal(one.scales, many.scales, sizeof one.scales);
        }
    }
    run_close(&one);
    run_close(&many);
}

/* Alignment and such are nobody's gradients. */
static void floats_between_tensors_do_not_count(void **state)
{
    struct run run = run_open(7);
    const struct tn_kernels *const kernels = tn_kernels_pick(forced_cpu());
    const double norm = clip_as(&run, "none", kernels, 1).norm;

    (void)state;
    run.g[100001] = run.g[100002] = run.g[100043] = run.g[100049] = NAN;
    assert_true(clip_as(&run, "none", kernels, 1).norm == norm);
    run_close(&run);
}

/* ---- no numbers --------------------------------------------------------- */

static void the_first_tensor_that_is_no_number_is_named(void **state)
{
    static const char *const specs[] = {"none", "tensor", "global"};
    static const float bad[] = {NAN, INFINITY, -INFINITY, 1e25f};
    const struct tn_kernels *kernels;
    struct run run = run_open(8);

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t s = 0; s < 3; s++)
            for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
                const float was = run.g[100005];

                run.g[100005] = run.g[139999] = bad[b];
                const struct tn_clip_result result = clip_as(&run, specs[s], kernels, 2);

                assert_int_equal(result.wrong, 3);
                assert_true(!isfinite(result.norm));
                for (size_t t = 0; t < COUNT; t++)
                    assert_true(run.scales[t] == 0.0f);
                run.g[100005] = run.g[139999] = was;
                assert_int_equal(clip_as(&run, specs[s], kernels, 2).wrong, COUNT);
            }
    run_close(&run);
}

static void specs_that_cannot_be_used_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",         "layer",        "none:norm=1",    "tensor:norm=0",
        "tensor:c", "global:norm=", "global:norm=inf"};
    struct tn_clip clip;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tarn_error err = {0};

        assert_int_not_equal(tn_clip_init(&clip, wrong[i], &err), TARN_OK);
        assert_memory_equal(err.text, "clip: ", strlen("clip: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tensor_is_cut_to_the_norm),
        cmocka_unit_test(all_together_are_cut_to_the_norm),
        cmocka_unit_test(none_leaves_everything_and_reports_the_norm),
        cmocka_unit_test(norms_of_equal_gradients_are_accurate),
        cmocka_unit_test(gradients_of_zero_stay),
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(floats_between_tensors_do_not_count),
        cmocka_unit_test(the_first_tensor_that_is_no_number_is_named),
        cmocka_unit_test(specs_that_cannot_be_used_are_refused),
    };

    return cmocka_run_group_tests_name("clip", tests, NULL, NULL);
}
