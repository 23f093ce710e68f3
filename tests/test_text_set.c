/* SPDX-License-Identifier: MIT */
/* test_text_set.c - windows of a file: anywhere to train on, everything once to validate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/text_set.h"
#include "support/batches.h"
#include "support/folder.h"

/* Byte i is i mod 251, so that a window tells where it was taken, up to multiples of 251. */
static void put_text(const char *path, size_t size)
{
    unsigned char *const text = take(size, 1);

    for (size_t i = 0; i < size; i++)
        text[i] = (unsigned char)(i % 251);
    file_put(path, text, size);
    free(text);
}

static struct tn_text_set open_set(const struct folder *folder, size_t size, size_t N,
                                   double validation)
{
    const char *const path = folder_file(folder, "text");
    struct tn_text_set set;
    tarn_error err;

    put_text(path, size);
    check_ok(tn_text_set_read(&set, path, N, validation, 11, false, &err), &err);
    return set;
}

static void the_last_part_is_for_validation(void **state)
{
    static const struct {
        size_t size;
        double validation;
        size_t training;
    } cases[] = {
        {100, 0.1, 90}, {100, 0.25, 75}, {105, 0.1, 95}, {100, 1.0, 0}, {1000, 0.5, 500}};
    struct folder folder = folder_open();

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tn_text_set set = open_set(&folder, cases[c].size, 8, cases[c].validation);

        assert_int_equal(set.bytes.size, cases[c].size);
        assert_int_equal(set.training, cases[c].training);
        tn_text_set_free(&set);
        tn_text_set_free(&set);
    }
    folder_close(&folder);
}

/* 60 bytes to train on and windows of 1 + 10: offsets 0 .. 49, each of 50 expected 400 times in
 * 20000 draws, with a standard deviation of 20. */
static void training_windows_are_anywhere_in_the_training_part(void **state)
{
    struct folder folder = folder_open();
    struct tn_text_set set = open_set(&folder, 80, 10, 0.25);
    struct owned_batch owned = batch_open(20, 10);
    size_t begins[80] = {0};

    (void)state;
    for (uint64_t index = 0; index < 1000; index++) {
        batch_spoil(&owned);
        tn_text_set_fill(&set, &owned.batch, TN_TRAINING, index);
        assert_int_equal(batch_check(&owned.batch, TN_TEXT_SYMBOLS), 200);
        for (size_t b = 0; b < 20; b++) {
            const int32_t begin = owned.batch.inputs[b * 10];

            for (size_t i = 0; i < 10; i++) {
                assert_int_equal(owned.batch.inputs[b * 10 + i], begin + (int32_t)i);
                assert_int_equal(owned.batch.targets[b * 10 + i], begin + (int32_t)i + 1);
            }
            begins[begin]++;
        }
    }
    for (size_t begin = 0; begin < 80; begin++)
        if (begin < 50)
            assert_true(begins[begin] > 300 && begins[begin] < 500);
        else
            assert_int_equal(begins[begin], 0);
    batch_close(&owned);
    tn_text_set_free(&set);
    folder_close(&folder);
}

/* Over all batches: inputs and targets are neighbours, and each byte but the first is predicted
 * once. */
static void check_cover(const struct tn_text_set *set, size_t B)
{
    const size_t first = set->training, N = set->N, batches = tn_text_set_batches(set, B);
    struct owned_batch owned = batch_open(B, N);
    size_t at = first;

    for (uint64_t index = 0; index < batches; index++) {
        batch_spoil(&owned);
        tn_text_set_fill(set, &owned.batch, TN_VALIDATION, index);
        batch_check(&owned.batch, TN_TEXT_SYMBOLS);
        for (size_t i = 0; i < B * N; i++)
            if (owned.batch.weights[i] > 0.0f) {
                assert_int_equal(owned.batch.inputs[i], set->bytes.data[at]);
                assert_int_equal(owned.batch.targets[i], set->bytes.data[at + 1]);
                at++;
            } else {
                assert_int_equal(at, set->bytes.size - 1);
                assert_int_equal(owned.batch.inputs[i], 0);
                assert_int_equal(owned.batch.targets[i], 0);
            }
    }
    assert_int_equal(at, set->bytes.size - 1);
    assert_true((batches - 1) * B * N < set->bytes.size - 1 - first);
    batch_close(&owned);
}

/* 100 bytes to train on: 3 streams of 3 windows of 10, one after the other, then again. */
static void carried_windows_continue_their_streams(void **state)
{
    enum { STREAMS = 3, LENGTH = 10, WINDOWS = 3 };
    struct folder folder = folder_open();
    struct tn_text_set set = open_set(&folder, 200, LENGTH, 0.5);
    struct owned_batch owned = batch_open(STREAMS, LENGTH);

    (void)state;
    set.carry = true;
    assert_true(tn_text_set_carries(&set, STREAMS));
    assert_true(tn_text_set_carries(&set, 9));
    assert_false(tn_text_set_carries(&set, 10));
    for (uint64_t index = 0; index < 2 * WINDOWS + 1; index++) {
        const size_t window = (size_t)index % WINDOWS;

        tn_text_set_fill(&set, &owned.batch, TN_TRAINING, index);
        assert_int_equal(owned.batch.position, window * LENGTH);
        for (size_t b = 0; b < STREAMS; b++)
            for (size_t n = 0; n < LENGTH; n++) {
                const size_t at = (b * WINDOWS + window) * LENGTH + n;

                assert_int_equal(owned.batch.inputs[b * LENGTH + n], set.bytes.data[at]);
                assert_int_equal(owned.batch.targets[b * LENGTH + n], set.bytes.data[at + 1]);
            }
    }
    batch_close(&owned);
    tn_text_set_free(&set);
    folder_close(&folder);
}

