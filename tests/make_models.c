/* SPDX-License-Identifier: MIT */
/* make_models.c FOLDER - models that learned nothing, for tests of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/tarn.h"

/* Changes to a model of text: 2 layers, 2 heads of 8. */
static const struct {
    const char *file;
    const char *settings[8]; /* name, value, ... */
} models[] = {
    {"linear", {NULL}},
    {"other", {"seed", "2", NULL}},
    {"softmax", {"attention", "softmax", NULL}},
    {"learned", {"attention", "softmax", "position", "learned", "positions", "40", NULL}},
    {"lsh", {"attention", "lsh:rounds=2,chunk=8,buckets=4", NULL}},
    {"both", {"causal", "false", NULL}},
    {"numbers", {"task", "copy", "symbols", "11", NULL}},
    {"taskless", {"task", "", "symbols", "11", NULL}},
    {"image", {"task", "image:height=8,width=8,channels=3", NULL}},
    {"sizeless", {"task", "image", NULL}},
    {"speech", {"task", "speech", "head", "ctc", "frames", "40", NULL}},
};

static void check(tarn_status status, const tarn_error *err)
{
    if (status != TARN_OK) {
        fprintf(stderr, "make_models: %s\n", err->text);
        exit(1);
    }
}

static tarn_model *make(const char *const *settings)
{
    static const char *const small[] = {"task",  "text", "layers", "2",  "heads", "2",
                                        "width", "16",   "feed",   "32", NULL};
    tarn_config config;
    tarn_model *model;
    tarn_error err;

    check(tarn_config_preset(&config, "tiny", &err), &err);
    for (size_t i = 0; small[i]; i += 2)
        check(tarn_config_set(&config, small[i], small[i + 1], &err), &err);
    for (size_t i = 0; settings[i]; i += 2)
        check(tarn_config_set(&config, settings[i], settings[i + 1], &err), &err);
    check(tarn_model_create(&model, &config, NULL, &err), &err);
    return model;
}

/* Three updates from nothing in particular. */
static void save_checkpoint(tarn_model *model, const char *path)
{
    const int32_t symbols[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const tarn_batch batch = {.inputs = symbols, .targets = symbols};
    tarn_trainer *trainer;
    tarn_report report;
    tarn_error err;

    check(tarn_trainer_create(&trainer, model, &(tarn_trainer_desc){.batch = 2, .length = 4},
                              &err),
          &err);
    for (size_t i = 0; i < 3; i++)
        check(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    check(tarn_trainer_save(trainer, path, &err), &err);
    tarn_trainer_free(trainer);
}

/* A folder of training: four updates of the copy task. */
static void train(const char *folder)
{
    const char *const copy[] = {"task", "copy", "symbols", "11", NULL};
    tarn_model *const model = make(copy);
    tarn_settings settings;
    tarn_error err;

    check(tarn_settings_start(&settings, "copy", &err), &err);
    settings.length = 12;
    settings.batch = 4;
    settings.steps = 4;
    settings.eval_every = 2;
    settings.eval_batches = 3;
    check(tarn_train(tarn_model_config(model), &settings, &(tarn_train_desc){.out = folder},
                     &err),
          &err);
    tarn_model_free(model);
}

int main(int argc, char **argv)
{
    char path[1024];
    tarn_error err;

    for (size_t i = 0; argc == 2 && i < sizeof models / sizeof models[0]; i++) {
        tarn_model *const model = make(models[i].settings);

        snprintf(path, sizeof path, "%s/%s.safetensors", argv[1], models[i].file);
        check(tarn_model_save(model, path, &err), &err);
        snprintf(path, sizeof path, "%s/checkpoint.safetensors", argv[1]);
        if (i == 0)
            save_checkpoint(model, path);
        tarn_model_free(model);
    }
    if (argc == 2) {
        snprintf(path, sizeof path, "%s/run", argv[1]);
        train(path);
    }
    return argc == 2 ? 0 : 2;
}
