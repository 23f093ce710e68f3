/* SPDX-License-Identifier: MIT */
/* test_head.c - what holds for every head, and the categorical one against its definition in
 * double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"
#include "tarn/model.h"

/* A unit is what has a weight: a row, or a sequence of some of them. */
enum { UNIT = 8 };

struct head_case {
    struct tn_head head;
    struct tn_rows r;
    size_t units, unit; /* and rows of each */
    struct floats x, dx, weights;
    int32_t *targets;
    size_t *lengths, *counts;
    void *scratch;
    float scale;
};

/* Fills the targets of one unit and returns how many. */
static size_t draw_targets(const struct head_case *c, int32_t *targets, size_t i,
                           struct tn_random *random)
{
    const bool counts = c->weights.at[i] > 0.0f, sequence = c->head.row->sequence;
    const size_t least = sequence ? 1 : 0;

    c->lengths[i] = c->unit - (sequence ? below(random, 3) : 0);
    c->counts[i] = sequence ? below(random, 4) : 1;
    for (size_t j = 0; j < c->counts[i]; j++)
        targets[j] = counts ? (int32_t)(least + below(random, c->head.symbols - least)) : -1;
    return c->counts[i];
}

/* A third of the weights are 0, and their targets no symbols. */
static struct head_case case_open(const char *spec, const struct tn_kernels *kernels,
                                  size_t threads, size_t rows, size_t symbols, double spread,
                                  struct tn_random *random)
{
    struct head_case c = {.r = {kernels, threads, rows, 0}, .scale = 0.7f};
    tarn_error err = {0};

    check_ok(tn_head_init(&c.head, spec, symbols, &err), &err);
    c.unit = c.head.row->sequence ? UNIT : 1;
    c.units = tn_blocks(rows, c.unit);
    c.r.rows = c.units * c.unit;
    c.r.width = c.head.outputs;
    c.x = floats_open(c.r.rows * c.head.outputs, spread, random);
    c.dx = floats_open(c.r.rows * c.head.outputs, 1.0, random);
    c.weights = floats_open(c.units, 1.0, random);
    c.targets = take(c.r.rows, sizeof *c.targets);
    c.lengths = take(c.units, sizeof *c.lengths);
    c.counts = take(c.units, sizeof *c.counts);
    for (size_t i = 0, offset = 0; i < c.units; i++) {
        c.weights.at[i] = below(random, 3) > 0 ? fabsf(c.weights.at[i]) + 0.1f : 0.0f;
        offset += draw_targets(&c, c.targets + offset, i, random);
    }
    c.scratch = take(tn_head_scratch_size(&c.head, &c.r, c.units), 1);
    return c;
}

static void case_close(struct head_case *c)
{
    floats_close(&c->x);
    floats_close(&c->dx);
    floats_close(&c->weights);
    free(c->targets);
    free(c->lengths);
    free(c->counts);
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
                                        .sequences = {c->units, c->lengths, c->counts, NULL},
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

    assert_int_equal(O, c->head.symbols);
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
    free(dx);
}

static void categorical_equals_its_definition(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 451);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < AWKWARD_ROWS * AWKWARD_WIDTHS; i++) {
            struct head_case c =
                case_open("categorical", kernels, 1 + i % 3, awkward_rows[i / AWKWARD_WIDTHS],
                          awkward_widths[i % AWKWARD_WIDTHS], 3.0, &random);

            check(&c);
            case_close(&c);
        }
}

/* ---- every head --------------------------------------------------------- */

/* Calls `each` for every head and instruction set. */
static void for_all(void (*each)(const char *head, const struct tn_kernels *kernels,
                                 struct tn_random *random),
                    uint64_t seed)
{
    const struct tn_kernels *kernels;
    const tarn_table_row *row;

    for (size_t i = 0; (row = tarn_head_kind(i)) != NULL; i++)
        for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
            struct tn_random random;

            tn_random_seed(&random, seed);
            each(row->name, kernels, &random);
        }
}

static double loss_at(void *arg)
{
    const struct head_case *const c = arg;

    return run(c, NULL).loss * (double)c->scale;
}

