/* SPDX-License-Identifier: MIT */
/* test_ctc_decode.c - greedy and beam against all paths and all label sequences, on cases that
 * are small enough to try them all; streaming against the whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/ctc_decode.h"
#include "support/testing.h"

enum { T_MOST = 6 };

struct decode_case {
    struct tn_ctc_frames frames;
    size_t T;
    float *x;
    double *y; /* log-probabilities */
    void *scratch;
};

static struct decode_case case_open(size_t T, size_t S, double spread, size_t width,
                                    struct tn_random *random)
{
    struct decode_case c = {.frames = {tn_kernels_pick(forced_cpu()), T, S}, .T = T};
    const size_t bytes =
        tn_max(tn_ctc_beam_scratch(&c.frames, width),
               tn_max(tn_ctc_score_scratch(&c.frames), tn_ctc_align_scratch(&c.frames)));

    assert_true(bytes < SIZE_MAX);
    c.x = take(T * S, sizeof *c.x);
    c.y = take(T * S, sizeof *c.y);
    c.scratch = take(bytes, 1);
    for (size_t i = 0; i < T * S; i++)
        c.x[i] = (float)(spread * tn_random_normal(random));
    for (size_t t = 0; t < T; t++) {
        double sum = 0.0;

        for (size_t k = 0; k < S; k++)
            sum += exp((double)c.x[t * S + k]);
        for (size_t k = 0; k < S; k++)
            c.y[t * S + k] = (double)c.x[t * S + k] - log(sum);
    }
    return c;
}

static void case_close(struct decode_case *c)
{
    free(c->x);
    free(c->y);
    free(c->scratch);
}

/* ---- all paths ---------------------------------------------------------- */

/* Labels of a path, and where each begins; returns how many. */
static size_t labels_of(int32_t *labels, size_t *frames, const size_t *path, size_t T)
{
    size_t count = 0;

    for (size_t t = 0; t < T; t++)
        if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) {
            frames[count] = t;
            labels[count++] = (int32_t)path[t];
        }
    return count;
}

static bool step(size_t *path, size_t T, size_t S)
{
    for (size_t t = 0; t < T; t++) {
        if (++path[t] < S)
            return true;
        path[t] = 0;
    }
    return false;
}

/* The sum over paths of the labels, and the best of them. */
struct truth {
    double sum, best;
    size_t frames[T_MOST];
    double confidence[T_MOST];
};

static double path_log(const struct decode_case *c, const size_t *path)
{
    double sum = 0.0;

    for (size_t t = 0; t < c->T; t++)
        sum += c->y[t * c->frames.S + path[t]];
    return sum;
}

static struct truth truth_of(const struct decode_case *c, const int32_t *wanted, size_t L)
{
    struct truth truth = {.best = -(double)INFINITY};
    size_t path[T_MOST] = {0}, frames[T_MOST] = {0};
    int32_t labels[T_MOST] = {0};

    do {
        const size_t count = labels_of(labels, frames, path, c->T);

        if (count != L || memcmp(labels, wanted, L * sizeof *labels) != 0)
            continue;
        const double p = path_log(c, path);

        truth.sum += exp(p);
        if (p <= truth.best)
            continue;
        truth.best = p;
        memcpy(truth.frames, frames, sizeof frames);
        memset(truth.confidence, 0, sizeof truth.confidence);
        for (size_t t = 0, i = 0; t < c->T; t++) {
            i += i < L && t > 0 && path[t] != path[t - 1] && path[t - 1] != 0;
            if (path[t] != 0)
                truth.confidence[i] =
                    fmax(truth.confidence[i], exp(c->y[t * c->frames.S + path[t]]));
        }
    } while (step(path, c->T, c->frames.S));
    return truth;
}