static void validation_predicts_every_byte_once(void **state)
{
    static const size_t sizes[] = {100, 101, 119, 120, 121, 122, 160, 500};
    struct folder folder = folder_open();

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t N = 1; N <= 40; N += 13)
            for (size_t B = 1; B <= 7; B += 3) {
                struct tn_text_set set = open_set(&folder, sizes[s], N, 0.3);

                check_cover(&set, B);
                tn_text_set_free(&set);
                set = open_set(&folder, sizes[s], N, 1.0);
                check_cover(&set, B);
                tn_text_set_free(&set);
            }
    folder_close(&folder);
}

static void behind_the_last_batch_nothing_counts(void **state)
{
    static const uint64_t places[] = {0, 1, UINT64_MAX, UINT64_MAX / 3};
    struct folder folder = folder_open();
    struct tn_text_set set = open_set(&folder, 100, 9, 0.5);
    struct owned_batch owned = batch_open(3, 9);

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const uint64_t batches = tn_text_set_batches(&set, 3);

        batch_spoil(&owned);
        tn_text_set_fill(&set, &owned.batch, TN_VALIDATION,
                         places[i] > 1 ? places[i] : batches + places[i]);
        assert_int_equal(batch_check(&owned.batch, 1), 0);
    }
    batch_close(&owned);
    tn_text_set_free(&set);
    folder_close(&folder);
}

static void a_text_for_validation_only_has_nothing_to_train_on(void **state)
{
    struct folder folder = folder_open();
    struct tn_text_set set = open_set(&folder, 30, 40, 1.0);
    struct owned_batch owned = batch_open(2, 40);

    (void)state;
    tn_text_set_fill(&set, &owned.batch, TN_TRAINING, 0);
    assert_int_equal(batch_check(&owned.batch, 1), 0);
    batch_close(&owned);
    tn_text_set_free(&set);
    folder_close(&folder);
}

static void a_batch_is_a_function_of_its_place(void **state)
{
    struct folder folder = folder_open();
    struct tn_text_set set = open_set(&folder, 5000, 30, 0.1);
    struct owned_batch a = batch_open(4, 30), b = batch_open(4, 30);

    (void)state;
    tn_text_set_fill(&set, &a.batch, TN_TRAINING, 3);
    tn_text_set_fill(&set, &b.batch, TN_TRAINING, 4);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_text_set_fill(&set, &b.batch, TN_TRAINING, 3);
    assert_true(batch_equal(&a.batch, &b.batch));
    set.seed++;
    tn_text_set_fill(&set, &b.batch, TN_TRAINING, 3);
    assert_false(batch_equal(&a.batch, &b.batch));
    batch_close(&a);
    batch_close(&b);
    tn_text_set_free(&set);
    folder_close(&folder);
}

static void check_refused(const char *path, size_t N, double validation, tarn_status status,
                          const char *says)
{
    struct tn_text_set set;
    tarn_error err = {0};

    assert_int_equal(tn_text_set_read(&set, path, N, validation, 0, false, &err), status);
    assert_null(set.bytes.data);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void texts_without_a_window_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "text");
    struct tn_text_set set;
    tarn_error err;

    (void)state;
    put_text(path, 100); /* 90 and 10 */
    check_refused(path, 90, 0.1, TARN_EINVAL, "expected at least 91");
    check_ok(tn_text_set_read(&set, path, 89, 0.1, 0, false, &err), &err);
    tn_text_set_free(&set);
    check_refused(path, 10, 0.019, TARN_EINVAL, "expected at least 2");
    check_ok(tn_text_set_read(&set, path, 10, 0.02, 0, false, &err), &err);
    tn_text_set_free(&set);
    put_text(path, 1);
    check_refused(path, 1, 1.0, TARN_EINVAL, "expected at least 2");
    put_text(path, 0);
    check_refused(path, 1, 0.5, TARN_EINVAL, path);
    check_refused(path, 1, 1.0, TARN_EINVAL, path);
    folder_close(&folder);
}

static void arguments_that_make_no_sense_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "text");

    (void)state;
    check_refused(path, 10, 0.1, TARN_EIO, path);
    put_text(path, 100);
    check_refused(path, 0, 0.1, TARN_EINVAL, "length");
    check_refused(path, SIZE_MAX, 0.1, TARN_EINVAL, "length");
    check_refused(path, SIZE_MAX / 2 - 1, 0.1, TARN_EINVAL, "has 100 bytes");
    check_refused(path, 10, 0.0, TARN_EINVAL, "validation");
    check_refused(path, 10, -0.1, TARN_EINVAL, "validation");
    check_refused(path, 10, 1.1, TARN_EINVAL, "validation");
    check_refused(path, 10, (double)NAN, TARN_EINVAL, "validation");
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_part_is_for_validation),
        cmocka_unit_test(training_windows_are_anywhere_in_the_training_part),
        cmocka_unit_test(carried_windows_continue_their_streams),
        cmocka_unit_test(validation_predicts_every_byte_once),
        cmocka_unit_test(behind_the_last_batch_nothing_counts),
        cmocka_unit_test(a_text_for_validation_only_has_nothing_to_train_on),
        cmocka_unit_test(a_batch_is_a_function_of_its_place),
        cmocka_unit_test(texts_without_a_window_are_refused),
        cmocka_unit_test(arguments_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests_name("text set", tests, NULL, NULL);
}
