/* SPDX-License-Identifier: MIT */
/* speech_batch.c - batches of a speech set. Everything drawn for an utterance, its speed and
 * its masks, is a function of seed, epoch and utterance. */
#include <stdlib.h>
#include <string.h>

#include "data/batch.h"
#include "data/speech_set.h"

/* ---- Order and masks ---------------------------------------------------- */

static const double shortest_share = 0.9; /* of a bucket's longest */

static int compare(const void *a, const void *b)
{
    const struct tn_length *const x = a, *const y = b;

    if (x->frames != y->frames)
        return (x->frames < y->frames) - (x->frames > y->frames);
    return (x->utterance > y->utterance) - (x->utterance < y->utterance);
}

static void sort(struct tn_length *order, size_t count)
{
    if (count > 0)
        qsort(order, count, sizeof *order, compare);
}

/* Where the bucket that begins at `first` ends. */
static size_t bucket_end(const struct tn_length *order, size_t first, size_t count, size_t B)
{
    const double least = shortest_share * (double)order[first].frames;
    size_t end = tn_min(first + B, count);

    while (end < count && (double)order[tn_min(end + B, count) - 1].frames >= least)
        end = tn_min(end + B, count);
    return end;
}

static void shuffle(struct tn_length *order, size_t count, struct tn_random *random)
{
    for (size_t i = count; i > 1; i--) {
        const size_t other = tn_random_below(random, i);
        const struct tn_length swap = order[i - 1];

        order[i - 1] = order[other];
        order[other] = swap;
    }
}

void tn_speech_order_shuffle(struct tn_length *order, size_t count, size_t B, uint64_t key)
{
    struct tn_random random;
    size_t end;

    tn_random_seed(&random, key);
    sort(order, count);
    for (size_t first = 0; first < count; first = end) {
        end = bucket_end(order, first, count, B);
        shuffle(order + first, end - first, &random);
    }
}

/* A stretch of 0 .. most places, anywhere in `count`. */
static size_t draw(size_t *first, size_t most, size_t count, struct tn_random *random)
{
    const size_t width = tn_random_below(random, tn_min(most, count) + 1);

    *first = tn_random_below(random, count - width + 1);
    return width;
}

static size_t widest(const struct tn_spec_mask *mask, size_t count)
{
    if (mask->time_share <= 0.0)
        return mask->time_width;
    return tn_min(mask->time_width, (size_t)(mask->time_share * (double)count));
}

void tn_spec_mask_apply(const struct tn_spec_mask *mask, float *frames, size_t count,
                        struct tn_random *random)
{
    size_t first;

    for (size_t i = 0; i < mask->times; i++) {
        const size_t width = draw(&first, widest(mask, count), count, random);

        memset(frames + first * TN_MEL_BANDS, 0, width * TN_MEL_BANDS * sizeof *frames);
    }
    for (size_t i = 0; i < mask->bands; i++) {
        const size_t width = draw(&first, mask->bands_width, TN_MEL_BANDS, random);

        for (size_t t = 0; t < count; t++)
            memset(frames + t * TN_MEL_BANDS + first, 0, width * sizeof *frames);
    }
}

/* ---- Memory ------------------------------------------------------------- */

/* Numbers of their own for orders and for utterances. */
static const uint64_t order_seed = UINT64_C(0x6f72646572), draw_seed = UINT64_C(0x64726177);

