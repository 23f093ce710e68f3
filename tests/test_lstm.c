/* SPDX-License-Identifier: MIT */
/* test_lstm.c - the LSTM against PyTorch, against its equations in double, and
 * against itself: lengths, threads, slopes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/lstm_case.h"
#include "vectors/lstm_torch.h"

/* ---- PyTorch ------------------------------------------------------------ */

static void check_torch(const char *what, const struct floats *got, const float *want)
{
    double *const exact = doubles_of(want, got->n);

    check_floats(what, got->at, exact, got->n, 3e-6);
    free(exact);
}

static void compare_with_torch(const struct tn_kernels *kernels, struct tn_random *random)
{
    const struct tn_lstm_desc d = {
        .B = TORCH_B, .N = TORCH_N, .in = TORCH_IN, .units = TORCH_H};
    struct lstm_case c = lstm_open(d, host_of(kernels, 0), random);

    assert_int_equal(c.weights.n, sizeof torch_weights / sizeof(float));
    memcpy(c.x.at, torch_x, sizeof torch_x);
    memcpy(c.dy.at, torch_dy, sizeof torch_dy);
    memcpy(c.weights.at, torch_weights, sizeof torch_weights);
    memcpy(c.lengths, torch_lengths, sizeof torch_lengths);
    lstm_run(&c);
    check_torch("y", &c.y, torch_y);
    check_torch("dx", &c.dx, torch_dx);
    check_torch("dweights", &c.dweights, torch_dweights);
    lstm_close(&c);
}

static void pytorch_computes_the_same(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 501);
    for (size_t k = 0; (kernels = tn_kernels_row(k)) != NULL; k++)
        compare_with_torch(kernels, &random);
}

/* ---- the equations ------------------------------------------------------ */

static double sigma(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* y of sequence b in one direction, (T, H). */
static void define(double *y, const struct lstm_case *c, size_t b, size_t way)
{
    const struct tn_lstm_desc *const d = &c->lstm.desc;
    const size_t H = d->units, T = c->lengths[b];
    struct tn_lstm_weights w[TN_LSTM_WAYS];
    double *const h = take(H, sizeof *h), *const cell = take(H, sizeof *cell);
    double *const z = take(4 * H, sizeof *z);

    lstm_carve(w, d, c->weights.at);
    for (size_t step = 0; step < T; step++) {
        const size_t t = way ? T - 1 - step : step;
        const float *const x = c->x.at + (b * d->N + t) * d->in;

        for (size_t j = 0; j < 4 * H; j++) {
            z[j] = (double)w[way].in_bias[j] + (double)w[way].hidden_bias[j];
            for (size_t k = 0; k < d->in; k++)
                z[j] += (double)w[way].in[j * d->in + k] * (double)x[k];
            for (size_t k = 0; k < H; k++)
                z[j] += (double)w[way].hidden[j * H + k] * h[k];
        }
        for (size_t j = 0; j < H; j++) {
            cell[j] = sigma(z[H + j]) * cell[j] + sigma(z[j]) * tanh(z[2 * H + j]);
            y[t * H + j] = h[j] = sigma(z[3 * H + j]) * tanh(cell[j]);
        }
    }
    free(h);
    free(cell);
    free(z);
}

static void check_definition(struct lstm_case *c)
{
    const size_t N = c->lstm.desc.N, H = c->lstm.desc.units, ways = c->lstm.ways;

    lstm_forward(c);
    for (size_t b = 0; b < c->lstm.desc.B; b++)
        for (size_t way = 0; way < ways; way++) {
            double *const y = take(N * H, sizeof *y); /* 0 beyond the length */

            define(y, c, b, way);
            for (size_t t = 0; t < N; t++)
                check_floats("y", c->y.at + ((b * N + t) * ways + way) * H, y + t * H, H, 2e-5);
            free(y);
        }
}

static void every_instruction_set_equals_the_equations(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 502);
    for (size_t k = 0; (kernels = tn_kernels_row(k)) != NULL; k++)
        for (size_t i = 0; i < 12; i++) {
            const struct tn_lstm_desc d = {.B = 1 + below(&random, 20),
                                           .N = 1 + below(&random, 12),
                                           .in = 1 + below(&random, 20),
                                           .units = ONE_OF(&random, 1, 3, 8, 16, 21),
                                           .one_way = i % 3 == 0};
            struct lstm_case c = lstm_open(d, host_of(kernels, 1 + i % 3), &random);

            check_definition(&c);
            lstm_close(&c);
        }
}

/* ---- gradients ---------------------------------------------------------- */

