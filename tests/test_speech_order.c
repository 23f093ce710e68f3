/* SPDX-License-Identifier: MIT */
/* test_speech_order.c - batches of like lengths: every utterance once, little padding. Masks
 * and normalisation, which are as small. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/features.h"
#include "data/speech_set.h"
#include "support/testing.h"

/* Lengths as read sentences have them: log-normal, 1 to 20 seconds, the middle one of 4. */
static size_t length_of(struct tn_random *random)
{
    const double seconds = 4.0 * exp(0.45 * tn_random_normal(random));

    return (size_t)(100.0 * fmin(fmax(seconds, 1.0), 20.0));
}

static struct tn_length *lengths(size_t count, uint64_t seed)
{
    struct tn_length *const order = take(count, sizeof *order);
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < count; i++)
        order[i] = (struct tn_length){length_of(&random), i};
    return order;
}

/* Frames that are padding, of all. */
static double wasted(const struct tn_length *order, size_t count, size_t B)
{
    size_t padded = 0, real = 0;

    for (size_t first = 0; first < count; first += B) {
        const size_t end = tn_min(first + B, count);
        size_t longest = 0;

        for (size_t i = first; i < end; i++) {
            longest = tn_max(longest, order[i].frames);
            real += order[i].frames;
        }
        padded += longest * (end - first);
    }
    return 1.0 - (double)real / (double)padded;
}

static void padding_wastes_less_than_15_percent(void **state)
{
    static const size_t counts[] = {300, 700, 5000}, sizes[] = {4, 8, 16, 32};

    (void)state;
    for (size_t c = 0; c < 3; c++)
        for (size_t s = 0; s < 4 && 15 * sizes[s] < counts[c]; s++) {
            struct tn_length *const order = lengths(counts[c], c + 1);
            const double without = wasted(order, counts[c], sizes[s]);

            tn_speech_order_shuffle(order, counts[c], sizes[s], 5);
            const double with = wasted(order, counts[c], sizes[s]);

            if (with >= 0.15 || with >= without / 2)
                fail_msg("%zu utterances in batches of %zu: %.1f %% padding, %.1f %% without",
                         counts[c], sizes[s], 100 * with, 100 * without);
            free(order);
        }
}

static void every_utterance_is_there_once(void **state)
{
    (void)state;
    for (size_t count = 0; count < 50; count++)
        for (size_t B = 1; B < 9; B += 3) {
            struct tn_length *const order = lengths(count + 1, 9);
            bool seen[50] = {false};

            tn_speech_order_shuffle(order, count, B, count);
            for (size_t i = 0; i < count; i++) {
                assert_false(seen[order[i].utterance]);
                seen[order[i].utterance] = true;
            }
            free(order);
        }
}

static void a_key_gives_one_order_and_another_key_another(void **state)
{
    enum { COUNT = 2000 };
    struct tn_length *const a = lengths(COUNT, 3), *const b = lengths(COUNT, 3);
    size_t same = 0;

    (void)state;
    tn_speech_order_shuffle(a, COUNT, 8, 1);
    tn_speech_order_shuffle(b, COUNT, 8, 2);
    for (size_t i = 0; i < COUNT; i++)
        same += a[i].utterance == b[i].utterance;
    assert_true(same < COUNT / 10);
    tn_speech_order_shuffle(b, COUNT, 8, 1); /* whatever order it was in */
    assert_memory_equal(a, b, COUNT * sizeof *a);
    free(a);
    free(b);
}

/* ---- Masks -------------------------------------------------------------- */

enum { FRAMES = 200 };

/* Rows and columns that are all zeros. */
static void count_hidden(const float *frames, size_t *rows, size_t *columns)
{
    bool row[FRAMES], column[TN_MEL_BANDS];

    memset(row, 1, sizeof row);
    memset(column, 1, sizeof column);
    for (size_t t = 0; t < FRAMES; t++)
        for (size_t b = 0; b < TN_MEL_BANDS; b++)
            if (frames[t * TN_MEL_BANDS + b] != 0.0f)
                row[t] = column[b] = false;
    *rows = *columns = 0;
    for (size_t t = 0; t < FRAMES; t++)
        *rows += row[t];
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        *columns += column[b];
}

static void masks_hide_what_they_say(void **state)
{
    const struct tn_spec_mask mask = {2, 30, 0.1, 2, 7};
    static float frames[FRAMES * TN_MEL_BANDS];
    size_t rows, columns, most_rows = 0, most_columns = 0, hidden = 0;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1);
    for (size_t round = 0; round < 300; round++) {
        for (size_t i = 0; i < FRAMES * TN_MEL_BANDS; i++)
            frames[i] = 1.0f;
        tn_spec_mask_apply(&mask, frames, FRAMES, &random);
        count_hidden(frames, &rows, &columns);
        for (size_t i = 0; i < FRAMES * TN_MEL_BANDS; i++)
            hidden += frames[i] == 0.0f;
        hidden -= rows * TN_MEL_BANDS + columns * FRAMES - rows * columns;
        assert_int_equal(hidden, 0);
        most_rows = tn_max(most_rows, rows);
        most_columns = tn_max(most_columns, columns);
    }
    assert_true(most_rows > 30 && most_rows <= 40); /* a tenth of 200, twice */
    assert_true(most_columns > 10 && most_columns <= 14);
}

static void a_mask_of_nothing_hides_nothing(void **state)
{
    static const struct tn_spec_mask none = {0}, wide = {3, 1000, 0.0, 3, 1000};
    float frame[TN_MEL_BANDS];
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1);
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        frame[b] = 1.0f;
    tn_spec_mask_apply(&none, frame, 1, &random);
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        assert_true(frame[b] == 1.0f);
    for (int round = 0; round < 20; round++) /* wider than what there is */
        tn_spec_mask_apply(&wide, frame, 1, &random);
    tn_spec_mask_apply(&wide, frame, 0, &random);
}

/* ---- Normalisation ------------------------------------------------------ */

static void normalised_features_have_mean_0_and_variance_1(void **state)
{
    static float frames[FRAMES * TN_MEL_BANDS];
    struct tn_feature_sums sums = {0}, half = {0};
    struct tn_feature_norm norm;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2);
    for (size_t t = 0; t < FRAMES; t++)
        for (size_t b = 0; b < TN_MEL_BANDS; b++)
            frames[t * TN_MEL_BANDS + b] =
                b == 7 ? -15.9f : (float)(3.0 * tn_random_normal(&random) - (double)b);
    tn_feature_sums_add(&sums, frames, FRAMES / 2);
    tn_feature_sums_add(&half, frames + FRAMES / 2 * TN_MEL_BANDS, FRAMES / 2);
    tn_feature_sums_join(&sums, &half);
    tn_feature_norm_of(&norm, &sums);
    tn_feature_norm_apply(&norm, frames, frames, FRAMES);
    sums = (struct tn_feature_sums){0};
    tn_feature_sums_add(&sums, frames, FRAMES);
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        const double mean = sums.sum[b] / FRAMES;

        assert_true(fabs(mean) < 1e-3);
        assert_true(fabs(sums.square[b] / FRAMES - (b == 7 ? 0.0 : 1.0)) < 1e-3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_wastes_less_than_15_percent),
        cmocka_unit_test(every_utterance_is_there_once),
        cmocka_unit_test(a_key_gives_one_order_and_another_key_another),
        cmocka_unit_test(masks_hide_what_they_say),
        cmocka_unit_test(a_mask_of_nothing_hides_nothing),
        cmocka_unit_test(normalised_features_have_mean_0_and_variance_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
