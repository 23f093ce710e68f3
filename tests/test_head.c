/* SPDX-License-Identifier: MIT */
/* test_head.c - the categorical head against its definition in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

struct head_case {
    struct tn_head head;
    struct tn_rows r;
    struct floats x, dx, weights;
    int32_t *targets;
    void *scratch;
    float scale;
};

/* A third of the weights are 0, and their targets no symbols. */
static struct head_case case_open(const struct tn_kernels *kernels, size_t threads, size_t rows,
                                  size_t symbols, struct tn_random *random)
{
    struct head_case c = {.r = {kernels, threads, rows, symbols}, .scale = 0.7f};
    tarn_error err = {0};

    check_ok(tn_head_init(&c.head, "categorical", symbols, &err), &err);
    assert_int_equal(c.head.outputs, symbols);
    c.x = floats_open(rows * symbols, 3.0, random);
    c.dx = floats_open(rows * symbols, 1.0, random);
    c.weights = floats_open(rows, 1.0, random);
    c.targets = take(rows, sizeof *c.targets);
    for (size_t i = 0; i < rows; i++) {
        const bool counts = below(random, 3) > 0;

        c.weights.at[i] = counts ? fabsf(c.weights.at[i]) + 0.1f : 0.0f;
        c.targets[i] = counts ? (int32_t)below(random, symbols) : -1;
    }
    c.scratch = take(tn_head_scratch_size(&c.head, &c.r), 1);
    return c;
}

static void case_close(struct head_case *c)
{
    floats_close(&c->x);
    floats_close(&c->dx);
    floats_close(&c->weights);
    free(c->targets);
    free(c->scratch);
}

static struct tn_loss run(const struct head_case *c, float *dx)
{
    struct tn_loss loss;

    tn_head_loss(&(struct tn_head_call){.head = &c->head,
                                        .rows = &c->r,
                                        .outputs = c->x.at,
                                        .targets = c->targets,
                                        .weights = c->weights.at,
                                        .scale = c->scale,
                                        .doutputs = dx,
                                        .scratch = c->scratch},
                 &loss);
    return loss;
}

/* ---- the definition ----------------------------------------------------- */

/* Writes the gradient of one row and adds to the sums. */
static void define_row(struct tn_loss *loss, double *dx, const float *x, int32_t target,
                       double weight, double scale, size_t O)
{
    double sum = 0.0;
    size_t best = 0;

    memset(dx, 0, O * sizeof *dx);
    if (weight == 0.0)
        return;
    for (size_t j = 0; j < O; j++) {
        sum += exp((double)x[j] - (double)x[target]);
        best = x[j] > x[best] ? j : best;
    }
    for (size_t j = 0; j < O; j++)
        dx[j] = weight * scale *
                (exp((double)x[j] - (double)x[target]) / sum - (j == (size_t)target));
    loss->loss += weight * log(sum);
    loss->weight += weight;
    loss->correct += best == (size_t)target ? weight : 0.0;
}

static void check_near(const char *what, double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * (1.0 + fabs(want))))
        fail_msg("%s: %.12g, not %.12g", what, got, want);
}

static void check(struct head_case *c)
{
    const size_t O = c->head.outputs;
    struct tn_loss want = {0};
    double *const dx = take(c->r.rows * O, sizeof *dx);

    for (size_t i = 0; i < c->r.rows; i++)
        define_row(&want, dx + i * O, c->x.at + i * O, c->targets[i], (double)c->weights.at[i],
                   (double)c->scale, O);
    const struct tn_loss got = run(c, c->dx.at), alone = run(c, NULL);

    check_near("loss", got.loss, want.loss);
    check_near("weight", got.weight, want.weight);
    check_near("correct", got.correct, want.correct);
    check_floats("doutputs", c->dx.at, dx, c->r.rows * O, 2e-6);
    assert_memory_equal(&alone, &got, sizeof got);
    run(c, c->x.at);
    check_bits("over the outputs", c->x.at, c->dx.at, c->x.n);
    free(dx);
}

static void every_instruction_set_equals_the_definition(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 451);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < AWKWARD_ROWS * AWKWARD_WIDTHS; i++) {
            struct head_case c = case_open(kernels, 1 + i % 3, awkward_rows[i / AWKWARD_WIDTHS],
                                           awkward_widths[i % AWKWARD_WIDTHS], &random);

            check(&c);
            case_close(&c);
        }
}

static double loss_at(void *arg)
{
    const struct head_case *const c = arg;

    return run(c, NULL).loss * (double)c->scale;
}

static void the_gradient_is_the_slope(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 452);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct head_case c = case_open(kernels, 2, 37, 61, &random);

        run(&c, c.dx.at);
        check_slope("outputs", loss_at, &c, c.x.at, c.dx.at, c.x.n, 1e-3, &random);
        case_close(&c);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    const struct tn_kernels *const kernels = tn_kernels_pick(forced_cpu());
    struct tn_random random;

    (void)state;
    for (size_t i = 0; i < AWKWARD_THREADS; i++) {
        tn_random_seed(&random, 453);
        struct head_case one = case_open(kernels, 1, 3001, 61, &random);

        tn_random_seed(&random, 453);
        struct head_case many = case_open(kernels, awkward_threads[i], 3001, 61, &random);
        const struct tn_loss a = run(&one, one.dx.at), b = run(&many, many.dx.at);

        assert_memory_equal(&a, &b, sizeof a);
        check_bits("doutputs", one.dx.at, many.dx.at, one.dx.n);
        case_close(&one);
        case_close(&many);
    }
}

/* exp of 1e4 overflows a double, too. */
static void extreme_outputs_give_finite_losses(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const float x[6] = {1e4f, -1e4f, 0.0f, -3e38f, -3e38f, -3e38f};
        const int32_t targets[2] = {1, 2};
        const struct tn_rows r = {kernels, 1, 2, 3};
        float dx[6];
        struct tn_head head;
        struct tn_loss loss;
        tarn_error err = {0};

        check_ok(tn_head_init(&head, "categorical", 3, &err), &err);
        void *const scratch = take(tn_head_scratch_size(&head, &r), 1);

        tn_head_loss(&(struct tn_head_call){.head = &head,
                                            .rows = &r,
                                            .outputs = x,
                                            .targets = targets,
                                            .scale = 1.0f,
                                            .doutputs = dx,
                                            .scratch = scratch},
                     &loss);
        assert_true(fabs(loss.loss - (2e4 + log(3.0))) < 1e-3);
        assert_true(loss.weight == 2.0 && loss.correct == 0.0); /* the first of equals */
        assert_true(dx[0] == 1.0f && dx[1] == -1.0f && dx[2] == 0.0f);
        free(scratch);
    }
}

static void bad_specs_are_refused(void **state)
{
    struct tn_head head;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_head_init(&head, "categorical", 0, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "0 symbols"));
    assert_int_equal(tn_head_init(&head, "categorical", SIZE_MAX, &err), TARN_EINVAL);
    assert_int_equal(tn_head_init(&head, "categorial", 5, &err), TARN_EUNKNOWN);
    assert_int_equal(tn_head_init(&head, "categorical:mixtures=3", 5, &err), TARN_EUNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_equals_the_definition),
        cmocka_unit_test(the_gradient_is_the_slope),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(extreme_outputs_give_finite_losses),
        cmocka_unit_test(bad_specs_are_refused),
    };

    return cmocka_run_group_tests_name("heads", tests, NULL, NULL);
}
