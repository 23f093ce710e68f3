/* SPDX-License-Identifier: MIT */
/* attention_variants.c - which attentions there are, asked through the public header, and
 * random shapes for them. */
#include <string.h>

#include "support/attention_case.h"

/* ---- Variants ----------------------------------------------------------- */

static const char *const kinds_with_options[] = {
    "softmax:store=1",
    "softmax:scale=0.3",
    "linear:chunk=0",
    "linear:chunk=16",
    "linear:normalise=0",
    "linear:eps=0.01",
    "kernel:similarity=polynomial,degree=4,bias=0.5",
    "kernel:similarity=rbf,sigma=2",
    "lsh:rounds=2,buckets=6,chunk=5",
    "lsh:rounds=1,buckets=8,same_bucket=1",
};

static const char *const maps_with_options[] = {
    "square:bias=0",
    "fourier:features=9,sigma=2",
    "positive:features=5,orthogonal=no",
};

enum { VARIANTS_MAX = 64 };

static struct {
    struct variant rows[VARIANTS_MAX];
    size_t count;
} table;

static bool plans(const char *kind, const char *map, bool causal, size_t *state)
{
    const tarn_attention_desc desc = {.kind = kind,
                                      .feature_map = map,
                                      .causal = causal,
                                      .batch = 1,
                                      .heads = 1,
                                      .queries = 2,
                                      .keys = 2,
                                      .query_width = 2,
                                      .value_width = 2};
    tarn_attention *plan = NULL;
    const bool made = tarn_attention_create(&plan, &desc, NULL) == TARN_OK;

    *state = made ? tarn_attention_state_size(plan) : 0;
    tarn_attention_free(plan);
    return made;
}

static bool takes_map(const char *kind)
{
    size_t state;

    return plans(kind, "elu", false, &state);
}

static bool starts(const char *text, const char *word)
{
    return text && strncmp(text, word, strlen(word)) == 0;
}

static enum inputs inputs_for(const char *kind, const char *map)
{
    if (starts(map, "identity") || starts(map, "square") || strstr(kind, "polynomial"))
        return POSITIVE;
    return starts(map, "fourier") || starts(map, "positive") || strstr(kind, "rbf") ? SMALL
                                                                                    : NORMAL;
}

struct variant variant_of(const char *kind, const char *map)
{
    struct variant variant = {.kind = kind, .map = map};
    size_t state;

    for (const tarn_attention_input *in = tarn_attention_inputs(kind); in && in->name; in++)
        variant.has_keys |= strcmp(in->name, "key") == 0;
    if (!plans(kind, map, true, &state))
        fail_msg("%s %s: no plan", kind, map ? map : "");
    variant.has_step = state > 0;
    variant.inputs = inputs_for(kind, map);
    return variant;
}

static void add(const char *kind, const char *map)
{
    assert_true(table.count < VARIANTS_MAX);
    table.rows[table.count++] = variant_of(kind, map);
}

static void fill_table(void)
{
    const tarn_table_row *kind, *map;

    for (size_t i = 0; (kind = tarn_attention_kind(i)) != NULL; i++)
        if (!takes_map(kind->name))
            add(kind->name, NULL);
        else
            for (size_t j = 0; (map = tarn_feature_map(j)) != NULL; j++)
                add(kind->name, map->name);
    for (size_t i = 0; i < sizeof kinds_with_options / sizeof kinds_with_options[0]; i++)
        add(kinds_with_options[i], NULL);
    for (size_t i = 0; i < sizeof maps_with_options / sizeof maps_with_options[0]; i++)
        add("linear", maps_with_options[i]);
}

const struct variant *variant_at(size_t i)
{
    if (table.count == 0)
        fill_table();
    return i < table.count ? &table.rows[i] : NULL;
}

/* ---- Shapes ------------------------------------------------------------- */

