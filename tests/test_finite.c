/* SPDX-License-Identifier: MIT */
/* test_finite.c - denominators at zero, on either side of it, or overwhelmed: outputs and
 * gradients stay numbers. */
#include <math.h>

#include "support/attention_case.h"

enum signs { AS_DRAWN, ALL_NEGATIVE, QUERIES_NEGATIVE, KEYS_NEGATIVE, SIGNS };

static void resize(const struct tensor *t, double size, bool negative)
{
    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; e < t->width; e++) {
            float *const x = &tensor_row_at(t, r)[e];

            *x = (float)(size * (double)(negative ? -fabsf(*x) : *x));
        }
}

static void run_resized(struct attention_run *run, double size, enum signs signs)
{
    resize(&run->tensors[Q], size, signs == ALL_NEGATIVE || signs == QUERIES_NEGATIVE);
    resize(&run->tensors[K], size, signs == ALL_NEGATIVE || signs == KEYS_NEGATIVE);
    run_forward(run);
    run_backward(run);
}

static void every_attention_is_finite_for_inputs_of_any_size(void **state)
{
    static const double sizes[] = {0.0, 1e-30, 1e-3, 1.0, 10.0, 100.0, 1e4};
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 901);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t signs = 0; signs < SIGNS; signs++) {
                struct attention_case is = case_draw(variant, signs % 2, 1e5, &random);
                struct attention_run run;

                is.inputs = NORMAL;
                run_open(&run, &is);
                run_resized(&run, sizes[s], (enum signs)signs);
                check_finite(&run, true);
                run_close(&run);
            }
}

/* Estimates of similarities that are negative as often as not. */
static void signed_features_stay_finite(void **state)
{
    static const char *const kinds[] = {"linear", "linear:eps=0.001", "kernel"};
    static const char *const maps[] = {"identity", "fourier:sigma=0.1", "square:bias=0"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 902);
    for (size_t k = 0; k < 3; k++)
        for (size_t trial = 0; trial < 30; trial++) {
            const struct variant variant = variant_of(kinds[k], maps[trial % 3]);
            struct attention_case is = case_draw(&variant, trial % 2, 3e5, &random);
            struct attention_run run;

            is.inputs = NORMAL;
            run_open(&run, &is);
            run_forward(&run);
            run_backward(&run);
            check_finite(&run, true);
            run_close(&run);
        }
}

/* relu sees nothing in negative queries: what is left of a denominator is eps, in full range.
 * */
static void outputs_without_similarity_are_zero_for_any_eps(void **state)
{
    static const char *const kinds[] = {
        "linear:eps=0",     "linear:eps=1e-45", "linear:eps=1e-40",
        "linear:eps=1e-38", "linear",           "linear:eps=1",
        "kernel:eps=0",     "kernel:eps=1e-40", "kernel"};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct variant variant = variant_of(kinds[k], "relu");
            const struct attention_case is = case_of(&variant, causal, 1, 2, 60, 5, 3);
            struct attention_run run;

            run_open(&run, &is);
            run_resized(&run, 1.0, ALL_NEGATIVE);
            for (size_t r = 0; r < tensor_rows(&run.tensors[Y]); r++)
                for (size_t m = 0; m < 3; m++)
                    if (tensor_row_at(&run.tensors[Y], r)[m] != 0.0f)
                        fail_msg("%s: y is %g", run_name(&run),
                                 (double)tensor_row_at(&run.tensors[Y], r)[m]);
            check_finite(&run, true);
            run_close(&run);
        }
}

/* One key outshines the others by more than a float can express. */
static void softmax_with_extreme_scores_picks_the_largest(void **state)
{
    static const char *const kinds[] = {"softmax:scale=1000", "softmax:scale=1000,store=1"};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const struct variant variant = variant_of(kinds[k], NULL);
        const struct attention_case is = case_of(&variant, false, 1, 1, 130, 1, 1);
        struct attention_run run;

        run_open(&run, &is);
        for (size_t n = 0; n < 130; n++) {
            *tensor_row(&run.tensors[Q], 0, n, 0) = n % 2 ? 1.0f : -1.0f;
            *tensor_row(&run.tensors[K], 0, n, 0) = (float)n;
        }
        run_forward(&run);
        run_backward(&run);
        for (size_t n = 0; n < 130; n++)
            assert_true(*tensor_row(&run.tensors[Y], 0, n, 0) ==
                        *tensor_row(&run.tensors[V], 0, n % 2 ? 129 : 0, 0));
        check_finite(&run, true);
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attention_is_finite_for_inputs_of_any_size),
        cmocka_unit_test(signed_features_stay_finite),
        cmocka_unit_test(outputs_without_similarity_are_zero_for_any_eps),
        cmocka_unit_test(softmax_with_extreme_scores_picks_the_largest),
    };

    return cmocka_run_group_tests_name("finite", tests, NULL, NULL);
}
