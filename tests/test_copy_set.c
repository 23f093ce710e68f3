/* SPDX-License-Identifier: MIT */
/* test_copy_set.c - the copy task's sequences are those of the paper. */
#include <string.h>

#include "data/copy_set.h"
#include "support/batches.h"

static struct tn_copy_set open_set(size_t N, size_t symbols, uint64_t seed)
{
    struct tn_copy_set set;
    tarn_error err;

    check_ok(tn_copy_set_init(&set, N, symbols, seed, &err), &err);
    return set;
}

/* n from the layout alone: the first separator. */
static size_t copied(const struct tn_batch *batch, size_t b)
{
    const int32_t *const inputs = batch->inputs + b * batch->N;
    size_t n = 0;

    while (n < batch->N && inputs[n] != 0)
        n++;
    return n;
}

/* s 0 s 0 ..., targets one ahead, weights on what follows position n - 1 up to the copy's
 * end. */
static void check_sequence(const struct tn_batch *batch, size_t b)
{
    const size_t N = batch->N, n = copied(batch, b);
    const int32_t *const x = batch->inputs + b * N, *const y = batch->targets + b * N;

    assert_true(n >= N / 4 && n < (N - 1) / 2 && n >= 1);
    for (size_t i = 0; i < N; i++) {
        const int32_t want = i < n ? x[i] : i > n && i <= 2 * n ? x[i - n - 1] : 0;

        assert_int_equal(x[i], want);
        assert_int_equal(y[i], i + 1 < N ? x[i + 1] : 0);
        assert_true(batch->weights[b * N + i] == (i + 1 >= n && i < 2 * n ? 1.0f : 0.0f));
    }
}

static void every_sequence_is_laid_out_as_drawn(void **state)
{
    static const size_t lengths[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 31, 64, 128};

    (void)state;
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        const struct tn_copy_set set = open_set(lengths[l], 10, 7);
        struct owned_batch owned = batch_open(8, lengths[l]);

        for (uint64_t index = 0; index < 20; index++) {
            batch_spoil(&owned);
            tn_copy_set_fill(&set, &owned.batch, TN_TRAINING, index);
            batch_check(&owned.batch, 11);
            for (size_t b = 0; b < 8; b++)
                check_sequence(&owned.batch, b);
        }
        batch_close(&owned);
    }
}

/* These numbers must never change: a resumed run depends on them. */
static void a_small_seed_gives_these_sequences(void **state)
{
    const struct tn_copy_set set = open_set(12, 10, 1);
    struct owned_batch owned = batch_open(2, 12);

    static const int32_t inputs[] = {8,  4, 2, 0, 8, 4,  2, 0, 0, 0, 0, 0,
                                     10, 4, 5, 8, 0, 10, 4, 5, 8, 0, 0, 0};
    static const int32_t targets[] = {4, 2, 0, 8, 4,  2, 0, 0, 0, 0, 0, 0,
                                      4, 5, 8, 0, 10, 4, 5, 8, 0, 0, 0, 0};
    static const float weights[] = {0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
                                    0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0};

    (void)state;
    tn_copy_set_fill(&set, &owned.batch, TN_TRAINING, 0);
    assert_memory_equal(owned.batch.inputs, inputs, sizeof inputs);
    assert_memory_equal(owned.batch.targets, targets, sizeof targets);
    assert_memory_equal(owned.batch.weights, weights, sizeof weights);
    batch_close(&owned);
}

/* N = 128: n from 32 to 62, 31 values, 31000 draws: 1000 each with a standard deviation of 31.
 * Symbols: 10 of them. */
static void lengths_and_symbols_are_uniform(void **state)
{
    const struct tn_copy_set set = open_set(128, 10, 5);
    struct owned_batch owned = batch_open(31, 128);
    size_t lengths[128] = {0}, symbols[11] = {0}, drawn = 0;

    (void)state;
    for (uint64_t index = 0; index < 1000; index++) {
        tn_copy_set_fill(&set, &owned.batch, TN_TRAINING, index);
        for (size_t b = 0; b < 31; b++) {
            const size_t n = copied(&owned.batch, b);

            lengths[n]++;
            drawn += n;
            for (size_t i = 0; i < n; i++)
                symbols[owned.batch.inputs[b * 128 + i]]++;
        }
    }
    for (size_t n = 0; n < 128; n++)
        if (n >= 32 && n < 63)
            assert_true(lengths[n] > 840 && lengths[n] < 1160);
        else
            assert_int_equal(lengths[n], 0);
    assert_int_equal(symbols[0], 0);
    for (size_t s = 1; s <= 10; s++)
        assert_true(symbols[s] > drawn / 10 - drawn / 200 &&
                    symbols[s] < drawn / 10 + drawn / 200);
    batch_close(&owned);
}

static void a_batch_is_a_function_of_its_place(void **state)
{
    const struct tn_copy_set set = open_set(40, 10, 9), other = open_set(40, 10, 10);
    struct owned_batch a = batch_open(4, 40), b = batch_open(4, 40);

    (void)state;
    tn_copy_set_fill(&set, &a.batch, TN_TRAINING, 17);
    tn_copy_set_fill(&set, &b.batch, TN_TRAINING, 18);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_copy_set_fill(&set, &b.batch, TN_VALIDATION, 17);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_copy_set_fill(&other, &b.batch, TN_TRAINING, 17);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_copy_set_fill(&set, &b.batch, TN_TRAINING, 17);
    assert_true(batch_equal(&a.batch, &b.batch));
    assert_memory_not_equal(a.batch.inputs, a.batch.inputs + 40, 40 * sizeof(int32_t));
    batch_close(&a);
    batch_close(&b);
}

static void sizes_without_sequences_are_refused(void **state)
{
    static const size_t cases[][2] = {{0, 10}, {4, 10}, {5, 0}, {128, (size_t)INT32_MAX}};

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        struct tn_copy_set set;
        tarn_error err = {0};

        assert_int_equal(tn_copy_set_init(&set, cases[c][0], cases[c][1], 0, &err),
                         TARN_EINVAL);
        assert_non_null(strstr(err.text, "it must be"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_is_laid_out_as_drawn),
        cmocka_unit_test(a_small_seed_gives_these_sequences),
        cmocka_unit_test(lengths_and_symbols_are_uniform),
        cmocka_unit_test(a_batch_is_a_function_of_its_place),
        cmocka_unit_test(sizes_without_sequences_are_refused),
    };

    return cmocka_run_group_tests_name("copy set", tests, NULL, NULL);
}
