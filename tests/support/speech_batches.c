/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "support/speech_batches.h"
#include "support/testing.h"

struct tn_speech_settings speech_defaults(void)
{
    struct tn_speech_settings settings;

    tn_speech_settings_default(&settings);
    settings.seed = 11;
    settings.threads = 2;
    return settings;
}

struct tn_speech_set speech_set_open(const char *path,
                                     const struct tn_speech_settings *settings)
{
    struct tn_speech_set set;
    tarn_error err;

    check_ok(tn_speech_set_read(&set, path, settings, &err), &err);
    return set;
}

void check_speech_refused(const char *path, const struct tn_speech_settings *settings,
                          const char *words)
{
    struct tn_speech_set set;
    tarn_error err = {TARN_OK, ""};

    assert_int_not_equal(tn_speech_set_read(&set, path, settings, &err), TARN_OK);
    if (!strstr(err.text, words))
        fail_msg("'%s'; expected '%s'", err.text, words);
    assert_null(set.spoken[0]);
    tn_speech_set_free(&set);
}

struct owned_batch speech_batch_open(const struct tn_speech_set *set, size_t B)
{
    struct tn_arena arena = tn_arena_over(NULL);
    struct owned_batch owned;

    tn_speech_batch_lay_out(&owned.batch, set, B, &arena);
    owned.bytes = tn_arena_bytes(&arena);
    owned.memory = take(owned.bytes, 1);
    memset(owned.memory, 0xee, owned.bytes);
    arena = tn_arena_over(owned.memory);
    tn_speech_batch_lay_out(&owned.batch, set, B, &arena);
    return owned;
}

void speech_batch_fill(const struct tn_speech_set *set, struct owned_batch *owned,
                       enum tn_split split, uint64_t index)
{
    tarn_error err;

    check_ok(tn_speech_set_fill(set, &owned->batch, split, index, &err), &err);
}

static size_t label_total(const struct tn_speech_batch *batch)
{
    size_t total = 0;

    for (size_t b = 0; b < batch->B; b++)
        total += batch->label_counts[b];
    return total;
}

bool speech_batches_equal(const struct tn_speech_batch *a, const struct tn_speech_batch *b)
{
    return a->B == b->B && a->N == b->N && a->count == b->count &&
           memcmp(a->features, b->features, a->B * a->N * TN_MEL_BANDS * sizeof *a->features) ==
               0 &&
           memcmp(a->lengths, b->lengths, a->B * sizeof *a->lengths) == 0 &&
           memcmp(a->label_counts, b->label_counts, a->B * sizeof *a->label_counts) == 0 &&
           memcmp(a->labels, b->labels, label_total(a) * sizeof *a->labels) == 0;
}

void check_speech_batch(const struct tn_speech_set *set, const struct tn_speech_batch *batch,
                        enum tn_split split)
{
    const int32_t *labels = batch->labels;
    size_t longest = 1;

    assert_int_equal(batch->failed, 0);
    for (size_t b = 0; b < batch->B; b++) {
        const float *const row = batch->features + b * batch->N * TN_MEL_BANDS;

        longest = tn_max(longest, batch->lengths[b]);
        for (size_t i = batch->lengths[b] * TN_MEL_BANDS; i < batch->N * TN_MEL_BANDS; i++)
            assert_true(row[i] == 0.0f);
        if (b >= batch->count) {
            assert_int_equal(batch->lengths[b], 0);
            assert_int_equal(batch->label_counts[b], 0);
            continue;
        }
        const struct tn_spoken *const spoken = &set->spoken[split][batch->utterances[b]];

        for (size_t i = 0; i < batch->lengths[b] * TN_MEL_BANDS; i++)
            assert_true(isfinite(row[i]));
        assert_int_equal(batch->label_counts[b], spoken->label_count);
        for (size_t i = 0; i < spoken->label_count; i++, labels++) {
            assert_int_equal(*labels, spoken->labels[i]);
            assert_true(*labels > 0 && (size_t)*labels < set->symbols.count);
        }
    }
    assert_int_equal(longest, batch->N);
}
