/* SPDX-License-Identifier: MIT */
/* test_optimizers.c - every optimizer against PyTorch, the loop below them against a plain one
 * in double on every instruction set, and both for any number of threads. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/kernel_list.h"
#include "support/testing.h"
#include "tarn/train.h"
#include "train/optimizer.h"
#include "vectors/optimizers_torch.h"

enum { TENSORS = sizeof tensors / sizeof tensors[0] };

/* ---- help --------------------------------------------------------------- */

struct set {
    float *w, *g, *m, *v;
    size_t n;
};

static struct set set_open(size_t n)
{
    return (struct set){.w = take(n, sizeof(float)),
                        .g = take(n, sizeof(float)),
                        .m = take(n, sizeof(float)),
                        .v = take(n, sizeof(float)),
                        .n = n};
}

static void set_close(struct set *set)
{
    free(set->w);
    free(set->g);
    free(set->m);
    free(set->v);
}

static struct set set_drawn(size_t n, uint64_t seed)
{
    struct set set = set_open(n);
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < n; i++) {
        set.w[i] = (float)tn_random_normal(&random);
        set.m[i] = (float)tn_random_normal(&random);
        set.v[i] = (float)tn_random_uniform(&random);
        set.g[i] = (float)tn_random_normal(&random);
    }
    return set;
}

