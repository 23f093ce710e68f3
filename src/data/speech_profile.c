/* SPDX-License-Identifier: MIT */
#include "data/speech_profile.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/features.h"

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

static json_t *write_bands(const float *values)
{
    json_t *const list = json_array();

    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        json_array_append_new(list, json_real((double)values[b]));
    return list;
}

static json_t *write_symbols(const struct tn_symbols *symbols)
{
    json_t *const list = json_array();

    for (size_t i = 1; i < symbols->count; i++)
        json_array_append_new(list, json_string(symbols->name[i]));
    if (json_array_size(list) + 1 == symbols->count)
        return list;
    json_decref(list);
    return NULL;
}

char *tn_speech_profile_write(const struct tn_speech_profile *profile)
{
    json_t *const object = json_object();
    char *text = NULL;

    if (json_object_set_new(object, "version", json_integer(VERSION)) == 0 &&
        json_object_set_new(object, "features", json_string(tn_features_version)) == 0 &&
        json_object_set_new(object, "kind", json_string(tn_symbol_kinds[profile->kind])) == 0 &&
        json_object_set_new(object, "normalise",
                            json_string(tn_normalisations[profile->normalise])) == 0 &&
        json_object_set_new(object, "mean", write_bands(profile->norm.mean)) == 0 &&
        json_object_set_new(object, "scale", write_bands(profile->norm.scale)) == 0 &&
        json_object_set_new(object, "symbols", write_symbols(&profile->symbols)) == 0)
        text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(object);
    return text;
}

/* ---- Reading ------------------------------------------------------------ */

static tarn_status damaged(const char *source, const char *what, tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: its speech metadata %s", source, what);
}

static bool find_name(int *number, const char *const *names, const json_t *value)
{
    const char *const text = json_string_value(value);

    for (*number = 0; text && names[*number]; ++*number)
        if (strcmp(names[*number], text) == 0)
            return true;
    return false;
}

static bool read_bands(float *values, const json_t *list, bool positive)
{
    if (json_array_size(list) != TN_MEL_BANDS)
        return false;
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        const json_t *const value = json_array_get(list, b);
        const double number = json_is_number(value) ? json_number_value(value) : (double)NAN;

        values[b] = fabs(number) <= 1e9 ? (float)number : NAN;
        if (isnan(values[b]) || (positive && !(values[b] > 0.0f)))
            return false;
    }
    return true;
}

static bool is_name(const json_t *value, const char *before)
{
    const char *const name = json_string_value(value);

    return name && tn_symbol_is_name(name, json_string_length(value)) &&
           strcmp(before, name) < 0;
}

static tarn_status read_symbols(struct tn_symbols *symbols, const json_t *list,
                                const char *source, tarn_error *err)
{
    const size_t count = json_array_size(list);
    const char *before = "";

    if (count == 0 || count >= TN_SYMBOLS_MOST)
        return damaged(source, "has no list of symbols, or one that is too long", err);
    const char **const names = malloc(count * sizeof *names);
    tarn_status status =
        names ? TARN_OK : tn_fail(err, TARN_ENOMEM, "not enough memory for symbols");

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        if (!is_name(json_array_get(list, i), before))
            status = damaged(source, "has symbols that are not sorted names", err);
        else
            names[i] = before = json_string_value(json_array_get(list, i));
    }
    if (status == TARN_OK)
        status = tn_symbols_of(symbols, names, count, err);
    free(names);
    return status;
}

static tarn_status read_object(struct tn_speech_profile *profile, const json_t *object,
                               const char *source, tarn_error *err)
{
    const char *const features = json_string_value(json_object_get(object, "features"));
    int kind, normalise;

    if (json_integer_value(json_object_get(object, "version")) != VERSION)
        return damaged(source, "has another version; use a matching version of tarn", err);
    if (!features || strcmp(features, tn_features_version) != 0)
        return tn_fail(err, TARN_EFORMAT, "%s: was trained on features '%.40s'; expected '%s'",
                       source, features ? features : "", tn_features_version);
    if (!find_name(&kind, tn_symbol_kinds, json_object_get(object, "kind")) ||
        !find_name(&normalise, tn_normalisations, json_object_get(object, "normalise")))
        return damaged(source, "has an unknown kind or normalisation", err);
    profile->kind = (enum tn_symbol_kind)kind;
    profile->normalise = (enum tn_normalise)normalise;
    if (!read_bands(profile->norm.mean, json_object_get(object, "mean"), false) ||
        !read_bands(profile->norm.scale, json_object_get(object, "scale"), true))
        return damaged(source, "does not have 40 means and scales", err);
    return read_symbols(&profile->symbols, json_object_get(object, "symbols"), source, err);
}

tarn_status tn_speech_profile_read(struct tn_speech_profile *profile, const char *json,
                                   const char *source, tarn_error *err)
{
    json_t *const object = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    tarn_status status;

    *profile = (struct tn_speech_profile){0};
    status = json_is_object(object) ? read_object(profile, object, source, err)
                                    : damaged(source, "is not a JSON object", err);
    json_decref(object);
    if (status != TARN_OK)
        tn_speech_profile_free(profile);
    return status;
}
