/* SPDX-License-Identifier: MIT */
/* test_optimizers.c - every optimizer against PyTorch, the loop below them against a plain one
 * in double on every instruction set, and both for any number of threads. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/kernel_list.h"
#include "support/testing.h"
#include "train/optimizer.h"
#include "vectors/optimizers_torch.h"

enum { TENSORS = sizeof tensors / sizeof tensors[0] };

/* ---- help --------------------------------------------------------------- */

struct set {
    struct tn_parameters p;
    float *g;
};

static struct set set_open(size_t n)
{
    struct set set = {.p = {.n = n}};

    set.p.w = take(n, sizeof(float));
    set.p.m = take(n, sizeof(float));
    set.p.v = take(n, sizeof(float));
    set.p.g = set.g = take(n, sizeof(float));
    return set;
}

static void set_close(struct set *set)
{
    free(set->p.w);
    free(set->p.m);
    free(set->p.v);
    free(set->g);
}

static struct set set_drawn(size_t n, uint64_t seed)
{
    struct set set = set_open(n);
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < n; i++) {
        set.p.w[i] = (float)tn_random_normal(&random);
        set.p.m[i] = (float)tn_random_normal(&random);
        set.p.v[i] = (float)tn_random_uniform(&random);
        set.g[i] = (float)tn_random_normal(&random);
    }
    return set;
}

static struct tn_optimizer optimizer_of(const char *spec)
{
    struct tn_optimizer optimizer;
    tarn_error err = {0};

    check_ok(tn_optimizer_init(&optimizer, spec, &err), &err);
    return optimizer;
}

static void check_same(const struct set *a, const struct set *b)
{
    assert_memory_equal(a->p.w, b->p.w, a->p.n * sizeof(float));
    assert_memory_equal(a->p.m, b->p.m, a->p.n * sizeof(float));
    assert_memory_equal(a->p.v, b->p.v, a->p.n * sizeof(float));
}

/* ---- PyTorch ------------------------------------------------------------ */

/* As in vectors/optimizers.py. */
static float weight(size_t i)
{
    return ((float)((i * 53) % 32) - 14.0f) / 8.0f;
}

static float gradient(size_t t, size_t i)
{
    return i == COUNT - 1 ? 0.0f
                          : ((float)((t * 37 + i * 101 + i * t * 7) % 64) - 31.0f) / 64.0f /
                                (float)(1 << (2 * (i % 4)));
}

static double rate(uint64_t t)
{
    return 1e-2 / (1.0 + (double)t / 16.0);
}

static void check_row(const struct set *set, const struct tn_kernels *kernels, size_t number,
                      size_t row)
{
    for (size_t i = 0; i < COUNT; i++) {
        const double got = (double)set->p.w[i], want = cases[number].w[row][i];

        if (!(fabs(got - want) <= 5e-7 * (fabs(want) + 0.1)))
            fail_msg("%s, %s, update %zu, weight %zu: %.9g, not %.9g", cases[number].spec,
                     kernels->name, (size_t)written[row], i, got, want);
    }
}

/* With gradients a quarter of what they count for, as clipping has it. */
static void check_case(size_t number, const struct tn_kernels *kernels)
{
    const struct tn_optimizer optimizer = optimizer_of(cases[number].spec);
    const float scales[TENSORS] = {4.0f, 4.0f, 4.0f};
    struct set set = set_open(COUNT);

    for (size_t i = 0; i < COUNT; i++)
        set.p.w[i] = weight(i);
    for (uint64_t t = 1, row = 0; row < WRITTEN; t++) {
        for (size_t i = 0; i < COUNT; i++)
            set.g[i] = gradient((size_t)t, i) / 4.0f;
        tn_optimizer_update(&optimizer, &set.p, scales, tensors, TENSORS, rate(t), t, kernels,
                            1);
        if (t == written[row])
            check_row(&set, kernels, number, row++);
    }
    set_close(&set);
}

static void updates_are_those_of_pytorch(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < CASES; i++)
            check_case(i, kernels);
}

static bool has_case(const char *name)
{
    for (size_t i = 0; i < CASES; i++)
        if (strcspn(cases[i].spec, ":") == strlen(name) &&
            memcmp(cases[i].spec, name, strlen(name)) == 0)
            return true;
    return false;
}

static void every_row_has_values_of_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; tn_optimizer_rows[i]; i++)
        assert_true(has_case(tn_optimizer_rows[i]->name));
}

/* ---- the loop ----------------------------------------------------------- */

static void check_near(const char *what, double got, double want, double size)
{
    if (!(fabs(got - want) <= 3e-7 * size))
        fail_msg("%s: %.9g, not %.9g", what, got, want);
}

