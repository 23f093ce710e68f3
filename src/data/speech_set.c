/* SPDX-License-Identifier: MIT */
#include "data/speech_set.h"

#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"

void tn_speech_settings_default(struct tn_speech_settings *settings)
{
    *settings = (struct tn_speech_settings){
        .kind = TN_PHONES,
        .validation = 0.1,
        .memory = (size_t)1 << 30,
        .longest = 60.0,
        .normalise = TN_NORMALISE_GLOBAL,
    };
}

void tn_speech_set_free(struct tn_speech_set *set)
{
    for (int split = 0; split < 2; split++) {
        for (size_t i = 0; i < set->count[split]; i++)
            free(set->spoken[split][i].features);
        free(set->spoken[split]);
    }
    free(set->labels);
    free(set->norms);
    tn_symbols_free(&set->symbols);
    if (set->cache)
        tn_feature_cache_close(set->cache);
    free(set->cache);
    tn_speech_list_free(&set->list);
    *set = (struct tn_speech_set){0};
}

/* ---- Settings ----------------------------------------------------------- */

static bool trains(const struct tn_speech_settings *s)
{
    return s->validation < 1.0 && !s->evaluates;
}

static tarn_status check_settings(const struct tn_speech_settings *s, tarn_error *err)
{
    if (!(s->longest > 0.0 && s->longest <= 1e6))
        return tn_fail(err, TARN_EINVAL,
                       "longest is %g; it must be above 0 and at most 1000000 seconds",
                       s->longest);
    if (s->speed_count > TN_SPEEDS_MOST)
        return tn_fail(err, TARN_EINVAL, "speeds: %zu are given; at most %d are allowed",
                       s->speed_count, TN_SPEEDS_MOST);
    for (size_t i = 0; i < s->speed_count; i++)
        if (!(s->speeds[i] >= 0.5 && s->speeds[i] <= 2.0))
            return tn_fail(err, TARN_EINVAL, "speeds: one is %g; each must be from 0.5 to 2",
                           s->speeds[i]);
    if (!(s->mask.time_share >= 0.0 && s->mask.time_share <= 1.0))
        return tn_fail(err, TARN_EINVAL, "mask: time_share is %g; it must be from 0 to 1",
                       s->mask.time_share);
    if (!trains(s) && !s->symbols)
        return tn_fail(
            err, TARN_EINVAL,
            "symbols: none are given, and there is no training data to take them from");
    return tn_validation_check(s->validation, "utterances", err);
}

/* ---- Listing ------------------------------------------------------------ */

/* Everything of the folder; the first *training utterances are the training part. Of a folder
 * without parts it is the beginning, which is left out where there is nothing to train. */
static tarn_status list_folder(struct tn_speech_set *set, const char *folder, size_t *training,
                               tarn_error *err)
{
    const struct tn_speech_settings *const s = &set->settings;
    struct tn_speech_list *const list = &set->list;
    const struct tn_speech_format *format = NULL;
    tarn_status status = tn_speech_format_of(&format, folder, err);

    if (status != TARN_OK)
        return status;
    set->format = format->name;
    if (trains(s))
        status = format->list(list, folder, TN_TRAINING, s->kind, err);
    const size_t before = list->count + list->skipped_count;

    *training = list->count;
    if (status == TARN_OK)
        status = format->list(list, folder, TN_VALIDATION, s->kind, err);
    if (status != TARN_OK || list->count + list->skipped_count > before)
        return status;
    if (!trains(s))
        status = format->list(list, folder, TN_TRAINING, s->kind, err);
    *training = list->count - (size_t)(s->validation * (double)list->count);
    if (!trains(s) && *training > 0) {
        list->count -= *training;
        memmove(list->utterance, list->utterance + *training,
                list->count * sizeof *list->utterance);
        *training = 0;
    }
    return status;
}

