/* SPDX-License-Identifier: MIT */
/* test_ctc.c - CTC against all paths, one by one; against a recursion of logarithms in double;
 * and against PyTorch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/ctc_case.h"
#include "support/kernel_list.h"
#include "vectors/ctc_torch.h"

static const double none = (double)INFINITY;

/* y of one sequence, in double. */
static double *softmax(const float *x, size_t T, size_t S)
{
    double *const y = take(T * S + 1, sizeof *y);

    for (size_t t = 0; t < T; t++) {
        float most = -INFINITY; /* not double: gcc 12 for aarch64 cannot vectorise that */
        double sum = 0.0;

        for (size_t k = 0; k < S; k++)
            most = fmaxf(most, x[t * S + k]);
        for (size_t k = 0; k < S; k++)
            sum += y[t * S + k] = exp((double)x[t * S + k] - (double)most);
        for (size_t k = 0; k < S; k++)
            y[t * S + k] /= sum;
    }
    return y;
}

/* ---- all paths ---------------------------------------------------------- */

static bool stands_for(const size_t *path, size_t T, const int32_t *labels, size_t L)
{
    size_t found = 0;

    for (size_t t = 0; t < T; t++) {
        if (path[t] == 0 || (t > 0 && path[t] == path[t - 1]))
            continue;
        if (found == L || path[t] != (size_t)labels[found])
            return false;
        found++;
    }
    return found == L;
}

/* The next path, or false behind the last. */
static bool step(size_t *path, size_t T, size_t S)
{
    for (size_t t = 0; t < T; t++) {
        if (++path[t] < S)
            return true;
        path[t] = 0;
    }
    return false;
}

/* Probability of the labels; q becomes that of symbol k at frame t among their paths. */
static double all_paths(double *q, const double *y, size_t T, size_t S, const int32_t *labels,
                        size_t L)
{
    size_t path[8] = {0};
    double total = 0.0;

    assert_true(T <= 8);
    memset(q, 0, T * S * sizeof *q);
    do {
        double p = 1.0;

        if (!stands_for(path, T, labels, L))
            continue;
        for (size_t t = 0; t < T; t++)
            p *= y[t * S + path[t]];
        total += p;
        for (size_t t = 0; t < T; t++)
            q[t * S + path[t]] += p;
    } while (step(path, T, S));
    for (size_t i = 0; i < T * S && total > 0.0; i++)
        q[i] /= total;
    return total;
}

/* ---- logarithms in double ----------------------------------------------- */

static double add_logs(double a, double b)
{
    const double most = fmax(a, b), least = fmin(a, b);

    return most == -none ? most : most + log1p(exp(least - most));
}

/* States 0 .. 2 L: blanks are even. */
static int32_t symbol_of(const int32_t *labels, size_t s)
{
    return s % 2 ? labels[s / 2] : 0;
}

static bool skips(const int32_t *labels, size_t s)
{
    return s % 2 && s > 1 && labels[s / 2] != labels[s / 2 - 1];
}

static double recursion(double *q, const double *log_y, size_t T, size_t S,
                        const int32_t *labels, size_t L)
{
    const size_t n = 2 * L + 1;
    double *const a = take(T * n, sizeof *a), *const after = take(2 * n, sizeof *after);

    for (size_t i = 0; i < T * n; i++)
        a[i] = -none;
    for (size_t t = 0; t < T; t++)
        for (size_t s = 0; s < n; s++) {
            double sum = t == 0 && s < 2 ? 0.0 : -none;

            for (size_t back = 0; t > 0 && back <= tn_min(s, skips(labels, s) ? 2 : 1); back++)
                sum = add_logs(sum, a[(t - 1) * n + s - back]);
            a[t * n + s] = sum + log_y[t * S + (size_t)symbol_of(labels, s)];
        }
    double total = a[(T - 1) * n + n - 1];

    total = L > 0 ? add_logs(total, a[(T - 1) * n + n - 2]) : total;
    for (size_t i = 0; i < T * S; i++)
        q[i] = 0.0;
    for (size_t s = 0; s < n; s++)
        after[(T - 1) % 2 * n + s] = s + 2 >= n ? 0.0 : -none;
    for (size_t t = T; t-- > 0 && total > -none;) {
        double *const now = after + t % 2 * n, *const next = after + (t + 1) % 2 * n;

        for (size_t s = 0; s < n; s++) {
            double sum = t + 1 == T ? now[s] : -none;

            for (size_t on = 0; t + 1 < T && on <= 2 && s + on < n; on++)
                if (on < 2 || skips(labels, s + 2))
                    sum = add_logs(sum,
                                   next[s + on] +
                                       log_y[(t + 1) * S + (size_t)symbol_of(labels, s + on)]);
            now[s] = sum;
            q[t * S + (size_t)symbol_of(labels, s)] += exp(a[t * n + s] + sum - total);
        }
    }
    free(a);
    free(after);
    return total;
}