static void check_update(const struct tn_kernels *kernels, size_t n, size_t past)
{
    const struct tn_update by = {0.1f, 0.01f, 0.2f, 0.03f, 0.04f, 1.5f, 0.06f};
    const double scale = (double)0.7f;
    struct set is = set_drawn(past + n, n), was = set_drawn(past + n, n);

    kernels->update(is.p.w + past, is.p.m + past, is.p.v + past, is.g + past, 0.7f, &by, n);
    assert_memory_equal(is.p.w, was.p.w, past * sizeof(float));
    assert_memory_equal(is.p.m, was.p.m, past * sizeof(float));
    assert_memory_equal(is.p.v, was.p.v, past * sizeof(float));
    for (size_t i = past; i < past + n; i++) {
        const double w = (double)was.p.w[i], g = scale * (double)was.g[i] + 0.2 * w;
        const double m = 0.9 * (double)was.p.m[i] + 0.1 * g;
        const double v = 0.99 * (double)was.p.v[i] + 0.01 * g * g;
        const double step = 0.04 * m / (1.5 * sqrt(v) + 0.06);

        check_near("m", (double)is.p.m[i], m, 1.0 + fabs(g));
        check_near("v", (double)is.p.v[i], v, 1.0 + g * g);
        check_near("w", (double)is.p.w[i], w - 0.03 * w - step, 1.0 + fabs(w));
    }
    set_close(&is);
    set_close(&was);
}

/* The memory ends where n floats end, which a sanitizer sees. */
static void the_loop_changes_every_float_and_no_other(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t n = 0; n <= 3 * 16 + 1; n++)
            for (size_t past = 0; past < 16; past += 5)
                check_update(kernels, n, past);
}

/* No float below the smallest normal one is left behind, and v never turns negative. */
static void moments_die_out(void **state)
{
    const struct tn_update by = {0.1f, 1.0f, 0.0f, 0.0f, 0.1f, 1.0f, 1e-8f};
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        float w[2] = {1.0f, 1.0f}, m[2] = {1.0f, -1e-20f}, v[2] = {1e30f, 1e-20f};
        const float g[2] = {0.0f, 0.0f};

        for (size_t t = 0; t < 1000; t++) {
            kernels->update(w, m, v, g, 1.0f, &by, 2);
            for (size_t i = 0; i < 2; i++) {
                assert_true(m[i] == 0.0f || fabsf(m[i]) > FLT_MIN);
                assert_true(v[i] == 0.0f);
            }
        }
        assert_true(m[0] == 0.0f && m[1] == 0.0f);
        assert_true(isfinite(w[0]) && isfinite(w[1]));
    }
}

/* What a gradient that is no number does must be seen, not hidden. */
static void nan_gradients_show(void **state)
{
    const struct tn_kernels *kernels;
    const struct tn_optimizer optimizer = optimizer_of("adam");

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct set set = set_drawn(COUNT, 5);

        set.g[3] = NAN;
        tn_optimizer_update(&optimizer, &set.p, NULL, tensors, TENSORS, 0.1, 1, kernels, 1);
        for (size_t i = 0; i < COUNT; i++)
            assert_true(isnan(set.p.w[i]) == (i == 3));
        set_close(&set);
    }
}

/* ---- pieces ------------------------------------------------------------- */

/* Long and short tensors, empty ones, gaps, ends on and off the ends of blocks. */
static const struct tn_range spread[] = {
    {0, 5},       {5, 0},       {6, 2 * 16384 - 6}, {2 * 16384, 16384}, {49153, 1},
    {49160, 100}, {49260, 100}, {49360, 200000},    {249360, 0},        {250000, 17},
};
enum { SPREAD = sizeof spread / sizeof spread[0], SPREAD_N = 250100 };

static bool in_spread(size_t i, size_t *tensor)
{
    for (size_t t = 0; t < SPREAD; t++)
        if (i >= spread[t].from && i - spread[t].from < spread[t].count) {
            *tensor = t;
            return true;
        }
    return false;
}

static void every_float_of_a_tensor_changes_once_and_no_other(void **state)
{
    const struct tn_optimizer optimizer = optimizer_of("adam:beta1=0");
    struct set set = set_open(SPREAD_N);
    float scales[SPREAD];

    (void)state;
    for (size_t i = 0; i < SPREAD_N; i++)
        set.g[i] = 1.0f;
    for (size_t t = 0; t < SPREAD; t++)
        scales[t] = (float)(t + 1);
    tn_optimizer_update(&optimizer, &set.p, scales, spread, SPREAD, 0.1, 1,
                        tn_kernels_pick(forced_cpu()), 3);
    for (size_t i = 0; i < SPREAD_N; i++) {
        size_t tensor = 0;
        const bool inside = in_spread(i, &tensor);

        assert_true(set.p.m[i] == (inside ? (float)(tensor + 1) : 0.0f));
        assert_true((set.p.w[i] != 0.0f) == inside);
    }
    set_close(&set);
}

static void one_thread_equals_many(void **state)
{
    const struct tn_optimizer optimizer = optimizer_of("radam");
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct set one = set_drawn(SPREAD_N, 77);

        tn_optimizer_update(&optimizer, &one.p, NULL, spread, SPREAD, 0.1, 9, kernels, 1);
        for (size_t threads = 2; threads <= 7; threads += 5) {
            struct set many = set_drawn(SPREAD_N, 77);

            tn_optimizer_update(&optimizer, &many.p, NULL, spread, SPREAD, 0.1, 9, kernels,
                                threads);
            check_same(&one, &many);
            set_close(&many);
        }
        set_close(&one);
    }
}