static double loss_at(void *arg)
{
    struct lstm_case *const c = arg;

    lstm_forward(c);
    return dot_product(c->y.at, c->dy.at, c->y.n);
}

static void gradients_are_slopes(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 503);
    for (size_t i = 0; i < 6; i++) {
        const struct tn_lstm_desc d = {
            .B = 3, .N = 9, .in = 7, .units = 5, .one_way = i % 3 == 0};
        struct lstm_case c = lstm_open(d, forced_host(2), &random);

        lstm_run(&c);
        check_slope("x", loss_at, &c, c.x.at, c.dx.at, c.x.n, 1e-3, &random);
        check_slope("weights", loss_at, &c, c.weights.at, c.dweights.at, c.weights.n, 1e-3,
                    &random);
        lstm_close(&c);
    }
}

/* What is beyond a length changes nothing, and gets no gradient. */
static void padded_equals_unpadded(void **state)
{
    enum { B = 4, N = 10, IN = 6, H = 5 };
    struct tn_lstm_desc d = {.B = B, .N = N, .in = IN, .units = H};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 504);
    struct lstm_case all = lstm_open(d, forced_host(0), &random);
    double *const sum = take(all.dweights.n, sizeof *sum);

    all.lengths[1] = 1;
    for (size_t b = 0; b < B; b++)
        for (size_t i = all.lengths[b] * 2 * H; i < N * 2 * H; i++)
            all.dy.at[b * N * 2 * H + i] = NAN;
    lstm_run(&all);
    for (size_t b = 0; b < B; b++) {
        const size_t T = all.lengths[b];

        for (size_t i = T * IN; i < N * IN; i++)
            assert_true(all.dx.at[b * N * IN + i] == 0.0f);
        if (T == 0)
            continue;
        d.B = 1;
        d.N = T;
        struct lstm_case one = lstm_open(d, forced_host(0), &random);

        memcpy(one.weights.at, all.weights.at, all.weights.n * sizeof(float));
        memcpy(one.x.at, all.x.at + b * N * IN, one.x.n * sizeof(float));
        memcpy(one.dy.at, all.dy.at + b * N * 2 * H, one.dy.n * sizeof(float));
        lstm_run(&one);
        double *const y = doubles_of(one.y.at, one.y.n), *const dx =
                                                             doubles_of(one.dx.at, one.dx.n);

        check_floats("y", all.y.at + b * N * 2 * H, y, one.y.n, 1e-5);
        check_floats("dx", all.dx.at + b * N * IN, dx, one.dx.n, 1e-5);
        for (size_t i = 0; i < one.dweights.n; i++)
            sum[i] += (double)one.dweights.at[i];
        free(y);
        free(dx);
        lstm_close(&one);
    }
    check_floats("dweights", all.dweights.at, sum, all.dweights.n, 1e-5);
    free(sum);
    lstm_close(&all);
}

static void compare_threads(struct tn_lstm_desc d, size_t threads)
{
    struct tn_random random;

    tn_random_seed(&random, 505);
    struct lstm_case one = lstm_open(d, forced_host(1), &random);

    tn_random_seed(&random, 505);
    struct lstm_case many = lstm_open(d, forced_host(threads), &random);

    lstm_run(&one);
    lstm_run(&many);
    check_bits("y", one.y.at, many.y.at, one.y.n);
    check_bits("dx", one.dx.at, many.dx.at, one.dx.n);
    check_bits("dweights", one.dweights.at, many.dweights.at, one.dweights.n);
    lstm_close(&one);
    lstm_close(&many);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < AWKWARD_THREADS; i++)
        compare_threads((struct tn_lstm_desc){.B = 21, .N = 13, .in = 30, .units = 33},
                        awkward_threads[i]);
}

/* Every case by the plan of the first. */
static void run_by_first(void *arg, size_t i, size_t thread)
{
    struct lstm_case *const cases = arg;
    struct lstm_case c = cases[i];

    (void)thread;
    c.lstm = cases[0].lstm;
    lstm_run(&c);
}

static void threads_may_share_a_plan(void **state)
{
    enum { SHARERS = 4 };

    (void)state;
    const struct tn_lstm_desc d = {.B = 9, .N = 300, .in = 30, .units = 64};
    struct lstm_case cases[SHARERS];

    for (size_t i = 0; i < SHARERS; i++) {
        struct tn_random random;

        tn_random_seed(&random, 510);
        cases[i] = lstm_open(d, forced_host(1), &random);
    }
    tn_parallel(SHARERS, SHARERS, run_by_first, cases);
    for (size_t i = 1; i < SHARERS; i++) {
        check_bits("y", cases[0].y.at, cases[i].y.at, cases[0].y.n);
        check_bits("dx", cases[0].dx.at, cases[i].dx.at, cases[0].dx.n);
        check_bits("dweights", cases[0].dweights.at, cases[i].dweights.at, cases[0].dweights.n);
    }
    for (size_t i = 0; i < SHARERS; i++)
        lstm_close(&cases[i]);
}