void tn_speech_batch_lay_out(struct tn_speech_batch *batch, const struct tn_speech_set *set,
                             size_t B, struct tn_arena *arena)
{
    const size_t N = tn_max(1, tn_max(set->most_frames[0], set->most_frames[1]));
    const size_t labels = tn_max(set->most_labels[0], set->most_labels[1]);
    const size_t count = tn_max(set->count[0], set->count[1]);
    size_t cells, most;

    if (!tn_size_product(&cells, (size_t[]){B, N, TN_MEL_BANDS}, 3))
        cells = SIZE_MAX; /* which the arena refuses */
    if (!tn_size_product(&most, (size_t[]){B, labels}, 2))
        most = SIZE_MAX;
    *batch = (struct tn_speech_batch){.B = B};
    batch->features = tn_arena_floats(arena, cells);
    batch->labels = tn_arena_alloc(arena, most, sizeof *batch->labels);
    batch->lengths = tn_arena_alloc(arena, B, sizeof *batch->lengths);
    batch->label_counts = tn_arena_alloc(arena, B, sizeof *batch->label_counts);
    batch->utterances = tn_arena_alloc(arena, B, sizeof *batch->utterances);
    batch->speed = tn_arena_alloc(arena, B, sizeof *batch->speed);
    batch->problems = tn_arena_alloc(arena, B, sizeof *batch->problems);
    batch->order = tn_arena_alloc(arena, count, sizeof *batch->order);
}

/* ---- Which utterances --------------------------------------------------- */

/* What is drawn for one utterance begins with its speed; masks continue with *random. */
static double draw_speed(const struct tn_speech_set *set, enum tn_split split, uint64_t epoch,
                         size_t utterance, struct tn_random *random)
{
    const struct tn_speech_settings *const s = &set->settings;

    if (split != TN_TRAINING)
        return 1.0;
    tn_batch_random(random, s->seed ^ draw_seed, split, epoch, utterance);
    return s->speed_count > 0 ? s->speeds[tn_random_below(random, s->speed_count)] : 1.0;
}

static size_t frames_at(const struct tn_spoken *spoken, double speed)
{
    return (size_t)tn_features_frames(spoken->samples, spoken->rate, speed);
}

static uint64_t order_key(const struct tn_speech_set *set, uint64_t epoch, size_t use)
{
    struct tn_random random;

    tn_batch_random(&random, set->settings.seed ^ order_seed, TN_TRAINING, epoch, use);
    return tn_random_bits(&random);
}

static void order_epoch(const struct tn_speech_set *set, struct tn_speech_batch *batch,
                        enum tn_split split, uint64_t epoch)
{
    const size_t count = set->count[split];
    struct tn_random random;

    for (size_t i = 0; i < count; i++) {
        const double speed = draw_speed(set, split, epoch, i, &random);

        batch->order[i] = (struct tn_length){frames_at(&set->spoken[split][i], speed), i};
    }
    if (split == TN_TRAINING)
        tn_speech_order_shuffle(batch->order, count, batch->B, order_key(set, epoch, 0));
    else
        sort(batch->order, count);
    batch->seed = set->settings.seed;
    batch->epoch = epoch;
    batch->ordered = (int)split + 1;
}

/* The utterances of a batch and their sizes; none past the end of validation. */
static void choose(const struct tn_speech_set *set, struct tn_speech_batch *batch,
                   enum tn_split split, uint64_t index, uint64_t *epoch)
{
    const size_t batches = tn_speech_set_batches(set, split, batch->B);
    size_t place = batches > 0 ? (size_t)(index % batches) : 0;

    *epoch = batches > 0 && split == TN_TRAINING ? index / batches : 0;
    batch->count = 0;
    if (batches == 0 || (split != TN_TRAINING && index >= batches))
        return;
    if (batch->ordered != (int)split + 1 || batch->epoch != *epoch ||
        batch->seed != set->settings.seed)
        order_epoch(set, batch, split, *epoch);
    if (split == TN_TRAINING)
        place = tn_shuffle(order_key(set, *epoch, 1), batches, place);
    batch->count = tn_min(batch->B, set->count[split] - place * batch->B);
    for (size_t b = 0; b < batch->count; b++)
        batch->utterances[b] = batch->order[place * batch->B + b].utterance;
}

/* ---- Contents ----------------------------------------------------------- */

struct filling {
    const struct tn_speech_set *set;
    struct tn_speech_batch *batch;
    enum tn_split split;
    uint64_t epoch;
};

