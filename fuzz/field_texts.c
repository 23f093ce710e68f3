/* SPDX-License-Identifier: MIT */
/* field_texts.c - whatever is given for an option must end in a configuration or settings that
 * can be read back, or in a sentence. Lines of NAME=TEXT, one after the other. */
#include <stdlib.h>
#include <string.h>

#include "support/fuzzing.h"
#include "tarn/tarn.h"

static void set(tarn_config *config, tarn_settings *settings, char *line)
{
    char *const value = strchr(line, '=');
    tarn_error err = {TARN_OK, ""};

    if (!value)
        return;
    *value = '\0';
    if (tarn_config_set(config, line, value + 1, &err) != TARN_OK)
        need_text(&err);
    err = (tarn_error){TARN_OK, ""};
    if (tarn_settings_set(settings, line, value + 1, &err) != TARN_OK)
        need_text(&err);
}

/* A model of it is made if it is small, or refused. */
static void check(const tarn_config *config)
{
    tarn_model *model = NULL;
    tarn_error err = {TARN_OK, ""};

    if (config->layers > 4 || config->width > 64 || config->feed > 64 || config->symbols > 64 ||
        config->positions > 64 || config->frames > 64 || config->stack > 8 || config->heads > 8)
        return;
    if (tarn_model_create(&model, config, NULL, &err) != TARN_OK)
        need_text(&err);
    tarn_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const text = malloc(size + 1);
    tarn_config config;
    tarn_settings settings;

    need(text && tarn_config_preset(&config, "tiny", NULL) == TARN_OK &&
         tarn_settings_start(&settings, "copy", NULL) == TARN_OK);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = text, *end; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end)
            *end = '\0';
        set(&config, &settings, line);
    }
    check(&config);
    free(text);
    return 0;
}
