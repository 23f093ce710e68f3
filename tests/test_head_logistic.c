/* SPDX-License-Identifier: MIT */
/* test_head_logistic.c - the mixture of logistics against its definition in double, against
 * PyTorch (vectors/logistic.py), and its draws against its probabilities. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"
#include "support/frequencies.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"
#include "vectors/logistic_torch.h"

static struct tn_head head_of(const char *spec, size_t symbols)
{
    struct tn_head head;
    tarn_error err = {0};

    check_ok(tn_head_init(&head, spec, symbols, &err), &err);
    return head;
}

/* One row; dx may be NULL. */
static double loss_of_row(const struct tn_head *head, const struct tn_kernels *kernels,
                          float *dx, const float *x, int32_t target)
{
    const struct tn_rows r = {kernels, 1, 1, head->outputs};
    void *const scratch = take(tn_head_scratch_size(head, &r, 1), 1);
    struct tn_loss loss;

    tn_head_loss(&(struct tn_head_call){.head = head,
                                        .rows = &r,
                                        .outputs = x,
                                        .targets = &target,
                                        .scale = 1.0f,
                                        .doutputs = dx,
                                        .scratch = scratch},
                 &loss);
    assert_true(loss.weight == 1.0 && isnan(loss.correct));
    free(scratch);
    return loss.loss;
}

static void logits_of(const struct tn_head *head, float *logits, const float *x)
{
    const struct tn_rows r = {tn_kernels_pick(forced_cpu()), 1, 1, head->outputs};
    void *const scratch = take(tn_head_scratch_size(head, &r, 1), 1);

    head->row->logits(head, &r, logits, x, scratch);
    free(scratch);
}

/* ---- the definition ----------------------------------------------------- */

static double log_sigma(double z)
{
    return z < 0.0 ? z - log1p(exp(z)) : -log1p(exp(-z));
}

static double sigma(double z)
{
    return exp(log_sigma(z));
}

/* One logistic: log p of a value, its slopes, and how large these can be. */
struct logistic {
    double log_p, in_mean, in_scale, most_mean, most_scale;
};

static struct logistic define_one(double mean, double raw, size_t t, size_t S)
{
    const double by = exp(-fmax(raw, -7.0)), h = 1.0 / ((double)S - 1.0);
    const double x = 2.0 * (double)t * h - 1.0, d = 2.0 * h * by;
    const double a = t + 1 == S ? 1e300 : (x + h - mean) * by;
    const double b = t == 0 ? -1e300 : (x - h - mean) * by;
    const bool inner = t > 0 && t + 1 < S;
    struct logistic l = {.log_p = log_sigma(a) + log_sigma(-b)};

    l.log_p += inner ? log(-expm1(-d)) : 0.0;
    l.in_mean = by * (sigma(b) - sigma(-a));
    l.in_scale = (t > 0 ? b * sigma(b) : 0.0) - (t + 1 < S ? a * sigma(-a) : 0.0);
    l.in_scale -= inner ? d / expm1(d) : 0.0;
    l.in_scale = raw < -7.0 ? 0.0 : l.in_scale;
    l.most_mean = by;
    l.most_scale = 1.0 + fabs(x - mean) * by + d;
    return l;
}

