/* SPDX-License-Identifier: MIT */
/* presets.c - models by name. */
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "model/config.h"

static const tarn_option_info no_options[] = {{0}};

struct preset {
    tarn_table_row about;
    size_t layers, heads, head_width, feed, symbols;
    bool causal;
    size_t stack;
    const char *task; /* NULL: any */
    const char *recipe;
};

#define TN_PRESET(id, text, about_it, L, H, D, inner, inputs, masked, frames, made_for, words) \
    static const struct preset preset_##id = {{text, about_it, no_options},                    \
                                              L,                                               \
                                              H,                                               \
                                              D,                                               \
                                              inner,                                           \
                                              inputs,                                          \
                                              masked,                                          \
                                              frames,                                          \
                                              made_for,                                        \
                                              words};
#include "model/presets.def"
#undef TN_PRESET

static const tarn_table_row *const rows[] = {
#define TN_PRESET(id, ...) &preset_##id.about,
#include "model/presets.def"
#undef TN_PRESET
    NULL,
};

const tarn_table_row *tarn_preset(size_t index)
{
    return tn_row_at(rows, index);
}

/* NULL, and why, if there is none of that name. */
static const struct preset *find(const char *name, tarn_error *err)
{
    const tarn_table_row *row = NULL;

    tn_option_row(&row, rows, "preset", name, err);
    return (const struct preset *)(const void *)row;
}

size_t tn_preset_stack(const char *name)
{
    const struct preset *const preset = find(name, NULL);

    return preset ? preset->stack : 1;
}

const char *tarn_preset_task(const char *name)
{
    const struct preset *const preset = name ? find(name, NULL) : NULL;

    return preset ? preset->task : NULL;
}

/* ---- Recipes ------------------------------------------------------------ */

tarn_status tn_preset_apply(const char *name, tn_preset_set *set, void *to, tarn_error *err)
{
    const struct preset *const preset = find(name, err);
    tarn_status status = preset ? TARN_OK : TARN_EUNKNOWN;
    char field[TARN_NAME_SIZE], value[TARN_NAME_SIZE];
    int used = 0;

    for (const char *at = preset ? preset->recipe : "";
         status == TARN_OK && sscanf(at, " %95[^= ]=%95s%n", field, value, &used) == 2;
         at += used)
        status = set(to, field, value, err);
    return status;
}

static bool is_field(const char *name)
{
    for (size_t i = 0; tarn_config_field(i); i++)
        if (strcmp(tarn_config_field(i)->name, name) == 0)
            return true;
    return false;
}

/* The other words are settings. */
static tarn_status set_field(void *config, const char *field, const char *value,
                             tarn_error *err)
{
    return is_field(field) ? tarn_config_set(config, field, value, err) : TARN_OK;
}

struct word {
    const char *name;
    bool found;
};

static tarn_status look_for(void *arg, const char *field, const char *value, tarn_error *err)
{
    struct word *const word = arg;

    (void)value;
    (void)err;
    word->found |= strcmp(word->name, field) == 0;
    return TARN_OK;
}

bool tn_preset_has(const char *name, const char *field)
{
    struct word word = {.name = field};

    tn_preset_apply(name, look_for, &word, NULL);
    return word.found;
}

/* ---- Configurations ----------------------------------------------------- */

tarn_status tarn_config_preset(tarn_config *config, const char *name, tarn_error *err)
{
    if (!config || !name)
        return tn_fail(err, TARN_EINVAL, "config and name must not be NULL");
    const struct preset *const preset = find(name, err);

    if (!preset)
        return TARN_EUNKNOWN;
    *config = (tarn_config){
        .attention = "linear",
        .position = "concat",
        .head = "categorical",
        .norm = "post",
        .activation = "relu",
        .body = "transformer",
        .causal = preset->causal,
        .symbols = preset->symbols,
        .stack = 1,
        .layers = preset->layers,
        .heads = preset->heads,
        .width = preset->heads * preset->head_width,
        .feed = preset->feed,
        .seed = 1,
    };
    return tn_preset_apply(name, set_field, config, err);
}
