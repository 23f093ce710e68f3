/* SPDX-License-Identifier: MIT */
/* checkpoint_bytes.c - whatever stands in a checkpoint must end in settings, and in a trainer
 * that makes an update or says why not; or in a sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"
#include "support/fuzzing.h"
#include "tarn/tarn.h"

enum { BATCH = 2, LENGTH = 8 };

static const char name[] = "checkpoint-0000000002.safetensors";
static tarn_model *model;
static tarn_trainer *trainer;
static struct base base;

static tarn_config tiny(void)
{
    static const char *const small[] = {"task",    "copy",  "layers", "1",    "heads",
                                        "1",       "width", "4",      "feed", "4",
                                        "symbols", "11",    NULL};
    tarn_config config;

    need(tarn_config_preset(&config, "tiny", NULL) == TARN_OK);
    for (size_t i = 0; small[i]; i += 2)
        need(tarn_config_set(&config, small[i], small[i + 1], NULL) == TARN_OK);
    return config;
}

/* The checkpoint of a run of two updates, and a trainer that it fits. */
static void make(void)
{
    const tarn_config config = tiny();
    const tarn_trainer_desc desc = {.batch = BATCH, .length = LENGTH, .host.threads = 1};
    struct tn_bytes bytes;
    tarn_settings settings;
    char path[256];

    need(tarn_settings_start(&settings, "copy", NULL) == TARN_OK);
    settings.batch = BATCH;
    settings.length = LENGTH;
    settings.steps = 2;
    settings.eval_every = 0;
    need(tarn_train(&config, &settings,
                    &(tarn_train_desc){.out = input_folder(), .host.threads = 1},
                    NULL) == TARN_OK);
    snprintf(path, sizeof path, "%s/%s", input_folder(), name);
    need(tn_bytes_read(&bytes, path, SIZE_MAX / 2, NULL) == TARN_OK);
    base = (struct base){bytes.data, bytes.size};
    need(tarn_model_create(&model, &config, NULL, NULL) == TARN_OK);
    need(tarn_trainer_create(&trainer, model, &desc, NULL) == TARN_OK);
}

static void update(void)
{
    static const int32_t symbols[BATCH * LENGTH] = {1, 2, 3, 4, 5, 6, 7, 8};
    const tarn_batch batch = {.inputs = symbols, .targets = symbols};
    tarn_report report;
    tarn_error err = {TARN_OK, ""};

    if (tarn_trainer_update(trainer, &report, &batch, 1, &err) != TARN_OK)
        need_text(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tarn_config config;
    tarn_settings settings;
    tarn_error err = {TARN_OK, ""};

    if (!trainer)
        make();
    const char *const path = input_file(name, data, size);

    if (tarn_train_settings(&config, &settings, input_folder(), &err) != TARN_OK)
        need_text(&err);
    err = (tarn_error){TARN_OK, ""};
    if (tarn_trainer_load(trainer, path, &err) == TARN_OK)
        update();
    else
        need_text(&err);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_safetensors(data, size, most, seed, &base);
}