/* Log of the sum of exp(x). */
static double log_sum(const double *x, size_t n)
{
    double most = -(double)INFINITY, sum = 0.0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

enum { MOST = 64 }; /* logistics in a test */

struct defined {
    double loss, dx[3 * MOST],
        within[3 * MOST]; /* an error of 1 in a sum makes so much of dx */
};

static struct defined define(const float *x, size_t K, size_t t, size_t S)
{
    double logits[MOST], joint[MOST];
    struct logistic l[MOST];
    struct defined row = {0};

    for (size_t k = 0; k < K; k++) {
        l[k] = define_one((double)x[K + k], (double)x[2 * K + k], t, S);
        logits[k] = (double)x[k];
        joint[k] = logits[k] + l[k].log_p;
    }
    const double all = log_sum(logits, K), here = log_sum(joint, K);

    row.loss = all - here;
    for (size_t k = 0; k < K; k++) {
        const double share = exp(joint[k] - here);

        row.dx[k] = exp(logits[k] - all) - share;
        row.dx[K + k] = -share * l[k].in_mean;
        row.dx[2 * K + k] = -share * l[k].in_scale;
        row.within[k] = 1.0;
        row.within[K + k] = 1.0 + share * l[k].most_mean;
        row.within[2 * K + k] = 1.0 + share * l[k].most_scale;
    }
    return row;
}

/* What a float as large as the loss does not resolve is in the shares, too. */
static void check_row(const struct tn_head *head, const struct tn_kernels *kernels,
                      const float *x, size_t t)
{
    const size_t K = head->outputs / 3;
    const struct defined want = define(x, K, t, head->symbols);
    const double unit = 4e-7 * (5.0 + want.loss);
    float dx[3 * MOST];
    const double loss = loss_of_row(head, kernels, dx, x, (int32_t)t);

    if (!(fabs(loss - want.loss) <= unit))
        fail_msg("%s: loss %.12g, not %.12g", kernels->name, loss, want.loss);
    for (size_t j = 0; j < 3 * K; j++)
        if (!(fabs((double)dx[j] - want.dx[j]) <= unit * want.within[j]))
            fail_msg("%s: gradient %zu of %zu: %.9g, not %.9g (loss %g)", kernels->name, j,
                     3 * K, (double)dx[j], want.dx[j], want.loss);
}

/* Means up to `far` from the values, log-scales from below the clamp. */
static void draw_row(float *x, size_t K, double far, struct tn_random *random)
{
    for (size_t k = 0; k < K; k++) {
        x[k] = (float)(2.0 * tn_random_normal(random));
        x[K + k] = (float)(far * tn_random_normal(random));
        x[2 * K + k] = (float)(-9.0 + tn_random_uniform(random) * (below(random, 3) ? 9 : 29));
    }
}

static void every_instruction_set_equals_the_definition(void **state)
{
    static const double far[] = {0.5, 0.5, 0.5, 3.0, 1e4};
    const struct tn_kernels *kernels;
    struct tn_random random;
    float x[3 * MOST];

    (void)state;
    tn_random_seed(&random, 481);
    for (size_t i = 0; i < 4000; i++) {
        const size_t K = ONE_OF(&random, 1, 2, 3, 10, 10, 17, MOST);
        const size_t S = ONE_OF(&random, 2, 3, 17, 256, 256, 256, 4096, 65536);
        const size_t t = below(&random, 4) ? below(&random, S) : ONE_OF(&random, 0, S - 1);
        char spec[32];

        snprintf(spec, sizeof spec, "logistic:mixtures=%zu", K);
        const struct tn_head head = head_of(spec, S);

        draw_row(x, K, far[i % 5], &random);
        for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
            check_row(&head, kernels, x, t);
    }
}

/* ---- PyTorch ------------------------------------------------------------ */

struct vectors {
    const char *spec;
    const float *x, *loss, *dx;
    const int32_t *targets;
    size_t rows;
};

#define VECTORS(spec, name)                                                                    \
    {                                                                                          \
        spec, name##_x, name##_loss, name##_dx, name##_targets,                                \
            sizeof name##_targets / sizeof name##_targets[0]                                   \
    }

/* Slopes in means are as large as 1 / s, whose floats set how near they come. */
static void check_vectors(const struct vectors *v, const struct tn_kernels *kernels)
{
    const struct tn_head head = head_of(v->spec, 256);
    const size_t O = head.outputs, K = O / 3;
    float dx[30];

    assert_true(O <= 30);
    for (size_t i = 0; i < v->rows; i++) {
        const double loss = loss_of_row(&head, kernels, dx, v->x + i * O, v->targets[i]);
        const double want = (double)v->loss[i], unit = 4e-7 * (5.0 + want);

        if (!(fabs(loss - want) <= unit))
            fail_msg("row %zu: loss %.9g, not %.9g", i, loss, want);
        for (size_t j = 0; j < O; j++) {
            const double slope = (double)v->dx[i * O + j];
            const double by = exp(-fmax((double)v->x[i * O + 2 * K + j % K], -7.0));

            if (!(fabs((double)dx[j] - slope) <= unit * (1.0 + by + fabs(slope))))
                fail_msg("row %zu: gradient %zu is %.9g, not %.9g", i, j, (double)dx[j], slope);
        }
    }
}

static void every_instruction_set_equals_torch(void **state)
{
    static const struct vectors all[] = {VECTORS("logistic", usual),
                                         VECTORS("logistic:mixtures=1", extreme)};
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < 2; i++)
            check_vectors(&all[i], kernels);
}

