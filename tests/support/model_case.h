/* SPDX-License-Identifier: MIT */
/* model_case.h - small models of every shape, and symbols for them. */
#ifndef MODEL_CASE_H
#define MODEL_CASE_H

#include "support/testing.h"
#include "tarn/model.h"

/* Changes to a model of 2 layers, 3 heads of 4, feed 20, 7 symbols; ended by a NULL name. */
struct setting {
    const char *name, *value;
};

enum { MODEL_SETTINGS = 7, MODEL_SYMBOLS = 7, MODEL_FRAMES = 5 };

struct model_variant {
    const char *name;
    struct setting settings[MODEL_SETTINGS];
};

/* One of every kind of attention, position, norm, activation and head; NULL past the last. */
const struct model_variant *model_variant_at(size_t index);

/* The same for models of MODEL_FRAMES floats a frame, with head ctc, and with an LSTM. */
const struct model_variant *frame_variant_at(size_t index);

tarn_config config_of(const struct model_variant *variant);
tarn_model *model_of(const struct model_variant *variant); /* tarn_model_free() */

void draw_symbols(int32_t *symbols, size_t count, struct tn_random *random);

/* To the bit. */
void check_same_weights(const tarn_model *a, const tarn_model *b);

#endif