/* ---- comparing ---------------------------------------------------------- */

static void check_loss(double got, double want, double tolerance)
{
    if (want == none ? got != want : !(fabs(got - want) <= tolerance * (1.0 + fabs(want))))
        fail_msg("loss %.12g, not %.12g", got, want);
}

typedef double solution(double *q, const double *y, size_t T, size_t S, const int32_t *labels,
                        size_t L);

static double by_logs(double *q, const double *y, size_t T, size_t S, const int32_t *labels,
                      size_t L)
{
    double *const log_y = take(T * S + 1, sizeof *log_y);

    for (size_t i = 0; i < T * S; i++)
        log_y[i] = log(y[i]);
    const double total = T > 0 ? recursion(q, log_y, T, S, labels, L) : L ? -none : 0.0;

    free(log_y);
    return total;
}

static double by_paths(double *q, const double *y, size_t T, size_t S, const int32_t *labels,
                       size_t L)
{
    return log(all_paths(q, y, T, S, labels, L));
}

static void check(struct ctc_case *c, solution *solve, double tolerance)
{
    const size_t N = c->ctc.N, S = c->ctc.S;
    const int32_t *labels = c->labels;

    ctc_run(c, c->dx.at);
    for (size_t b = 0; b < c->ctc.B; b++) {
        const size_t T = c->frames[b];
        double *const want = take(N * S, sizeof *want), *const q = take(T * S + 1, sizeof *q);
        double *const y = softmax(c->x.at + b * N * S, T, S);
        const double loss = -solve(q, y, T, S, labels, c->counts[b]);

        check_loss(c->losses[b], loss, tolerance);
        for (size_t i = 0; i < T * S && loss < none; i++)
            want[i] = (double)c->dloss.at[b] * (y[i] - q[i]);
        check_floats("dx", c->dx.at + b * N * S, want, N * S, 10.0 * tolerance);
        labels += c->counts[b];
        free(want);
        free(q);
        free(y);
    }
}

/* ---- the tests ---------------------------------------------------------- */

static void the_sum_is_over_all_paths(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;
    size_t impossible = 0, empty = 0;

    (void)state;
    tn_random_seed(&random, 481);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < 60; i++) {
            const struct tn_ctc ctc = {kernels, 1 + i % 2, 5, 1 + below(&random, 6),
                                       2 + below(&random, 3)};
            struct ctc_case c = ctc_open(ctc, 4, i % 3 ? 2.0 : 10.0, &random);

            ctc_draw(&c, 4, &random);
            check(&c, by_paths, 1e-6);
            for (size_t b = 0; b < ctc.B; b++) {
                impossible += c.losses[b] == none;
                empty += c.counts[b] == 0;
            }
            ctc_close(&c);
        }
    assert_true(impossible > 20 && empty > 20);
}

static void long_sequences_equal_the_recursion_in_double(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 482);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < 12; i++) {
            const struct tn_ctc ctc = {kernels, 2, 3, 1 + below(&random, 300),
                                       2 + below(&random, 60)};
            struct ctc_case c = ctc_open(ctc, ctc.N, 3.0, &random);

            ctc_draw(&c, i % 2 ? ctc.N : tn_min(ctc.N, 40), &random);
            check(&c, by_logs, 2e-6);
            ctc_close(&c);
        }
}

