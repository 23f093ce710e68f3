/* SPDX-License-Identifier: MIT */
#include "support/model_case.h"

static const struct model_variant variants[] = {
    {"linear", {{0}}},
    {"linear, pre-norm, gelu", {{"norm", "pre"}, {"activation", "gelu"}, {0}}},
    {"linear, positive map, added sinusoid",
     {{"feature_map", "positive:features=16"}, {"position", "add"}, {0}}},
    {"softmax, learned positions",
     {{"attention", "softmax"}, {"position", "learned"}, {"positions", "40"}, {0}}},
    {"softmax, pre-norm, no positions",
     {{"attention", "softmax"}, {"norm", "pre"}, {"position", "none"}, {0}}},
    {"linear, not causal, gelu", {{"causal", "false"}, {"activation", "gelu"}, {0}}},
    {"lsh", {{"attention", "lsh:rounds=2,buckets=4,chunk=4"}, {0}}},
    {"kernel", {{"attention", "kernel"}, {0}}},
};

const struct model_variant *model_variant_at(size_t index)
{
    return index < sizeof variants / sizeof variants[0] ? &variants[index] : NULL;
}

tarn_config config_of(const struct model_variant *variant)
{
    static const struct setting small[] = {{"layers", "2"}, {"heads", "3"},   {"width", "12"},
                                           {"feed", "20"},  {"symbols", "7"}, {0}};
    tarn_config config;
    tarn_error err;

    check_ok(tarn_config_preset(&config, "tiny", &err), &err);
    for (const struct setting *s = small; s->name; s++)
        check_ok(tarn_config_set(&config, s->name, s->value, &err), &err);
    for (const struct setting *s = variant->settings; s->name; s++)
        check_ok(tarn_config_set(&config, s->name, s->value, &err), &err);
    return config;
}

tarn_model *model_of(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);
    tarn_model *model;
    tarn_error err;

    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    return model;
}

void draw_symbols(int32_t *symbols, size_t count, struct tn_random *random)
{
    for (size_t i = 0; i < count; i++)
        symbols[i] = (int32_t)below(random, MODEL_SYMBOLS);
}