static void check_gradient(const char *head, const struct tn_kernels *kernels,
                           struct tn_random *random)
{
    struct head_case c = case_open(head, kernels, 2, 37, 61, 1.0, random);

    run(&c, c.dx.at);
    check_slope(head, loss_at, &c, c.x.at, c.dx.at, c.x.n, 1e-3, random);
    case_close(&c);
}

static void the_gradient_is_the_slope(void **state)
{
    (void)state;
    for_all(check_gradient, 452);
}

static void check_threads(const char *head, const struct tn_kernels *kernels,
                          struct tn_random *random)
{
    for (size_t i = 0; i < AWKWARD_THREADS; i++) {
        struct tn_random again = *random;
        struct head_case one = case_open(head, kernels, 1, 3001, 61, 3.0, random);
        struct head_case many =
            case_open(head, kernels, awkward_threads[i], 3001, 61, 3.0, &again);
        const struct tn_loss a = run(&one, one.dx.at), b = run(&many, many.dx.at);

        assert_memory_equal(&a, &b, sizeof a);
        check_bits(head, one.dx.at, many.dx.at, one.dx.n);
        case_close(&one);
        case_close(&many);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for_all(check_threads, 453);
}

static void check_in_place(const char *head, const struct tn_kernels *kernels,
                           struct tn_random *random)
{
    for (size_t i = 0; i < AWKWARD_ROWS; i++) {
        struct head_case c = case_open(head, kernels, 1, awkward_rows[i], 61, 3.0, random);
        const struct tn_loss alone = run(&c, NULL), apart = run(&c, c.dx.at);
        const struct tn_loss over = run(&c, c.x.at);

        assert_memory_equal(&alone, &apart, sizeof alone);
        assert_memory_equal(&alone, &over, sizeof alone);
        check_bits(head, c.x.at, c.dx.at, c.x.n);
        case_close(&c);
    }
}

static void the_gradient_may_take_the_place_of_the_outputs(void **state)
{
    (void)state;
    for_all(check_in_place, 454);
}

/* Nor are their outputs, which are no numbers here. */
static void check_left_out(const char *head, const struct tn_kernels *kernels,
                           struct tn_random *random)
{
    struct head_case c = case_open(head, kernels, 1, 257, 31, 3.0, random);
    const size_t each = c.unit * c.head.outputs;
    struct tn_loss was = run(&c, c.dx.at), is;

    for (size_t i = 0; i < c.units; i++)
        for (size_t j = 0; j < each && c.weights.at[i] == 0.0f; j++)
            c.x.at[i * each + j] = NAN;
    is = run(&c, c.x.at);
    assert_memory_equal(&was, &is, sizeof was);
    check_bits(head, c.x.at, c.dx.at, c.x.n);
    for (size_t i = 0; i < c.units; i++)
        for (size_t j = 0; j < each && c.weights.at[i] == 0.0f; j++)
            assert_true(c.dx.at[i * each + j] == 0.0f);
    case_close(&c);
}

static void what_has_weight_0_is_not_looked_at(void **state)
{
    (void)state;
    for_all(check_left_out, 455);
}

/* Its gradient does not depend on what is beside it. */
static void check_alone(const char *head, const struct tn_kernels *kernels,
                        struct tn_random *random)
{
    struct head_case c = case_open(head, kernels, 1, 67, 31, 3.0, random);
    const size_t each = c.unit * c.head.outputs;
    float *const all = take(c.x.n, sizeof *all);
    struct head_case one = c;

