/* SPDX-License-Identifier: MIT */
/* speech_profile.h - what a model of speech must know of the data that it learnt from, to be
 * used without them: its symbols, and how its features were made and normalised. Kept with the
 * model as JSON:
 *
 *     {"version": 1, "features": "log-mel 1", "kind": "phones", "normalise": "global",
 *      "mean": [...], "scale": [...], "symbols": ["AA", "AE", ...]}
 *
 * 40 numbers each; symbols are 1, 2, ... in the order of their bytes, and 0 is the blank. Every
 * byte that is read is distrusted. */
#ifndef TN_SPEECH_PROFILE_H
#define TN_SPEECH_PROFILE_H

#include "data/features.h"
#include "data/symbols.h"

enum tn_normalise { TN_NORMALISE_NONE, TN_NORMALISE_GLOBAL, TN_NORMALISE_SPEAKER };

/* The names of kinds of symbols and of normalisations, in the order of their numbers, ended by
 * NULL. */
extern const char *const tn_symbol_kinds[], *const tn_normalisations[];

struct tn_speech_profile {
    enum tn_symbol_kind kind;
    enum tn_normalise normalise;
    struct tn_feature_norm norm; /* for TN_NORMALISE_GLOBAL */
    struct tn_symbols symbols;
};

/* free() *json. TARN_EINVAL: names that are not UTF-8. */
tarn_status tn_speech_profile_write(char **json, const struct tn_speech_profile *profile,
                                    tarn_error *err);

/* `source` names the file in messages. On failure *profile is empty. */
tarn_status tn_speech_profile_read(struct tn_speech_profile *profile, const char *json,
                                   const char *source, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_speech_profile_free(struct tn_speech_profile *profile);

/* What features of one recording, `count` frames as they are, become for the model, in
 * place. */
void tn_speech_profile_apply(const struct tn_speech_profile *profile, float *frames,
                             size_t count);

#endif