/* ---- limits ------------------------------------------------------------- */

static void probabilities_of_extreme_outputs_sum_to_1(void **state)
{
    static const float means[] = {-3e38f,   -1e4f, -1.0f, -0.3f, 0.0f,
                                  0.00392f, 1.0f,  30.0f, 1e4f};
    static const float scales[] = {-3e38f, -20.0f, -7.0f, -6.0f, -3.0f, 0.0f,
                                   5.0f,   20.0f,  87.0f, 90.0f, 3e38f};
    const struct tn_head head = head_of("logistic:mixtures=1", 256);
    const struct tn_kernels *kernels;
    float dx[3];

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < 9 * 11; i++) {
            const float x[3] = {-3.0f, means[i / 11], scales[i % 11]};
            double sum = 0.0;

            for (int32_t t = 0; t < 256; t++) {
                const double loss = loss_of_row(&head, kernels, dx, x, t);

                assert_true(isfinite(loss) && loss >= -1e-6);
                assert_true(isfinite(dx[0]) && isfinite(dx[1]) && isfinite(dx[2]));
                sum += exp(-loss);
            }
            if (!(fabs(sum - 1.0) < 1e-6))
                fail_msg("%s: mean %g, log-scale %g: sum %.9g", kernels->name, (double)x[1],
                         (double)x[2], sum);
        }
}

/* As torch.clamp: at -7 itself there is a slope. */
static void log_scales_end_at_7(void **state)
{
    const struct tn_head head = head_of("logistic:mixtures=1", 256);
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        float x[3] = {0.0f, 0.1f, -7.0f}, dx[3];
        const double there = loss_of_row(&head, kernels, dx, x, 120);

        assert_true(dx[2] < -1.0f);
        x[2] = nextafterf(-7.0f, -8.0f);
        assert_true(loss_of_row(&head, kernels, dx, x, 120) == there);
        assert_true(dx[2] == 0.0f && fabsf(dx[1]) > 1.0f);
    }
}

/* Left and right are alike. */
static void mirrored_outputs_give_the_mirrored_symbols(void **state)
{
    const struct tn_head head = head_of("logistic", 256);
    const struct tn_kernels *kernels;
    struct tn_random random;
    float x[30], mirrored[30];

    (void)state;
    tn_random_seed(&random, 482);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (int32_t t = 0; t < 256; t++) {
            draw_row(x, 10, 0.7, &random);
            memcpy(mirrored, x, sizeof x);
            for (size_t j = 10; j < 20; j++)
                mirrored[j] = -x[j];
            const double one = loss_of_row(&head, kernels, NULL, x, t);
            const double other = loss_of_row(&head, kernels, NULL, mirrored, 255 - t);

            assert_true(fabs(one - other) <= 1e-6 * (1.0 + one));
        }
}

/* ---- draws -------------------------------------------------------------- */

static void count_draws(size_t *counts, const struct tn_head *head, const float *x,
                        size_t draws, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < draws; i++) {
        const int32_t symbol = head->row->draw(head, x, &random);

        assert_in_range(symbol, 0, head->symbols - 1);
        counts[symbol]++;
    }
}

