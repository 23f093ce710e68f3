/* SPDX-License-Identifier: MIT */
#include "data/speech_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"
#include "layer/ctc.h"

double tn_extreme_speed(const struct tn_speech_settings *s, enum tn_split split, bool slow)
{
    const size_t count = split == TN_TRAINING ? s->speed_count : 0;
    double speed = count > 0 ? s->speeds[0] : 1.0;

    for (size_t i = 1; i < count; i++)
        speed = slow ? fmin(speed, s->speeds[i]) : fmax(speed, s->speeds[i]);
    return speed;
}

/* ---- Audio -------------------------------------------------------------- */

static tarn_status check_frames(const struct tn_speech_set *set, const struct tn_found *found,
                                tarn_error *err)
{
    const struct tn_spoken *const spoken = &found->spoken;
    const double speed = tn_extreme_speed(&set->settings, found->split, false);
    const uint64_t frames = tn_features_frames(spoken->samples, spoken->rate, speed);
    const size_t needed = tn_ctc_needs(spoken->labels, spoken->label_count);
    const size_t stack = tn_max(1, set->settings.stack);

    if (frames == 0)
        return tn_fail_path(err, TARN_EFORMAT, spoken->row.audio,
                            "has %llu samples at %zu Hz; expected at least 25 ms of audio",
                            (unsigned long long)spoken->samples, spoken->rate);
    if (tn_blocks((size_t)frames, stack) < needed)
        return tn_fail_path(err, TARN_EFORMAT, spoken->row.audio,
                            "has %zu frames of %zu ms; its transcript of %zu symbols needs %zu",
                            tn_blocks((size_t)frames, stack), 10 * stack, spoken->label_count,
                            needed);
    return TARN_OK;
}

struct scan {
    struct tn_speech_set *set;
    struct tn_found *found;
    atomic_size_t kept; /* bytes */
};

/* What stays in memory depends on who is first; what a batch holds does not. */
static void scan_one(void *arg, size_t i, size_t thread)
{
    struct scan *const scan = arg;
    struct tn_found *const found = &scan->found[i];
    const uint64_t longest = (uint64_t)(scan->set->settings.longest * TN_MEL_RATE);
    struct tn_frames frames;

    (void)thread;
    if (found->status != TARN_OK)
        return;
    found->status = tn_feature_cache_read(scan->set->cache, &frames, found->spoken.row.audio,
                                          1.0, (size_t)tn_log_mel_frames(longest), &found->why);
    if (found->status != TARN_OK)
        return;
    found->spoken.samples = frames.samples;
    found->spoken.rate = frames.rate;
    found->spoken.frames = frames.count;
    found->status = check_frames(scan->set, found, &found->why);
    tn_feature_sums_add(&found->sums, frames.data, frames.count);
    const size_t bytes = frames.room * TN_MEL_BANDS * sizeof *frames.data;

    if (found->status == TARN_OK &&
        atomic_fetch_add(&scan->kept, bytes) + bytes <= scan->set->settings.memory)
        found->spoken.features = frames.data;
    else
        tn_frames_free(&frames);
}

void tn_speech_scan(struct tn_speech_set *set, struct tn_found *found, size_t count)
{
    struct scan scan = {.set = set, .found = found};

    tn_parallel(set->settings.threads, count, scan_one, &scan);
}

/* ---- Normalisation ------------------------------------------------------ */

/* By split, then by speaker; those without a name are everyone for themselves. */
static int by_speaker(const void *a, const void *b)
{
    const struct tn_found *const x = *(struct tn_found *const *)a;
    const struct tn_found *const y = *(struct tn_found *const *)b;

    if (x->split != y->split)
        return x->split < y->split ? -1 : 1;
    const int order = strcmp(x->spoken.row.speaker, y->spoken.row.speaker);

    return order ? order : (x > y) - (x < y);
}

static bool same_speaker(const struct tn_found *a, const struct tn_found *b)
{
    return a->split == b->split && *a->spoken.row.speaker &&
           strcmp(a->spoken.row.speaker, b->spoken.row.speaker) == 0;
}

static tarn_status normalise_speakers(struct tn_speech_set *set, struct tn_found *found,
                                      size_t count, tarn_error *err)
{
    struct tn_found **const sorted = malloc((count + 1) * sizeof *sorted);
    size_t usable = 0, next = 0;

    set->norms = malloc((count + 1) * sizeof *set->norms);
    for (size_t i = 0; sorted && i < count; i++)
        if (found[i].status == TARN_OK)
            sorted[usable++] = &found[i];
    if (!sorted || !set->norms) {
        free(sorted);
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu speakers", count);
    }
    qsort(sorted, usable, sizeof *sorted, by_speaker);
    for (size_t i = 0; i < usable; i = next) {
        struct tn_feature_sums sums = {0};

        for (next = i; next < usable && (next == i || same_speaker(sorted[i], sorted[next]));
             next++) {
            tn_feature_sums_join(&sums, &sorted[next]->sums);
            sorted[next]->spoken.norm = set->norm_count;
        }
        tn_feature_norm_of(&set->norms[set->norm_count++], &sums);
    }
    free(sorted);
    return TARN_OK;
}

/* Over the training part, in the order of the list; over all where there is none. */
static void normalise_globally(struct tn_speech_set *set, const struct tn_found *found,
                               size_t count)
{
    const bool trains = set->settings.validation < 1.0 && !set->settings.evaluates;
    struct tn_feature_sums sums = {0};

    for (size_t i = 0; i < count; i++)
        if (found[i].status == TARN_OK && (!trains || found[i].split == TN_TRAINING))
            tn_feature_sums_join(&sums, &found[i].sums);
    tn_feature_norm_of(&set->norm, &sums);
}

tarn_status tn_speech_normalise(struct tn_speech_set *set, struct tn_found *found, size_t count,
                                const struct tn_feature_norm *given, tarn_error *err)
{
    if (given)
        set->norm = *given;
    else
        normalise_globally(set, found, count);
    if (set->settings.normalise == TN_NORMALISE_SPEAKER)
        return normalise_speakers(set, found, count, err);
    set->norms = malloc(sizeof *set->norms);
    if (!set->norms)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to normalise features");
    set->norm_count = 1;
    if (set->settings.normalise == TN_NORMALISE_GLOBAL)
        set->norms[0] = set->norm;
    else
        tn_feature_norm_none(&set->norms[0]);
    return TARN_OK;
}
