/* SPDX-License-Identifier: MIT */
/* speech_set.h - recorded utterances and their transcripts, as batches of features and labels.
 *
 *     folder -> list (speech_list.h) -> symbols -> every audio file, once -> normalisation
 *
 * Reading everything once finds what is wrong with a file before training begins, and gives
 * exact lengths and statistics. Features stay in memory as far as they are allowed to; the rest
 * is made again, or read from the cache, when a batch wants it, and is the same to the bit.
 *
 * A batch is a function of the set, its seed, the split and its index alone (batch.h). */
#ifndef TN_SPEECH_SET_H
#define TN_SPEECH_SET_H

#include "data/feature_cache.h"
#include "data/features.h"
#include "data/speech_list.h"
#include "data/speech_profile.h"

/* ---- Masks -------------------------------------------------------------- */

/* Features hidden in places, so that a model learns to do without them (SpecAugment, Park et
 * al. 2019, without its warping). Zeros mask nothing. */
struct tn_spec_mask {
    size_t times, time_width; /* how many stretches of time, each 0 .. time_width frames */
    double time_share; /* of an utterance that one stretch covers at most; 0: all of it */
    size_t bands, bands_width; /* how many groups of bands, each 0 .. bands_width bands */
};

/* Sets what is hidden to 0, which is the mean of normalised features. */
void tn_spec_mask_apply(const struct tn_spec_mask *mask, float *frames, size_t count,
                        struct tn_random *random);

/* ---- Settings ----------------------------------------------------------- */

enum { TN_SPEEDS_MOST = 8 };

struct tn_speech_settings {
    enum tn_symbol_kind kind;
    double validation; /* as in image_set.h: the last part of a folder without parts; with 1
                          nothing is read to train on, of whatever folder */
    uint64_t seed;
    const char *cache; /* folder for features; NULL: none */
    size_t memory;     /* bytes of features that may stay in memory */
    double longest;    /* seconds: what lasts longer is skipped */
    size_t threads;    /* 0: all */
    size_t stack; /* frames that are one position of the model; 0: 1. Labels need a position
                          each, and one between equal ones */

    /* A model's, to evaluate it; NULL: what the training part gives. */
    const struct tn_symbols *symbols;
    const struct tn_feature_norm *norm; /* for TN_NORMALISE_GLOBAL */
    enum tn_normalise normalise;
    bool evaluates; /* the training part is not read */

    bool strict;       /* the first utterance with a problem is a failure */
    bool skip_unknown; /* skip those with symbols that the table does not have; else they are a
                          failure */

    /* For training only. */
    double speeds[TN_SPEEDS_MOST]; /* one is drawn for each utterance and epoch */
    size_t speed_count;            /* 0: as recorded */
    struct tn_spec_mask mask;
};

/* Phones, a tenth to validate on, 1 GB of memory, up to 60 seconds, normalised over everyone,
 * no speeds and no masks. */
void tn_speech_settings_default(struct tn_speech_settings *settings);

/* ---- The set ------------------------------------------------------------ */

struct tn_spoken {
    struct tn_utterance row; /* texts live as long as the set */
    uint64_t samples;        /* of the file */
    size_t rate, frames;     /* frames at speed 1 */
    float *features;         /* before normalisation; NULL: to be read again */
    const int32_t *labels;
    size_t label_count;
    size_t norm; /* number in set->norms */
};

/* Indexed by enum tn_split where there are two. */
struct tn_speech_set {
    struct tn_spoken *spoken[2];
    size_t count[2];
    struct tn_symbols symbols;
    struct tn_feature_norm norm;   /* over everyone: to be stored with a model */
    struct tn_feature_norm *norms; /* what utterances refer to */
    size_t norm_count;
    size_t most_frames[2], most_labels[2]; /* of an utterance, at the slowest speed */
    uint64_t frames[2];                    /* of all, at speed 1 */

    struct tn_speech_settings settings; /* without pointers to what is its caller's */
    struct tn_feature_cache *cache;     /* counts, for whoever fills batches */
    struct tn_speech_list list;         /* list.skipped[]: what was left out, and why */
    int32_t *labels;
    const char *format; /* name of the folder's kind */
};