/* The rest of the step is the caller's. */
static struct tn_optimizer_step step_of(const struct set *set, const struct tn_range *ranges,
                                        size_t count, double rate, uint64_t t,
                                        const struct tn_kernels *kernels)
{
    return (struct tn_optimizer_step){.rate = rate,
                                      .t = t,
                                      .w = set->w,
                                      .g = set->g,
                                      .moments = {set->m, set->v},
                                      .tensors = ranges,
                                      .count = count,
                                      .host = host_of(kernels, 1)};
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
    assert_memory_equal(a->w, b->w, a->n * sizeof(float));
    assert_memory_equal(a->m, b->m, a->n * sizeof(float));
    assert_memory_equal(a->v, b->v, a->n * sizeof(float));
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
        const double got = (double)set->w[i], want = cases[number].w[row][i];

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
        set.w[i] = weight(i);
    for (uint64_t t = 1, row = 0; row < WRITTEN; t++) {
        for (size_t i = 0; i < COUNT; i++)
            set.g[i] = gradient((size_t)t, i) / 4.0f;
        struct tn_optimizer_step step = step_of(&set, tensors, TENSORS, rate(t), t, kernels);

        step.scales = scales;
        tn_optimizer_update(&optimizer, step);
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

static void every_row_has_values_to_compare_with(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_optimizer(i); i++)
        assert_true(has_case(tarn_optimizer(i)->name));
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

    kernels->update(is.w + past, is.m + past, is.v + past, is.g + past, 0.7f, &by, n);
    assert_memory_equal(is.w, was.w, past * sizeof(float));
    assert_memory_equal(is.m, was.m, past * sizeof(float));
    assert_memory_equal(is.v, was.v, past * sizeof(float));
    for (size_t i = past; i < past + n; i++) {
        const double w = (double)was.w[i], g = scale * (double)was.g[i] + 0.2 * w;
        const double m = 0.9 * (double)was.m[i] + 0.1 * g;
        const double v = 0.99 * (double)was.v[i] + 0.01 * g * g;
        const double step = 0.04 * m / (1.5 * sqrt(v) + 0.06);

        check_near("m", (double)is.m[i], m, 1.0 + fabs(g));
        check_near("v", (double)is.v[i], v, 1.0 + g * g);
        check_near("w", (double)is.w[i], w - 0.03 * w - step, 1.0 + fabs(w));
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

static void moments_of_every_row_die_out(void **state)
{
    const struct tn_kernels *const kernels = tn_kernels_pick(forced_cpu());

    (void)state;
    for (size_t r = 0; tarn_optimizer(r); r++) {
        const struct tn_optimizer optimizer = optimizer_of(tarn_optimizer(r)->name);
        struct set set = set_drawn(COUNT, 6);

        memset(set.g, 0, COUNT * sizeof *set.g);
        for (uint64_t t = 1; t <= 12000; t++)
            tn_optimizer_update(&optimizer, step_of(&set, tensors, TENSORS, 1e-6, t, kernels));
        for (size_t i = 0; i < COUNT; i++)
            assert_true(set.m[i] == 0.0f || fabsf(set.m[i]) >= FLT_MIN);
        set_close(&set);
    }
}

/* What a gradient that is no number does must be seen, not hidden. */
static void nan_gradients_show(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t r = 0; tarn_optimizer(r); r++)
        for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
            const struct tn_optimizer optimizer = optimizer_of(tarn_optimizer(r)->name);
            struct set set = set_drawn(COUNT, 5);

            set.g[3] = NAN;
            tn_optimizer_update(&optimizer, step_of(&set, tensors, TENSORS, 0.1, 1, kernels));
            for (size_t i = 0; i < COUNT; i++)
                assert_true(isnan(set.w[i]) == (i == 3));
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
    struct tn_optimizer_step step =
        step_of(&set, spread, SPREAD, 0.1, 1, tn_kernels_pick(forced_cpu()));

    step.scales = scales;
    step.host = forced_host(3);
    tn_optimizer_update(&optimizer, step);
    for (size_t i = 0; i < SPREAD_N; i++) {
        size_t tensor = 0;
        const bool inside = in_spread(i, &tensor);

        assert_true(set.m[i] == (inside ? (float)(tensor + 1) : 0.0f));
        assert_true((set.w[i] != 0.0f) == inside);
    }
    set_close(&set);
}

static void compare_threads(const struct tn_optimizer *optimizer,
                            const struct tn_kernels *kernels)
{
    struct set one = set_drawn(SPREAD_N, 77);

    tn_optimizer_update(optimizer, step_of(&one, spread, SPREAD, 0.1, 9, kernels));
    for (size_t threads = 2; threads <= 7; threads += 5) {
        struct set many = set_drawn(SPREAD_N, 77);
        struct tn_optimizer_step step = step_of(&many, spread, SPREAD, 0.1, 9, kernels);

        step.host = host_of(kernels, threads);
        tn_optimizer_update(optimizer, step);
        check_same(&one, &many);
        set_close(&many);
    }
    set_close(&one);
}

static void one_thread_equals_many(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t r = 0; tarn_optimizer(r); r++)
        for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
            const struct tn_optimizer optimizer = optimizer_of(tarn_optimizer(r)->name);

            compare_threads(&optimizer, kernels);
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

/* ---- specs -------------------------------------------------------------- */

static void specs_that_cannot_be_used_are_refused(void **state)
{
    static const char *const wrong[] = {"newton",         "",
                                        "sgd:beta1=0.9",  "sgd:nesterov=maybe",
                                        "lion:beta1=1",   "adam:rate=1",
                                        "adam:beta1=1",   "radam:eps=0",
                                        "adamw:decay=-1", "radam:decay=nan"};
    struct tn_optimizer optimizer;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tarn_error err = {0};

        assert_int_not_equal(tn_optimizer_init(&optimizer, wrong[i], &err), TARN_OK);
        assert_memory_equal(err.text, "optimizer: ", strlen("optimizer: "));
    }
}

/* At the ends of every option's range, for the first update and for one after years. */
static void check_finite(const tarn_table_row *row, unsigned ends, uint64_t t)
{
    struct tn_optimizer optimizer = optimizer_of(row->name);
    struct set set = set_open(COUNT);

    for (size_t o = 0; row->options[o].name; o++)
        optimizer.options.value[o] =
            ends >> o & 1 ? row->options[o].maximum : row->options[o].minimum;
    for (size_t i = 0; i < COUNT; i++) {
        set.w[i] = weight(i);
        set.g[i] = 1.0f;
    }
    tn_optimizer_update(
        &optimizer, step_of(&set, tensors, TENSORS, 1e-3, t, tn_kernels_pick(forced_cpu())));
    for (size_t i = 0; i < COUNT; i++)
        if (!(fabsf(set.w[i] - weight(i)) <= 2.0f)) /* moments start from zero */
            fail_msg("%s, ends %x, update %llu: weight %zu is %g", row->name, ends,
                     (unsigned long long)t, i, (double)set.w[i]);
    set_close(&set);
}

static void updates_are_bounded_for_every_option(void **state)
{
    static const uint64_t when[] = {1, 5, 6, 1000, UINT64_C(1) << 50};

    (void)state;
    for (size_t r = 0; tarn_optimizer(r); r++)
        for (unsigned ends = 0; ends < 16; ends++)
            for (size_t k = 0; k < sizeof when / sizeof when[0]; k++)
                check_finite(tarn_optimizer(r), ends, when[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_those_of_pytorch),
        cmocka_unit_test(every_row_has_values_to_compare_with),
        cmocka_unit_test(the_loop_changes_every_float_and_no_other),
        cmocka_unit_test(moments_die_out),
        cmocka_unit_test(moments_of_every_row_die_out),
        cmocka_unit_test(nan_gradients_show),
        cmocka_unit_test(every_float_of_a_tensor_changes_once_and_no_other),
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(pieces_have_numbers_of_their_own),
        cmocka_unit_test(specs_that_cannot_be_used_are_refused),
        cmocka_unit_test(updates_are_bounded_for_every_option),
    };

    return cmocka_run_group_tests_name("optimizers", tests, NULL, NULL);
}