static void check_draws(const struct tn_head *head, const float *x, size_t draws, uint64_t seed)
{
    const size_t S = head->symbols;
    size_t *const counts = take(S, sizeof *counts);
    float *const logits = take(S, sizeof *logits);
    double *const p = take(S, sizeof *p);

    logits_of(head, logits, x);
    for (size_t t = 0; t < S; t++)
        p[t] = exp((double)logits[t]);
    count_draws(counts, head, x, draws, seed);
    check_counts(counts, p, S, draws);
    free(counts);
    free(logits);
    free(p);
}

static void draws_are_as_likely_as_the_loss_says(void **state)
{
    static const size_t symbols[] = {2, 3, 16, 256, 256, 256, 4096, 65536};
    struct tn_random random;
    float x[30];

    (void)state;
    tn_random_seed(&random, 483);
    for (size_t i = 0; i < 40; i++) {
        const struct tn_head head = head_of("logistic", symbols[i % 8]);

        draw_row(x, 10, 0.8, &random);
        check_draws(&head, x, 40000, 500 + i);
    }
}

/* One logistic where rounding the wrong way, a scale of its own or tails cut off would show: on
 * a value, on an edge, at and beyond the ends, with all of the mass in two bins, and
 * clamped. */
static void draws_of_one_logistic_are_as_likely_as_the_loss_says(void **state)
{
    static const float cases[][3] = {
        {0, 1.0f / 255, -4.5f}, {0, 0.0f, -5.5f}, {0, -1.0f, -2.0f}, {0, 1.0f, -2.0f},
        {0, -1.5f, -1.0f},      {0, 0.2f, 3.0f},  {0, 0.2f, 90.0f},  {0, 2.0f / 255, -20.0f},
        {0, 0.0f, -20.0f},      {0, 0.4f, -7.0f}, {0, 0.4f, -1.0f},
    };
    const struct tn_head head = head_of("logistic:mixtures=1", 256);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_draws(&head, cases[i], 200000, 600 + i);
}

static void far_means_give_the_ends(void **state)
{
    const struct tn_head head = head_of("logistic:mixtures=2", 256);
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 484);
    for (size_t i = 0; i < 1000; i++) {
        const float low[6] = {0, 0, -1e4f, -2.0f, 0, -7.0f},
                    none[6] = {-9e9f, 0, 0, 1e4f, 0, 0};

        assert_int_equal(head.row->draw(&head, low, &random), 0);
        assert_int_equal(head.row->draw(&head, none, &random), 255);
    }
}

/* ---- refusals ----------------------------------------------------------- */

static void bad_specs_are_refused(void **state)
{
    struct tn_head head;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_head_init(&head, "logistic", 1, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "1 symbols; it must have from 2 to 65536"));
    assert_int_equal(tn_head_init(&head, "logistic", 65537, &err), TARN_EINVAL);
    assert_int_equal(tn_head_init(&head, "logistic:mixtures=0", 256, &err), TARN_EINVAL);
    assert_int_equal(tn_head_init(&head, "logistic:mixtures=2.5", 256, &err), TARN_EINVAL);
    assert_int_equal(head_of("logistic", 256).outputs, 30);
    assert_int_equal(head_of("logistic:mixtures=1024", 65536).outputs, 3072);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_equals_the_definition),
        cmocka_unit_test(every_instruction_set_equals_torch),
        cmocka_unit_test(probabilities_of_extreme_outputs_sum_to_1),
        cmocka_unit_test(log_scales_end_at_7),
        cmocka_unit_test(mirrored_outputs_give_the_mirrored_symbols),
        cmocka_unit_test(draws_are_as_likely_as_the_loss_says),
        cmocka_unit_test(draws_of_one_logistic_are_as_likely_as_the_loss_says),
        cmocka_unit_test(far_means_give_the_ends),
        cmocka_unit_test(bad_specs_are_refused),
    };

    return cmocka_run_group_tests_name("mixtures of logistics", tests, NULL, NULL);
}