/* What is left of the parts; the rest was skipped. */
static tarn_status check_parts(const struct tn_speech_set *set, const char *folder,
                               size_t training, size_t validation, tarn_error *err)
{
    const struct tn_skipped *const skipped = set->list.skipped;

    if ((training > 0 || !trains(&set->settings)) && validation > 0)
        return TARN_OK;
    return tn_fail(
        err, TARN_EFORMAT,
        "%.60s: %zu training utterances, %zu validation utterances, %zu skipped%s%.100s",
        folder, training, validation, set->list.skipped_count,
        skipped ? ", the first: " : "; expected at least 1 of each",
        skipped ? skipped->reason : "");
}

/* ---- Symbols ------------------------------------------------------------ */

static size_t count_symbols(const struct tn_speech_set *set, size_t from, size_t to)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        count += tn_symbol_count(set->list.utterance[i].transcript, set->settings.kind);
    return count;
}

static tarn_status gather_symbols(const char **names, struct tn_texts *texts,
                                  const struct tn_speech_set *set, size_t training,
                                  tarn_error *err)
{
    const char *symbol;
    size_t length;

    for (size_t i = 0; i < training; i++) {
        const struct tn_utterance *const row = &set->list.utterance[i];
        const char *at = row->transcript;

        while (tn_symbol_next(&at, &symbol, &length, set->settings.kind)) {
            if (!tn_symbol_is_name(symbol, length))
                return tn_speech_fail(err, TARN_EFORMAT, row->file, row->line,
                                      "has a symbol of 256 bytes or more, or with control "
                                      "characters");
            if (!(*names++ = tn_texts_copy(texts, symbol, length)))
                return tn_fail(err, TARN_ENOMEM, "not enough memory for symbols");
        }
    }
    return TARN_OK;
}

static tarn_status training_symbols(struct tn_speech_set *set, size_t training, tarn_error *err)
{
    const size_t count = count_symbols(set, 0, training);
    const char **const names = malloc((count + 1) * sizeof *names);
    struct tn_texts texts = {0};
    tarn_status status =
        names ? gather_symbols(names, &texts, set, training, err)
              : tn_fail(err, TARN_ENOMEM, "not enough memory for %zu symbols", count);

    if (status == TARN_OK)
        status = tn_symbols_of(&set->symbols, names, count, err);
    if (status == TARN_OK && count == 0)
        status = tn_fail(err, TARN_EFORMAT, "the training transcripts contain no symbols");
    if (status == TARN_OK && set->symbols.count >= TN_SYMBOLS_MOST)
        status = tn_fail(
            err, TARN_EFORMAT,
            "the training transcripts contain %zu different symbols; expected fewer than %d",
            set->symbols.count, TN_SYMBOLS_MOST);
    tn_texts_free(&texts);
    free(names);
    return status;
}

/* ---- Utterances --------------------------------------------------------- */

/* Numbers the symbols; unknown ones are a failure, or leave the utterance out. */
static tarn_status label(struct tn_speech_set *set, struct tn_found *found, int32_t **labels,
                         tarn_error *err)
{
    const struct tn_utterance *const row = &found->spoken.row;
    const struct tn_speech_settings *const s = &set->settings;

    found->spoken.labels = *labels;
    found->spoken.label_count = tn_symbol_count(row->transcript, s->kind);
    found->status =
        tn_symbols_number(&set->symbols, *labels, row->transcript, s->kind, &found->why);
    *labels += found->spoken.label_count;
    if (found->status == TARN_OK || s->skip_unknown)
        return TARN_OK;
    return tn_speech_fail(err, TARN_EFORMAT, row->file, row->line, found->why.text);
}

static tarn_status label_all(struct tn_speech_set *set, struct tn_found *found, size_t training,
                             tarn_error *err)
{
    const size_t count = count_symbols(set, 0, set->list.count);
    int32_t *labels = calloc(count + 1, sizeof *labels);
    tarn_status status = TARN_OK;

    set->labels = labels;
    if (!labels)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu labels", count);
    for (size_t i = 0; i < set->list.count && status == TARN_OK; i++) {
        found[i].spoken.row = set->list.utterance[i];
        found[i].split = i < training ? TN_TRAINING : TN_VALIDATION;
        status = label(set, &found[i], &labels, err);
    }
    return status;
}

/* ---- Reading ------------------------------------------------------------ */

