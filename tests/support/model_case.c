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
    {"linear, context", {{"context", "2,1,9,70"}, {0}}},
    {"softmax, learned positions, context",
     {{"attention", "softmax"},
      {"position", "learned"},
      {"positions", "40"},
      {"context", "3"},
      {0}}},
    {"gated", {{"attention", "gated"}, {0}}},
    {"gated, pre-norm, not causal",
     {{"attention", "gated"}, {"norm", "pre"}, {"causal", "false"}, {0}}},
    {"softmax, not causal", {{"attention", "softmax"}, {"causal", "false"}, {0}}},
    {"kernel, not causal, pre-norm",
     {{"attention", "kernel"}, {"norm", "pre"}, {"causal", "false"}, {0}}},
};

enum { COUNT = sizeof variants / sizeof variants[0] };

#define OF_FRAMES                                                                              \
    {"frames", "5"},                                                                           \
    {                                                                                          \
        "head", "ctc"                                                                          \
    }
static const struct model_variant of_frames[] = {
    {"frames, linear", {OF_FRAMES, {0}}},
    {"frames, linear, not causal, stacked",
     {OF_FRAMES, {"causal", "false"}, {"stack", "3"}, {0}}},
    {"frames, softmax, not causal",
     {OF_FRAMES, {"causal", "false"}, {"attention", "softmax"}, {0}}},
    {"frames, softmax, stacked", {OF_FRAMES, {"stack", "2"}, {"attention", "softmax"}, {0}}},
    {"frames, kernel, not causal",
     {OF_FRAMES, {"causal", "false"}, {"attention", "kernel"}, {0}}},
    {"frames, lsh, not causal",
     {OF_FRAMES, {"causal", "false"}, {"attention", "lsh:rounds=2,buckets=4,chunk=4"}, {0}}},
    {"frames, lsh, stacked",
     {OF_FRAMES, {"stack", "2"}, {"attention", "lsh:rounds=2,buckets=4,chunk=4"}, {0}}},
    {"frames, lstm, both ways, stacked",
     {OF_FRAMES,
      {"causal", "false"},
      {"stack", "2"},
      {"position", "none"},
      {"body", "lstm"},
      {0}}},
    {"frames, lstm, one way", {OF_FRAMES, {"position", "none"}, {"body", "lstm"}, {0}}},
    {"frames, pre-norm, added sinusoid",
     {OF_FRAMES, {"norm", "pre"}, {"position", "add"}, {0}}},
};

const struct model_variant *frame_variant_at(size_t index)
{
    return index < sizeof of_frames / sizeof of_frames[0] ? &of_frames[index] : NULL;
}

/* The first head is that of all above. */
static const struct model_variant *of_head(size_t index)
{
    static struct model_variant of_heads[8];
    const tarn_table_row *const row = tarn_head_kind(index + 1);

    if (!row)
        return NULL;
    assert_true(index < sizeof of_heads / sizeof of_heads[0]);
    of_heads[index] = (struct model_variant){row->name, {{"head", row->name}, {0}}};
    return &of_heads[index];
}

const struct model_variant *model_variant_at(size_t index)
{
    return index < COUNT ? &variants[index] : of_head(index - COUNT);
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

void check_same_weights(const tarn_model *a, const tarn_model *b)
{
    tarn_tensor x, y;

    for (size_t i = 0; tarn_model_tensor(a, i, &x); i++) {
        assert_true(tarn_model_tensor(b, i, &y));
        assert_memory_equal(x.values, y.values,
                            x.rows * (x.columns ? x.columns : 1) * sizeof(float));
    }
}