/* As they are in memory, or read again. */
static tarn_status put_features(const struct tn_speech_set *set, float *to,
                                const struct tn_spoken *spoken, double speed, size_t count,
                                tarn_error *err)
{
    const struct tn_feature_norm *const norm = &set->norms[spoken->norm];
    struct tn_frames frames;
    tarn_status status;

    if (speed == 1.0 && spoken->features) {
        tn_feature_norm_apply(norm, to, spoken->features, count);
        return TARN_OK;
    }
    status = tn_feature_cache_read(set->cache, &frames, spoken->row.audio, speed, count, err);
    if (status == TARN_OK && frames.count != count)
        status = tn_fail(err, TARN_EFORMAT,
                         "%.120s: has changed since it was first read; start again",
                         spoken->row.audio);
    if (status == TARN_OK)
        tn_feature_norm_apply(norm, to, frames.data, count);
    tn_frames_free(&frames);
    return status;
}

static void fill_one(void *arg, size_t b, size_t thread)
{
    const struct filling *const f = arg;
    struct tn_speech_batch *const batch = f->batch;
    float *const to = batch->features + b * batch->N * TN_MEL_BANDS;
    size_t count = batch->lengths[b];
    struct tn_random random;

    (void)thread;
    if (b < batch->count) {
        const size_t i = batch->utterances[b];
        const double speed = draw_speed(f->set, f->split, f->epoch, i, &random);

        batch->problems[b].status = put_features(f->set, to, &f->set->spoken[f->split][i],
                                                 speed, count, &batch->problems[b]);
        if (batch->problems[b].status != TARN_OK)
            count = 0;
        else if (f->split == TN_TRAINING)
            tn_spec_mask_apply(&f->set->settings.mask, to, count, &random);
    }
    memset(to + count * TN_MEL_BANDS, 0, (batch->N - count) * TN_MEL_BANDS * sizeof *to);
}

static void measure(const struct filling *f)
{
    struct tn_speech_batch *const batch = f->batch;
    struct tn_random random;

    batch->N = 1;
    memset(batch->lengths, 0, batch->B * sizeof *batch->lengths);
    for (size_t b = 0; b < batch->count; b++) {
        const size_t i = batch->utterances[b];

        batch->speed[b] = draw_speed(f->set, f->split, f->epoch, i, &random);
        batch->lengths[b] = frames_at(&f->set->spoken[f->split][i], batch->speed[b]);
        batch->N = tn_max(batch->N, batch->lengths[b]);
    }
}

/* Utterances that could not be read have no frames, and no labels either. */
static void put_labels(const struct filling *f)
{
    struct tn_speech_batch *const batch = f->batch;
    int32_t *to = batch->labels;

    batch->failed = 0;
    memset(batch->label_counts, 0, batch->B * sizeof *batch->label_counts);
    for (size_t b = 0; b < batch->count; b++) {
        const struct tn_spoken *const spoken = &f->set->spoken[f->split][batch->utterances[b]];

        if (batch->problems[b].status != TARN_OK) {
            if (batch->failed++ == 0)
                batch->problem = batch->problems[b];
            batch->lengths[b] = 0;
            continue;
        }
        batch->label_counts[b] = spoken->label_count;
        memcpy(to, spoken->labels, spoken->label_count * sizeof *to);
        to += spoken->label_count;
    }
}

tarn_status tn_speech_set_fill(const struct tn_speech_set *set, struct tn_speech_batch *batch,
                               enum tn_split split, uint64_t index, tarn_error *err)
{
    struct filling filling = {.set = set, .batch = batch, .split = split};

    choose(set, batch, split, index, &filling.epoch);
    measure(&filling);
    tn_parallel(set->settings.threads, batch->B, fill_one, &filling);
    put_labels(&filling);
    for (size_t b = 0; b < batch->count; b++)
        if (batch->problems[b].status == TARN_ENOMEM)
            return tn_fail(err, TARN_ENOMEM, "%s", batch->problems[b].text);
    if (set->settings.strict && batch->failed > 0)
        return tn_fail(err, batch->problem.status, "%s", batch->problem.text);
    return TARN_OK;
}