static void keep(struct tn_speech_set *set, struct tn_found *found)
{
    const enum tn_split split = found->split;
    struct tn_spoken *const spoken = &found->spoken;
    const double slow = tn_extreme_speed(&set->settings, split, true);
    const uint64_t most = tn_features_frames(spoken->samples, spoken->rate, slow);

    set->spoken[split][set->count[split]++] = *spoken;
    set->most_frames[split] = tn_max(set->most_frames[split], (size_t)most);
    set->most_labels[split] = tn_max(set->most_labels[split], spoken->label_count);
    set->frames[split] += spoken->frames;
    spoken->features = NULL; /* they are the set's */
}

static tarn_status keep_usable(struct tn_speech_set *set, struct tn_found *found, size_t count,
                               tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (int split = 0; split < 2; split++)
        if (!(set->spoken[split] = malloc((count + 1) * sizeof **set->spoken)))
            return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu utterances", count);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        const struct tn_utterance *const row = &found[i].spoken.row;

        if (found[i].status == TARN_OK)
            keep(set, &found[i]);
        else if (found[i].status == TARN_ENOMEM)
            status = tn_fail(err, TARN_ENOMEM, "%s", found[i].why.text);
        else
            status = tn_speech_list_skip(&set->list, row->file, row->line, err, "%.240s",
                                         found[i].why.text);
    }
    return status;
}

static tarn_status read_audio(struct tn_speech_set *set, struct tn_found *found,
                              const struct tn_speech_settings *given, const char *folder,
                              tarn_error *err)
{
    const size_t count = set->list.count;
    tarn_status status;

    tn_speech_scan(set, found, count);
    if ((status = tn_speech_normalise(set, found, count, given->norm, err)) == TARN_OK &&
        (status = keep_usable(set, found, count, err)) == TARN_OK)
        status =
            check_parts(set, folder, set->count[TN_TRAINING], set->count[TN_VALIDATION], err);
    return status;
}

static tarn_status read_all(struct tn_speech_set *set, const char *folder,
                            const struct tn_speech_settings *given, tarn_error *err)
{
    const struct tn_symbols *const symbols = given->symbols;
    size_t training = 0;
    struct tn_found *found = NULL;
    tarn_status status = list_folder(set, folder, &training, err);
    const size_t count = set->list.count;

    if (status == TARN_OK &&
        (status = check_parts(set, folder, training, count - training, err)) == TARN_OK &&
        (status = symbols ? tn_symbols_of(&set->symbols, symbols->name, symbols->count, err)
                          : training_symbols(set, training, err)) == TARN_OK) {
        found = calloc(count + 1, sizeof *found);
        status = found
                     ? label_all(set, found, training, err)
                     : tn_fail(err, TARN_ENOMEM, "not enough memory for %zu utterances", count);
    }
    if (status == TARN_OK)
        status = read_audio(set, found, given, folder, err);
    for (size_t i = 0; found && i < count; i++)
        free(found[i].spoken.features);
    free(found);
    return status;
}

static tarn_status open_cache(struct tn_speech_set *set, const char *folder, tarn_error *err)
{
    set->cache = calloc(1, sizeof *set->cache);
    if (!set->cache)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a cache");
    return tn_feature_cache_open(set->cache, folder, err);
}

tarn_status tn_speech_set_read(struct tn_speech_set *set, const char *folder,
                               const struct tn_speech_settings *settings, tarn_error *err)
{
    tarn_status status = check_settings(settings, err);

    *set = (struct tn_speech_set){.settings = *settings};
    set->settings.cache = NULL;
    set->settings.symbols = NULL;
    set->settings.norm = NULL;
    set->settings.threads =
        tn_min(TN_THREADS_MAX, settings->threads ? settings->threads : tn_threads_available());
    set->list.strict = settings->strict;
    if (status == TARN_OK)
        status = open_cache(set, settings->cache, err);
    if (status == TARN_OK)
        status = read_all(set, folder, settings, err);
    if (status != TARN_OK)
        tn_speech_set_free(set);
    return status;
}

size_t tn_speech_set_batches(const struct tn_speech_set *set, enum tn_split split, size_t B)
{
    return tn_blocks(set->count[split], B);
}