static size_t draw_length(struct tn_random *random)
{
    switch (below(random, 9)) {
    case 0:
        return 1 + below(random, 2);
    case 1:
        return ONE_OF(random, 47, 48, 49);
    case 2:
        return ONE_OF(random, 63, 64, 65);
    case 3:
        return 100 + below(random, 101);
    case 4:
        return ONE_OF(random, 255, 256, 257, 320, 513);
    case 5:
        return ONE_OF(random, 1100, 1567);
    default:
        return ONE_OF(random, 3, 7, 13, 31, 53, 97);
    }
}

static size_t draw_width(struct tn_random *random)
{
    return ONE_OF(random, 1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 64);
}

/* An upper bound of C. */
static double features(const tarn_attention_desc *desc)
{
    const double D = (double)desc->query_width;

    return starts(desc->feature_map, "square") ? 0.5 * (D + 1.0) * (D + 2.0) : 2.0 * D + 9.0;
}

static double cost(const tarn_attention_desc *desc)
{
    return (double)desc->batch * (double)desc->heads * (double)desc->queries *
           (double)desc->keys * (features(desc) + (double)desc->value_width);
}

/* Widths go first, so that long sequences stay. */
static void afford(tarn_attention_desc *desc, double budget)
{
    while (cost(desc) > budget) {
        size_t *const largest = desc->batch > 1 && desc->queries < 1000 ? &desc->batch
                                : desc->query_width > 8                 ? &desc->query_width
                                : desc->value_width > 8                 ? &desc->value_width
                                : desc->heads > 1                       ? &desc->heads
                                : desc->batch > 1                       ? &desc->batch
                                : desc->query_width > 2                 ? &desc->query_width
                                : desc->value_width > 2                 ? &desc->value_width
                                                                        : NULL;

        if (largest) {
            *largest /= 2;
        } else {
            desc->queries = tn_max(1, desc->queries / 2);
            desc->keys = tn_max(1, desc->keys / 2);
        }
    }
}

static void draw_key_lengths(struct attention_case *is, struct tn_random *random)
{
    const size_t keys = is->desc.keys;

    is->has_lengths = below(random, 3) == 0;
    for (size_t b = 0; b < CASE_BATCH_MAX; b++)
        is->lengths[b] = ONE_OF(random, 0, keys, below(random, keys + 1), keys - 1);
}

static struct attention_case case_plain(const struct variant *variant)
{
    return (struct attention_case){
        .desc = {.kind = variant->kind, .feature_map = variant->map, .host.cpu = forced_cpu()},
        .has_keys = variant->has_keys,
        .inputs = variant->inputs,
    };
}

struct attention_case case_draw(const struct variant *variant, bool causal, double budget,
                                struct tn_random *random)
{
    struct attention_case is = case_plain(variant);
    tarn_attention_desc *const desc = &is.desc;

    desc->causal = causal;
    desc->batch = 1 + below(random, CASE_BATCH_MAX);
    desc->heads = below(random, 6) == 0 ? 8 + below(random, 3) : 1 + below(random, 5);
    desc->queries = desc->keys = draw_length(random);
    if (!causal && variant->has_keys && below(random, 2) == 0)
        desc->keys = draw_length(random);
    desc->query_width = draw_width(random);
    desc->value_width = draw_width(random);
    afford(desc, budget);
    desc->host.threads = 1 + below(random, 3);
    desc->seed = tn_random_bits(random);
    draw_key_lengths(&is, random);
    is.layout = (enum layout)below(random, LAYOUTS);
    is.layout_out = (enum layout)below(random, LAYOUTS);
    is.seed = tn_random_bits(random);
    return is;
}

struct attention_case case_of(const struct variant *variant, bool causal, size_t B, size_t H,
                              size_t N, size_t D, size_t M)
{
    struct attention_case is = case_plain(variant);

    is.desc.causal = causal;
    is.desc.batch = B;
    is.desc.heads = H;
    is.desc.queries = is.desc.keys = N;
    is.desc.query_width = D;
    is.desc.value_width = M;
    is.desc.host.threads = 2;
    is.desc.seed = 5;
    is.seed = 6;
    return is;
}

size_t case_length(const struct attention_case *is, size_t b)
{
    return is->has_lengths ? is->lengths[b] : is->desc.keys;
}