/* Gradients are added to what was there, and dx need not be wanted. */
static void gradients_of_weights_are_added(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 508);
    const struct tn_lstm_desc d = {.B = 17, .N = 5, .in = 3, .units = 4};
    struct lstm_case c = lstm_open(d, forced_host(0), &random);
    struct tn_lstm_weights w[TN_LSTM_WAYS], dw[TN_LSTM_WAYS];

    lstm_run(&c);
    double *const twice = doubles_of(c.dweights.at, c.dweights.n);

    for (size_t k = 0; k < c.dweights.n; k++)
        twice[k] *= 2.0;
    lstm_carve(w, &d, c.weights.at);
    lstm_carve(dw, &d, c.dweights.at);
    lstm_forward(&c);
    tn_lstm_backward(&c.lstm, &c.acts, NULL, dw, c.dy.at, c.y.at, c.x.at, w, c.lengths,
                     c.scratch);
    check_floats("dweights", c.dweights.at, twice, c.dweights.n, 1e-5);
    free(twice);
    lstm_close(&c);
}

/* A plan that does not train keeps no activations. */
static void without_training_outputs_are_the_same(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 509);
    struct tn_lstm_desc d = {.B = 11, .N = 9, .in = 7, .units = 13};
    struct lstm_case c = lstm_open(d, forced_host(0), &random);
    struct tn_lstm_weights w[TN_LSTM_WAYS];
    struct tn_arena arena = tn_arena_over(NULL);
    struct tn_lstm plain;
    tarn_error err;

    lstm_forward(&c);
    double *const y = doubles_of(c.y.at, c.y.n);

    check_ok(tn_lstm_init(&plain, &d, forced_host(0), &err), &err);
    void *const scratch = take(tn_lstm_scratch_size(&plain), 1);
    const struct tn_lstm_activations acts = tn_lstm_activations_lay_out(&plain, &arena);

    assert_int_equal(arena.used, 0);
    lstm_carve(w, &d, c.weights.at);
    tn_lstm_forward(&plain, &acts, c.y.at, c.x.at, w, c.lengths, scratch);
    check_floats("y", c.y.at, y, c.y.n, 1e-6);
    tn_lstm_clear(&plain);
    free(scratch);
    free(y);
    lstm_close(&c);
}

/* Gates that are full or shut stay numbers. */
static void extreme_inputs_give_finite_gradients(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 506);
    const struct tn_lstm_desc d = {.B = 2, .N = 6, .in = 4, .units = 9};
    struct lstm_case c = lstm_open(d, forced_host(0), &random);

    for (size_t i = 0; i < c.x.n; i++)
        c.x.at[i] *= 1e6f;
    lstm_run(&c);
    for (size_t i = 0; i < c.y.n; i++)
        assert_true(fabsf(c.y.at[i]) <= 1.0f);
    for (size_t i = 0; i < c.dweights.n; i++)
        assert_true(isfinite(c.dweights.at[i]));
    lstm_close(&c);
}

static void sizes_of_nothing_are_refused(void **state)
{
    struct tn_lstm lstm;
    tarn_error err;

    (void)state;
    assert_int_equal(tn_lstm_init(&lstm, &(struct tn_lstm_desc){.B = 1, .N = 1, .in = 1},
                                  forced_host(1), &err),
                     TARN_EINVAL);
    assert_int_equal(
        tn_lstm_init(&lstm,
                     &(struct tn_lstm_desc){.B = SIZE_MAX / 2, .N = 2, .in = 3, .units = 3},
                     forced_host(1), &err),
        TARN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorch_computes_the_same),
        cmocka_unit_test(every_instruction_set_equals_the_equations),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(padded_equals_unpadded),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(threads_may_share_a_plan),
        cmocka_unit_test(gradients_of_weights_are_added),
        cmocka_unit_test(without_training_outputs_are_the_same),
        cmocka_unit_test(extreme_inputs_give_finite_gradients),
        cmocka_unit_test(sizes_of_nothing_are_refused),
    };

    return cmocka_run_group_tests_name("lstm", tests, NULL, NULL);
}