static void twenty_thousand_frames_lose_nothing(void **state)
{
    struct tn_random random;
    const struct tn_ctc ctc = {tn_kernels_pick(forced_cpu()), 1, 1, 20000, 30};

    (void)state;
    tn_random_seed(&random, 483);
    struct ctc_case c = ctc_open(ctc, 300, 3.0, &random);

    c.counts[0] = 300;
    for (size_t i = 0; i < 300; i++)
        c.labels[i] = 1 + (int32_t)below(&random, 29);
    check(&c, by_logs, 3e-6);
    assert_true(c.losses[0] > 5e4);
    ctc_close(&c);
}

/* exp of 2e4 overflows a double, too: the recursion is given logarithms. */
static void extreme_outputs_give_finite_losses_and_gradients(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 484);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < 20; i++) {
            const size_t N = 1 + below(&random, 40), S = 2 + below(&random, 6);
            struct ctc_case c = ctc_open((struct tn_ctc){kernels, 1, 1, N, S}, N, 1.0, &random);
            double *const log_y = take(N * S, sizeof *log_y), *const q = take(N * S, sizeof *q);

            ctc_draw(&c, N / 3, &random);
            c.frames[0] = N;
            c.dloss.at[0] = 1.0f;
            for (size_t j = 0; j < N * S; j++)
                c.x.at[j] = below(&random, 2) ? 1e4f : -1e4f;
            for (size_t t = 0; t < N; t++) {
                double sum = 0.0;

                for (size_t j = 0; j < S; j++)
                    sum += c.x.at[t * S + j] > 0.0f;
                for (size_t j = 0; j < S; j++)
                    log_y[t * S + j] = sum > 0.0
                                           ? (c.x.at[t * S + j] > 0.0f ? 0.0 : -2e4) - log(sum)
                                           : -log((double)S);
            }
            const double want = -recursion(q, log_y, N, S, c.labels, c.counts[0]);

            ctc_run(&c, c.dx.at);
            check_loss(c.losses[0], want, 1e-6);
            for (size_t j = 0; j < N * S && want < none; j++)
                q[j] = exp(log_y[j]) - q[j];
            check_floats("dx", c.dx.at, q, N * S, 1e-5);
            ctc_close(&c);
            free(log_y);
            free(q);
        }
}

struct torch {
    const float *x, *loss, *dx;
    const size_t *frames, *counts;
    const int32_t *labels;
    size_t B, N, S;
};

static void check_torch(const struct torch *v, const struct tn_kernels *kernels)
{
    struct tn_random random;

    tn_random_seed(&random, 1);
    struct ctc_case c =
        ctc_open((struct tn_ctc){kernels, 2, v->B, v->N, v->S}, v->N, 1.0, &random);
    size_t labels = 0;

    memcpy(c.x.at, v->x, c.x.n * sizeof(float));
    for (size_t b = 0; b < v->B; b++) {
        c.frames[b] = v->frames[b];
        labels += c.counts[b] = v->counts[b];
        c.dloss.at[b] = 1.0f;
    }
    memcpy(c.labels, v->labels, labels * sizeof *c.labels);
    ctc_run(&c, c.dx.at);
    double *const dx = doubles_of(v->dx, c.dx.n);

    for (size_t b = 0; b < v->B; b++)
        check_loss(c.losses[b], (double)v->loss[b], 1e-6);
    check_floats("dx", c.dx.at, dx, c.dx.n, 2e-6);
    free(dx);
    ctc_close(&c);
}

static void pytorch_computes_the_same(void **state)
{
    static const struct torch vectors[] = {
        {usual_x, usual_loss, usual_dx, usual_frames, usual_counts, usual_labels, 4, 12, 6},
        {sharp_x, sharp_loss, sharp_dx, sharp_frames, sharp_counts, sharp_labels, 2, 30, 5},
    };
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
            check_torch(&vectors[i], kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_over_all_paths),
        cmocka_unit_test(long_sequences_equal_the_recursion_in_double),
        cmocka_unit_test(twenty_thousand_frames_lose_nothing),
        cmocka_unit_test(extreme_outputs_give_finite_losses_and_gradients),
        cmocka_unit_test(pytorch_computes_the_same),
    };

    return cmocka_run_group_tests_name("ctc", tests, NULL, NULL);
}
