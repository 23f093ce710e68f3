/* SPDX-License-Identifier: MIT */
/* test_gradients.c - the slope of a loss along random directions against dq, dk and dv, for
 * every attention on every instruction set. lsh is not here: its slope exists only where hashes
 * stay as they are, which test_lsh.c sees to. */
#include <math.h>
#include <stdlib.h>

#include "support/attention_case.h"
#include "tarn/machine.h"

/* L = sum dy.y of a forward. */
static double loss(struct attention_run *run)
{
    const struct tensor *const y = &run->tensors[Y], *const dy = &run->tensors[DY];
    double sum = 0.0;

    run_forward(run);
    for (size_t r = 0; r < tensor_rows(y); r++)
        for (size_t m = 0; m < y->width; m++)
            sum += (double)tensor_row_at(y, r)[m] * (double)tensor_row_at(dy, r)[m];
    return sum;
}

/* A direction of +-1, the same each time it is asked for. */
static float sign_of(uint64_t seed, size_t i)
{
    struct tn_random random;

    tn_random_seed(&random, seed + i);
    return tn_random_bits(&random) >> 63 ? 1.0f : -1.0f;
}

/* L at x + t u, where x is `array` of the run as it was drawn. */
static double loss_along(struct attention_run *run, enum array array, const float *x,
                         uint64_t seed, double t)
{
    const struct tensor *const at = &run->tensors[array];

    for (size_t r = 0; r < tensor_rows(at); r++)
        for (size_t e = 0; e < at->width; e++) {
            const size_t i = r * at->width + e;

            tensor_row_at(at, r)[e] = (float)((double)x[i] + t * (double)sign_of(seed, i));
        }
    return loss(run);
}

/* Float forwards leave noise in the loss, of values of size 1 at least, and four points divide
 * it by e. */
static double noise(const struct attention_run *run, double e)
{
    const struct tensor *const y = &run->tensors[Y];
    double sum = 0.0;

    for (size_t r = 0; r < tensor_rows(y); r++)
        for (size_t m = 0; m < y->width; m++)
            sum += fmax(1.0, pow((double)tensor_row_at(y, r)[m], 2.0));
    return 2e-6 * sqrt(sum) / e;
}

/* <dL/dx, u> must be the slope of L along u. Four points let float forwards resolve it; the
 * scale is |dx|, so that cancellation in u neither hides an error nor invents one. */
static void check_slope(struct attention_run *run, enum array of, uint64_t seed)
{
    const struct tensor *const dx = &run->tensors[run_gradient(of)];
    const double e = run->is.inputs == SMALL && run->in[of].width == TARN_QUERY_WIDTH
                         ? 0.05 / sqrt((double)run->is.desc.query_width)
                         : 0.03;
    float *const x = tensor_copy(&run->tensors[of]);
    double want = 0.0, norm2 = 0.0;

    for (size_t r = 0; r < tensor_rows(dx); r++)
        for (size_t i = 0; i < dx->width; i++) {
            const double slope = (double)tensor_row_at(dx, r)[i];

            want += slope * (double)sign_of(seed, r * dx->width + i);
            norm2 += slope * slope;
        }
    const double near =
        loss_along(run, of, x, seed, e / 2) - loss_along(run, of, x, seed, -e / 2);
    const double far = loss_along(run, of, x, seed, e) - loss_along(run, of, x, seed, -e);
    const double slope = (8.0 * near - far) / (6.0 * e);

    loss_along(run, of, x, seed, 0.0);
    if (!(fabs(slope - want) <= 1e-3 * sqrt(norm2) + noise(run, e)))
        fail_msg("%s: %s, slope %g, gradient %g of %g, noise %g", run_name(run),
                 run->in[of].name, slope, want, sqrt(norm2), noise(run, e));
    free(x);
}

static void check_slopes(const struct attention_case *is, struct tn_random *random)
{
    struct attention_run run;

    run_open(&run, is);
    run_forward(&run);
    run_backward(&run);
    for (size_t i = 0; i < run.in_count; i++)
        check_slope(&run, (enum array)i, tn_random_bits(random));
    run_close(&run);
}

static void gradients_are_slopes_of_every_attention_on_every_cpu(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 301);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t c = 0; variant->has_keys && tarn_cpu_name(c); c++)
            for (size_t trial = 0; trial < 6; trial++) {
                struct attention_case is = case_draw(variant, trial % 2, 1e5, &random);

                is.desc.host.cpu = tarn_cpu_name(c);
                check_slopes(&is, &random);
            }
}

/* Heads enough for whole heads as tasks, and long enough for segments. */
static void gradients_are_slopes_where_work_is_split_otherwise(void **state)
{
    static const char *const kinds[] = {"linear", "linear:chunk=16", "softmax"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 302);
    for (size_t k = 0; k < 3; k++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct variant variant = variant_of(kinds[k], NULL);
            const struct attention_case heads = case_of(&variant, causal, 3, 4, 70, 8, 5);
            const struct attention_case longer = case_of(&variant, causal, 1, 1, 1100, 4, 3);
            const struct attention_case both = case_of(&variant, causal, 1, 8, 1100, 4, 3);

            check_slopes(&heads, &random);
            check_slopes(&longer, &random);
            check_slopes(&both, &random);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes_of_every_attention_on_every_cpu),
        cmocka_unit_test(gradients_are_slopes_where_work_is_split_otherwise),
    };

    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