static void check_symbols(const struct decode_case *c, const struct tn_ctc_symbol *symbols,
                          size_t count, double best)
{
    int32_t labels[T_MOST] = {0};

    for (size_t i = 0; i < count; i++)
        labels[i] = symbols[i].symbol;
    const struct truth truth = truth_of(c, labels, count);

    assert_true(fabs(best - truth.best) < 1e-6);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(symbols[i].frame, truth.frames[i]);
        assert_true(fabs(symbols[i].confidence - truth.confidence[i]) < 1e-6);
    }
}

/* ---- greedy ------------------------------------------------------------- */

static size_t greedy_of(const struct decode_case *c, struct tn_ctc_symbol *symbols,
                        double *log_probability)
{
    struct tn_ctc_greedy greedy = {0};
    size_t count = tn_ctc_greedy_push(&greedy, symbols, c->x, c->T, c->frames.S);

    count += tn_ctc_greedy_end(&greedy, symbols + count);
    *log_probability = greedy.log_probability;
    return count;
}

static void greedy_is_the_best_path(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 495);
    for (size_t i = 0; i < 200; i++) {
        struct decode_case c =
            case_open(1 + below(&random, T_MOST), 2 + below(&random, 2), 2.0, 1, &random);
        struct tn_ctc_symbol symbols[T_MOST];
        double log_probability, best = 0.0;
        const size_t count = greedy_of(&c, symbols, &log_probability);

        for (size_t t = 0; t < c.T; t++) {
            double most = -(double)INFINITY;

            for (size_t k = 0; k < c.frames.S; k++)
                most = fmax(most, c.y[t * c.frames.S + k]);
            best += most;
        }
        assert_true(fabs(best - log_probability) < 1e-9);
        check_symbols(&c, symbols, count, log_probability);
        case_close(&c);
    }
}

static void frames_may_come_in_any_portions(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 496);
    for (size_t i = 0; i < 100; i++) {
        const size_t T = 1 + below(&random, 200), S = 2 + below(&random, 5);
        struct decode_case c = case_open(T, S, 2.0, 1, &random);
        struct tn_ctc_symbol *const all = take(T, sizeof *all), *const some =
                                                                    take(T, sizeof *all);
        struct tn_ctc_greedy greedy = {0};
        size_t count = 0;
        double log_probability;
        const size_t whole = greedy_of(&c, all, &log_probability);

        for (size_t at = 0, n; at < T; at += n) {
            n = tn_min(T - at, below(&random, 7));
            count += tn_ctc_greedy_push(&greedy, some + count, c.x + at * S, n, S);
        }
        count += tn_ctc_greedy_end(&greedy, some + count);
        assert_int_equal(count, whole);
        assert_true(greedy.log_probability == log_probability);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(some[k].symbol, all[k].symbol);
            assert_int_equal(some[k].frame, all[k].frame);
            assert_true(some[k].confidence == all[k].confidence);
        }
        case_close(&c);
        free(all);
        free(some);
    }
}

/* ---- labels ------------------------------------------------------------- */

static void scores_and_alignments_are_those_of_all_paths(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 497);
    for (size_t i = 0; i < 300; i++) {
        struct decode_case c =
            case_open(1 + below(&random, T_MOST), 2 + below(&random, 2), 2.0, 1, &random);
        const size_t L = below(&random, T_MOST);
        int32_t labels[T_MOST];
        struct tn_ctc_symbol symbols[T_MOST];

        for (size_t k = 0; k < L; k++)
            labels[k] = 1 + (int32_t)below(&random, c.frames.S - 1);
        const struct truth truth = truth_of(&c, labels, L);
        const double score = tn_ctc_score(&c.frames, c.x, c.T, labels, L, c.scratch);
        const double best = tn_ctc_align(&c.frames, symbols, c.x, c.T, labels, L, c.scratch);

        if (truth.sum > 0.0) {
            assert_true(fabs(score - log(truth.sum)) < 1e-5);
            check_symbols(&c, symbols, L, best);
        } else {
            assert_true(score == -(double)INFINITY && best == -(double)INFINITY);
        }
        case_close(&c);
    }
}