    run(&c, all);
    one.units = 1;
    one.r.rows = c.unit;
    for (size_t i = 0; i < c.units; i++) {
        run(&one, c.dx.at);
        check_bits(head, c.dx.at, all + i * each, each);
        one.x.at += each;
        one.targets += *one.counts;
        one.weights.at++;
        one.lengths++;
        one.counts++;
    }
    free(all);
    case_close(&c);
}

static void a_row_or_sequence_is_the_same_anywhere(void **state)
{
    (void)state;
    for_all(check_alone, 456);
}

/* ---- distributions ------------------------------------------------------ */

/* The loss of every symbol for outputs x. */
static void losses_of(double *losses, const struct head_case *c, const float *x)
{
    const size_t O = c->head.outputs, n = c->head.symbols;
    struct head_case one = *c;
    int32_t target;
    float weight = 1.0f;

    one.r.rows = 1;
    memcpy(one.x.at, x, O * sizeof *x);
    one.targets = &target;
    one.weights.at = &weight;
    for (size_t t = 0; t < n; t++) {
        target = (int32_t)t;
        losses[t] = run(&one, NULL).loss;
    }
}

/* Against the losses of all symbols: that they make probabilities, or that logits say the same.
 * test_ctc.c looks at what sequences have instead. */
static void check_losses(const char *head, const struct tn_kernels *kernels,
                         struct tn_random *random, bool logits)
{
    for (size_t i = 0; i < 60; i++) {
        const size_t symbols = ONE_OF(random, 2, 3, 7, 64, 65, 256, 1000);
        const double spread = i < 20 ? 1.0 : i < 40 ? 5.0 : 30.0;
        struct head_case c = case_open(head, kernels, 1, 1, symbols, spread, random);

        if (c.head.row->sequence) {
            case_close(&c);
            return;
        }
        float *const x = take(c.x.n, sizeof *x), *const at = take(symbols, sizeof *at);
        double *const losses = take(symbols, sizeof *losses), sum = 0.0;

        memcpy(x, c.x.at, c.x.n * sizeof *x);
        losses_of(losses, &c, x);
        for (size_t t = 0; t < symbols; t++)
            sum += exp(-losses[t]);
        if (!logits && !(fabs(sum - 1.0) < 1e-6))
            fail_msg("%s: probabilities of %zu symbols sum to %.9g", head, symbols, sum);
        if (logits && c.head.row->logits) {
            c.head.row->logits(&c.head, &c.r, at, x, c.scratch);
            for (size_t t = 0; t < symbols; t++)
                assert_true(at[t] == (float)-losses[t]);
        } else if (logits)
            for (size_t t = 0; t < symbols; t++)
                assert_true(fabs((double)(x[t] - x[0]) - (losses[0] - losses[t])) < 1e-4);
        free(x);
        free(at);
        free(losses);
        case_close(&c);
    }
}

static void check_sum(const char *head, const struct tn_kernels *kernels,
                      struct tn_random *random)
{
    check_losses(head, kernels, random, false);
}

static void check_logits(const char *head, const struct tn_kernels *kernels,
                         struct tn_random *random)
{
    check_losses(head, kernels, random, true);
}

static void probabilities_sum_to_1(void **state)
{
    (void)state;
    for_all(check_sum, 457);
}

static void logits_are_what_the_loss_says(void **state)
{
    (void)state;
    for_all(check_logits, 458);
}

static void check_any(const char *head, const struct tn_kernels *kernels,
                      struct tn_random *random)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 0.0f, 1.0f};
    struct head_case c = case_open(head, kernels, 1, 1, 5, 1.0, random);

    for (size_t i = 0; i < 3000 && c.head.row->draw; i++) {
        for (size_t j = 0; j < c.x.n; j++)
            c.x.at[j] = strange[below(random, 7)];
        const int32_t symbol = c.head.row->draw(&c.head, c.x.at, random);

        assert_in_range(symbol, 0, 4);
    }
    case_close(&c);
}

static void any_outputs_give_a_symbol(void **state)
{
    (void)state;
    for_all(check_any, 459);
}

/* ---- limits ------------------------------------------------------------- */

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
        void *const scratch = take(tn_head_scratch_size(&head, &r, 1), 1);

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
        cmocka_unit_test(categorical_equals_its_definition),
        cmocka_unit_test(the_gradient_is_the_slope),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(the_gradient_may_take_the_place_of_the_outputs),
        cmocka_unit_test(what_has_weight_0_is_not_looked_at),
        cmocka_unit_test(a_row_or_sequence_is_the_same_anywhere),
        cmocka_unit_test(probabilities_sum_to_1),
        cmocka_unit_test(logits_are_what_the_loss_says),
        cmocka_unit_test(any_outputs_give_a_symbol),
        cmocka_unit_test(extreme_outputs_give_finite_losses),
        cmocka_unit_test(bad_specs_are_refused),
    };

    return cmocka_run_group_tests_name("heads", tests, NULL, NULL);
}