/* Parts are what the folder's format says. On failure *set is empty. It is a failure if nothing
 * is left to train on (unless validation is 1, or it is to evaluate) or to validate on;
 * problems with single utterances are in set->list.skipped. */
tarn_status tn_speech_set_read(struct tn_speech_set *set, const char *folder,
                               const struct tn_speech_settings *settings, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_speech_set_free(struct tn_speech_set *set);

/* Batches of B in an epoch of training, or that validation takes. */
size_t tn_speech_set_batches(const struct tn_speech_set *set, enum tn_split split, size_t B);

/* ---- Order -------------------------------------------------------------- */

/* Utterances of like length come in one batch, so that little is padded:
 *
 *     sorted, longest first  | | | | | | | | | | | | | | | |
 *     buckets                |     shuffled    | shuffled  |     none below 0.9 of its longest
 *     batches of B           |     |     |     |     |     |     in an order that is shuffled
 *
 * A bucket is as many batches as its rule allows and one at least, so that a batch is padded by
 * less than a tenth but where utterances are few. Everything is a function of lengths, B and
 * key. */
struct tn_length {
    size_t frames, utterance;
};

/* Sorts, equal lengths by utterance, and shuffles within buckets. Batch k is order[k B] up to
 * order[(k + 1) B - 1]; which one comes when is for tn_shuffle() to say. */
void tn_speech_order_shuffle(struct tn_length *order, size_t count, size_t B, uint64_t key);

/* ---- Batches ------------------------------------------------------------ */

struct tn_speech_batch {
    size_t B;        /* sequences */
    size_t count;    /* utterances; those after them are empty */
    size_t N;        /* frames of the longest, 1 at least */
    float *features; /* B x N x 40, zeros after an utterance's end */
    size_t *lengths; /* B: frames; 0 where there is no utterance, or it could not be read */
    int32_t *labels; /* those of all utterances, one after the other */
    size_t *label_counts; /* B */
    size_t *utterances;   /* count: which of set->spoken[split] */
    double *speed;        /* count: drawn for them */

    size_t failed;        /* utterances that could not be read again */
    tarn_error *problems; /* count: why not, where a status says so */
    tarn_error problem;   /* of the first of them */

    /* The order of the epoch that was filled last, kept because batches of one epoch follow
     * each other. */
    struct tn_length *order;
    uint64_t seed, epoch;
    int ordered; /* split + 1; 0: none yet */
};

/* Lays it out, twice: see tn_arena. It serves batches of up to B of this set, of both
 * splits. */
void tn_speech_batch_lay_out(struct tn_speech_batch *batch, const struct tn_speech_set *set,
                             size_t B, struct tn_arena *arena);

/* Training goes over all utterances once an epoch, each batch of like lengths, in an order that
 * seed and epoch give. Validation goes from long to short; past its end there is nothing.
 * Fails if there is no memory or the set is strict: else what cannot be read any more is empty,
 * and counted. */
tarn_status tn_speech_set_fill(const struct tn_speech_set *set, struct tn_speech_batch *batch,
                               enum tn_split split, uint64_t index, tarn_error *err);

/* ---- speech_scan.c: every audio file, once: lengths, statistics, problems  */

/* An utterance on its way into a set: unless `status` is TARN_OK, `why` it cannot be used. */
struct tn_found {
    struct tn_spoken spoken;
    struct tn_feature_sums sums;
    enum tn_split split;
    tarn_status status;
    tarn_error why;
};

/* Of the speeds that a split may have, the one with most frames, or with fewest. */
double tn_extreme_speed(const struct tn_speech_settings *settings, enum tn_split split,
                        bool slow);

/* Reads those that are fine so far, in parallel. */
void tn_speech_scan(struct tn_speech_set *set, struct tn_found *found, size_t count);

/* set->norm, and set->norms with the utterances' numbers in it. */
tarn_status tn_speech_normalise(struct tn_speech_set *set, struct tn_found *found, size_t count,
                                const struct tn_feature_norm *given, tarn_error *err);

#endif
