/* SPDX-License-Identifier: MIT */
#include "data/speech_profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "file/json_read.h"
#include "file/json_write.h"

const char *const tn_symbol_kinds[] = {
    [TN_PHONES] = "phones", [TN_CHARACTERS] = "characters", [TN_WORDS] = "words", NULL};
const char *const tn_normalisations[] = {[TN_NORMALISE_NONE] = "none",
                                         [TN_NORMALISE_GLOBAL] = "global",
                                         [TN_NORMALISE_SPEAKER] = "speaker",
                                         NULL};

enum { VERSION = 1 };

void tn_speech_profile_free(struct tn_speech_profile *profile)
{
    tn_symbols_free(&profile->symbols);
    *profile = (struct tn_speech_profile){0};
}

/* A recording alone is a speaker of its own. */
void tn_speech_profile_apply(const struct tn_speech_profile *profile, float *frames,
                             size_t count)
{
    struct tn_feature_norm own;
    struct tn_feature_sums sums = {0};

    if (profile->normalise == TN_NORMALISE_GLOBAL)
        tn_feature_norm_apply(&profile->norm, frames, frames, count);
    if (profile->normalise == TN_NORMALISE_SPEAKER) {
        tn_feature_sums_add(&sums, frames, count);
        tn_feature_norm_of(&own, &sums);
        tn_feature_norm_apply(&own, frames, frames, count);
    }
}

/* ---- Writing ------------------------------------------------------------ */

/* Nine digits give a float again. */
static void put_bands(struct tn_json_writer *w, const char *key, const float *values)
{
    tn_json_open(w, key, '[');
    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        tn_json_put_number(w, NULL, (double)values[b], 9);
    tn_json_close(w, ']');
}

static void put_symbols(struct tn_json_writer *w, const struct tn_symbols *symbols)
{
    tn_json_open(w, "symbols", '[');
    for (size_t i = 1; i < symbols->count; i++)
        tn_json_put_text(w, NULL, symbols->name[i]);
    tn_json_close(w, ']');
}

tarn_status tn_speech_profile_write(char **json, const struct tn_speech_profile *profile,
                                    tarn_error *err)
{
    struct tn_json_writer w = {0};

    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "version", VERSION);
    tn_json_put_text(&w, "features", tn_features_version);
    tn_json_put_text(&w, "kind", tn_symbol_kinds[profile->kind]);
    tn_json_put_text(&w, "normalise", tn_normalisations[profile->normalise]);
    put_bands(&w, "mean", profile->norm.mean);
    put_bands(&w, "scale", profile->norm.scale);
    put_symbols(&w, &profile->symbols);
    tn_json_close(&w, '}');
    return tn_json_writer_end(&w, json, "the symbols of speech", err);
}

/* ---- Reading ------------------------------------------------------------ */

static tarn_status damaged(const char *source, const char *what, tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: its speech metadata %s", source, what);
}

static bool find_name(size_t *number, const char *const *names, const char *text)
{
    return text && tn_option_word(number, names, "", text, NULL) == TARN_OK;
}

static bool is_array(const struct tn_json_value *value)
{
    return value && value->kind == TN_JSON_ARRAY;
}

static bool read_bands(float *values, const struct tn_json_value *list, bool positive)
{
    if (!is_array(list) || list->size != TN_MEL_BANDS)
        return false;
    const struct tn_json_value *at = list + 1;

    for (size_t b = 0; b < TN_MEL_BANDS; b++, at = tn_json_next(at)) {
        double number = 0.0;

        if (!tn_json_number(at, &number) || !(fabs(number) <= 1e9))
            return false;
        values[b] = (float)number;
        if (positive && !(values[b] > 0.0f))
            return false;
    }
    return true;
}

static bool is_name(const struct tn_json_value *value, const char *before)
{
    return value->kind == TN_JSON_TEXT && tn_symbol_is_name(value->text, value->size) &&
           strcmp(before, value->text) < 0;
}

static tarn_status read_symbols(struct tn_symbols *symbols, const struct tn_json_value *list,
                                const char *source, tarn_error *err)
{
    const size_t count = is_array(list) ? list->size : 0;
    const char *before = "";

    if (count == 0 || count >= TN_SYMBOLS_MOST)
        return damaged(source, "has no list of symbols, or one that is too long", err);
    const struct tn_json_value *at = list + 1;
    const char **const names = malloc(count * sizeof *names);
    tarn_status status =
        names ? TARN_OK : tn_fail(err, TARN_ENOMEM, "not enough memory for symbols");

    for (size_t i = 0; i < count && status == TARN_OK; i++, at = tn_json_next(at)) {
        if (!is_name(at, before))
            status = damaged(source, "has symbols that are not sorted names", err);
        else
            names[i] = before = at->text;
    }
    if (status == TARN_OK)
        status = tn_symbols_of(symbols, names, count, err);
    free(names);
    return status;
}

static tarn_status read_object(struct tn_speech_profile *profile,
                               const struct tn_json_value *object, const char *source,
                               tarn_error *err)
{
    const char *const features = tn_json_text(object, "features");
    int64_t version = 0;
    size_t kind, normalise;

    if (object->kind != TN_JSON_OBJECT)
        return damaged(source, "is not a JSON object", err);
    if (!tn_json_whole(tn_json_get(object, "version"), &version) || version != VERSION)
        return damaged(source, "has another version; use a matching version of tarn", err);
    if (!features || strcmp(features, tn_features_version) != 0)
        return tn_fail(err, TARN_EFORMAT, "%s: was trained on features '%.40s'; expected '%s'",
                       source, features ? features : "", tn_features_version);
    if (!find_name(&kind, tn_symbol_kinds, tn_json_text(object, "kind")) ||
        !find_name(&normalise, tn_normalisations, tn_json_text(object, "normalise")))
        return damaged(source, "has an unknown kind or normalisation", err);
    profile->kind = (enum tn_symbol_kind)kind;
    profile->normalise = (enum tn_normalise)normalise;
    if (!read_bands(profile->norm.mean, tn_json_get(object, "mean"), false) ||
        !read_bands(profile->norm.scale, tn_json_get(object, "scale"), true))
        return damaged(source, "does not have 40 means and scales", err);
    return read_symbols(&profile->symbols, tn_json_get(object, "symbols"), source, err);
}

tarn_status tn_speech_profile_read(struct tn_speech_profile *profile, const char *json,
                                   const char *source, tarn_error *err)
{
    struct tn_json parsed;
    tarn_status status = tn_json_parse(&parsed, json, strlen(json), NULL);

    *profile = (struct tn_speech_profile){0};
    if (status == TARN_ENOMEM)
        return tn_fail(err, status, "%s: not enough memory for its speech metadata", source);
    if (status != TARN_OK)
        return damaged(source, "is not a JSON object", err);
    status = read_object(profile, parsed.root, source, err);
    tn_json_free(&parsed);
    if (status != TARN_OK)
        tn_speech_profile_free(profile);
    return status;
}
