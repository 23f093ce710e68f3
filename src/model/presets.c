/* SPDX-License-Identifier: MIT */
/* presets.c - models by name. */
#include <string.h>

#include "base/option.h"
#include "model/config.h"

static const tarn_option_info no_options[] = {{0}};

struct preset {
    tarn_table_row about;
    size_t layers, heads, head_width, feed, symbols;
    bool causal;
    size_t stack;
};

#define TN_PRESET(id, text, about_it, L, H, D, inner, inputs, masked, frames)                  \
    static const struct preset preset_##id = {                                                 \
        {text, about_it, no_options}, L, H, D, inner, inputs, masked, frames};
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

size_t tn_preset_stack(const char *name)
{
    const tarn_table_row *row = NULL;

    if (tn_option_row(&row, rows, "preset", name, NULL) != TARN_OK)
        return 1;
    return ((const struct preset *)(const void *)row)->stack;
}

tarn_status tarn_config_preset(tarn_config *config, const char *name, tarn_error *err)
{
    const tarn_table_row *row = NULL;
    tarn_status status;

    if (!config || !name)
        return tn_fail(err, TARN_EINVAL, "config and name must not be NULL");
    if ((status = tn_option_row(&row, rows, "preset", name, err)) != TARN_OK)
        return status;
    const struct preset *const preset = (const struct preset *)(const void *)row;

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
    return TARN_OK;
}