struct seen {
    unsigned char *index, *at;
    size_t count;
};

static void see(void *arg, struct tn_piece piece)
{
    struct seen *const seen = arg;
    const size_t index = tn_piece_index(piece.tensor, piece.block);

    assert_true(index < seen->count);
    assert_int_equal(seen->index[index]++, 0);
    assert_true(piece.count > 0);
    assert_int_equal(piece.from / TN_PIECES_BLOCK, piece.block);
    assert_int_equal((piece.from + piece.count - 1) / TN_PIECES_BLOCK, piece.block);
    for (size_t i = 0; i < piece.count; i++)
        seen->at[piece.from + i]++;
}

static void pieces_have_numbers_of_their_own(void **state)
{
    struct seen seen = {.count = tn_pieces_count(spread, SPREAD)};

    (void)state;
    seen.index = take(seen.count, 1);
    seen.at = take(SPREAD_N, 1);
    tn_pieces_parallel(spread, SPREAD, see, &seen, 1);
    for (size_t i = 0; i < SPREAD_N; i++) {
        size_t tensor;

        assert_int_equal(seen.at[i], in_spread(i, &tensor));
    }
    free(seen.index);
    free(seen.at);
    assert_int_equal(tn_pieces_count(NULL, 0), 0);
}

static void ranges_that_overlap_or_leave_the_array_are_refused(void **state)
{
    static const struct tn_range overlap[] = {{0, 5}, {4, 2}}, turned[] = {{5, 2}, {0, 5}},
                                 beyond[] = {{0, 5}, {5, 6}}, huge[] = {{3, SIZE_MAX}};
    tarn_error err;

    (void)state;
    check_ok(tn_ranges_check(spread, SPREAD, SPREAD_N, &err), &err);
    check_ok(tn_ranges_check(NULL, 0, 0, &err), &err);
    assert_int_equal(tn_ranges_check(overlap, 2, 10, &err), TARN_EINVAL);
    assert_string_equal(err.text, "tensors[1] starts at 4; it must start at 5 or later, where "
                                  "the previous one ends");
    assert_int_equal(tn_ranges_check(turned, 2, 10, &err), TARN_EINVAL);
    assert_int_equal(tn_ranges_check(beyond, 2, 10, &err), TARN_EINVAL);
    assert_string_equal(err.text, "tensors[1] has 6 floats from 5; it must end "
                                  "within 10");
    assert_int_equal(tn_ranges_check(huge, 1, 10, &err), TARN_EINVAL);
}

/* ---- specs -------------------------------------------------------------- */

static void specs_that_cannot_be_used_are_refused(void **state)
{
    static const char *const wrong[] = {"sgd",
                                        "",
                                        "adam:rate=1",
                                        "adam:beta1=1",
                                        "radam:eps=0",
                                        "adamw:decay=-1",
                                        "radam:decay=nan"};
    struct tn_optimizer optimizer;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tarn_error err = {0};

        assert_int_not_equal(tn_optimizer_init(&optimizer, wrong[i], &err), TARN_OK);
        assert_memory_equal(err.text, "optimizer: ", strlen("optimizer: "));
    }
}

/* At the ends of every option's range, for the first update and for one after years. */
static void numbers_are_finite_for_every_option(void **state)
{
    static const uint64_t when[] = {1, 5, 6, 1000, UINT64_C(1) << 50};

    (void)state;
    for (size_t r = 0; tn_optimizer_rows[r]; r++)
        for (unsigned ends = 0; ends < 16; ends++)
            for (size_t k = 0; k < sizeof when / sizeof when[0]; k++) {
                struct tn_optimizer optimizer = optimizer_of(tn_optimizer_rows[r]->name);

                for (size_t o = 0; o < 4; o++)
                    optimizer.options.value[o] = ends >> o & 1
                                                     ? tn_optimizer_rows[r]->options[o].maximum
                                                     : tn_optimizer_rows[r]->options[o].minimum;
                const struct tn_update by =
                    optimizer.row->numbers(&optimizer.options, 1e-3, when[k]);

                assert_true(isfinite(by.step) && by.step > 0.0f);
                assert_true(isfinite(by.root) && by.root >= 0.0f && by.eps > 0.0f);
                assert_true(by.gain1 > 0.0f && by.gain1 <= 1.0f);
                assert_true(by.gain2 > 0.0f && by.gain2 <= 1.0f);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_pytorch),
        cmocka_unit_test(every_row_has_values_of_pytorch),
        cmocka_unit_test(the_loop_changes_every_float_and_no_other),
        cmocka_unit_test(moments_die_out),
        cmocka_unit_test(nan_gradients_show),
        cmocka_unit_test(every_float_of_a_tensor_changes_once_and_no_other),
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(pieces_have_numbers_of_their_own),
        cmocka_unit_test(ranges_that_overlap_or_leave_the_array_are_refused),
        cmocka_unit_test(specs_that_cannot_be_used_are_refused),
        cmocka_unit_test(numbers_are_finite_for_every_option),
    };

    return cmocka_run_group_tests_name("optimizers", tests, NULL, NULL);
}