/* What a beam says of its labels is what their alignment says. */
static void check_beam(struct decode_case *c, const struct tn_ctc_symbol *symbols, size_t count)
{
    int32_t labels[T_MOST] = {0};
    struct tn_ctc_symbol again[T_MOST];

    for (size_t i = 0; i < count; i++)
        labels[i] = symbols[i].symbol;
    check_symbols(c, symbols, count,
                  tn_ctc_align(&c->frames, again, c->x, c->T, labels, count, c->scratch));
}

/* A beam that holds all prefixes finds the likeliest labels of all. */
static void a_wide_beam_finds_the_likeliest_labels(void **state)
{
    enum { WIDTH = 400 };
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 498);
    for (size_t i = 0; i < 60; i++) {
        struct decode_case c = case_open(1 + below(&random, 5), 3, 1.0, WIDTH, &random);
        struct tn_ctc_symbol symbols[T_MOST];
        size_t count, path[T_MOST] = {0}, frames[T_MOST];
        double best = -(double)INFINITY;
        const double got = tn_ctc_beam(&c.frames, WIDTH, symbols, &count, c.x, c.T, c.scratch);

        do {
            int32_t labels[T_MOST];
            const size_t L = labels_of(labels, frames, path, c.T);

            best = fmax(best, log(truth_of(&c, labels, L).sum));
        } while (step(path, c.T, 3));
        assert_true(fabs(got - best) < 1e-5);
        check_beam(&c, symbols, count);
        case_close(&c);
    }
}

static void a_beam_is_never_worse_than_greedy(void **state)
{
    struct tn_random random;
    size_t better = 0;

    (void)state;
    tn_random_seed(&random, 499);
    for (size_t i = 0; i < 100; i++) {
        const size_t T = 1 + below(&random, 80), S = 2 + below(&random, 8);
        const size_t width = ONE_OF(&random, 1, 2, 5, 20, 50);
        struct decode_case c = case_open(T, S, 1.5, width, &random);
        struct tn_ctc_symbol *const symbols = take(T, sizeof *symbols);
        int32_t *const labels = take(T, sizeof *labels);
        double path;
        size_t count = greedy_of(&c, symbols, &path);

        for (size_t k = 0; k < count; k++)
            labels[k] = symbols[k].symbol;
        const double greedy = tn_ctc_score(&c.frames, c.x, T, labels, count, c.scratch);
        const double beam = tn_ctc_beam(&c.frames, width, symbols, &count, c.x, T, c.scratch);

        for (size_t k = 0; k < count; k++)
            labels[k] = symbols[k].symbol;
        assert_true(greedy >= path - 1e-4);
        assert_true(beam >= greedy);
        assert_true(beam == tn_ctc_score(&c.frames, c.x, T, labels, count, c.scratch));
        for (size_t k = 1; k < count; k++)
            assert_true(symbols[k].frame > symbols[k - 1].frame);
        better += beam > greedy;
        case_close(&c);
        free(symbols);
        free(labels);
    }
    assert_true(better > 20);
}

static void no_frames_are_no_labels(void **state)
{
    struct tn_random random;
    size_t count = 7;
    struct tn_ctc_symbol symbol;

    (void)state;
    tn_random_seed(&random, 500);
    struct decode_case c = case_open(1, 3, 1.0, 4, &random);

    assert_true(tn_ctc_beam(&c.frames, 4, &symbol, &count, c.x, 0, c.scratch) == 0.0);
    assert_int_equal(count, 0);
    case_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_is_the_best_path),
        cmocka_unit_test(frames_may_come_in_any_portions),
        cmocka_unit_test(scores_and_alignments_are_those_of_all_paths),
        cmocka_unit_test(a_wide_beam_finds_the_likeliest_labels),
        cmocka_unit_test(a_beam_is_never_worse_than_greedy),
        cmocka_unit_test(no_frames_are_no_labels),
    };

    return cmocka_run_group_tests_name("ctc decoding", tests, NULL, NULL);
}
