/* SPDX-License-Identifier: MIT */
/* profile_json.c - whatever a model file tells of speech must end in a profile that is whole
 * and can be used, written and read again, or in a sentence. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/speech_profile.h"
#include "support/fuzzing.h"

static void check_symbols(const struct tn_symbols *symbols)
{
    need(symbols->count >= 2 && symbols->count <= TN_SYMBOLS_MOST);
    for (size_t i = 1; i < symbols->count; i++) {
        need(*symbols->name[i] && strlen(symbols->name[i]) < TN_SYMBOL_BYTES);
        need(i < 2 || strcmp(symbols->name[i - 1], symbols->name[i]) < 0);
    }
}

static void check_apply(const struct tn_speech_profile *profile)
{
    float frames[2 * TN_MEL_BANDS];

    for (size_t i = 0; i < 2 * TN_MEL_BANDS; i++)
        frames[i] = (float)i - 15.0f;
    tn_speech_profile_apply(profile, frames, 2);
    for (size_t i = 0; i < 2 * TN_MEL_BANDS; i++)
        need(isfinite(frames[i]));
}

/* What is written of it says the same. */
static void check_again(const struct tn_speech_profile *profile)
{
    char *text;
    struct tn_speech_profile again;
    tarn_error err;

    need(tn_speech_profile_write(&text, profile, &err) == TARN_OK);
    need(tn_speech_profile_read(&again, text, "again", &err) == TARN_OK);
    need(again.kind == profile->kind && again.normalise == profile->normalise);
    need(memcmp(&again.norm, &profile->norm, sizeof again.norm) == 0);
    need(again.symbols.count == profile->symbols.count);
    for (size_t i = 1; i < again.symbols.count; i++)
        need(strcmp(again.symbols.name[i], profile->symbols.name[i]) == 0);
    tn_speech_profile_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const json = malloc(size + 1);
    struct tn_speech_profile profile;
    tarn_error err = {TARN_OK, ""};

    need(json != NULL);
    if (size > 0)
        memcpy(json, data, size);
    json[size] = '\0';
    if (tn_speech_profile_read(&profile, json, "fuzz", &err) == TARN_OK) {
        check_symbols(&profile.symbols);
        check_apply(&profile);
        check_again(&profile);
    } else
        need_text(&err);
    tn_speech_profile_free(&profile);
    free(json);
    return 0;
}
