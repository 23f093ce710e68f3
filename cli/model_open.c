/* SPDX-License-Identifier: MIT */
#include "model_open.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool model_is_folder(const char *given)
{
    struct stat about;

    return stat(given, &about) == 0 && S_ISDIR(about.st_mode);
}

void model_path(char path[MODEL_PATH], const char *given, bool best)
{
    if (model_is_folder(given))
        snprintf(path, MODEL_PATH, "%s/%s.safetensors", given, best ? "best" : "model");
    else
        snprintf(path, MODEL_PATH, "%s", given);
}

tarn_model *model_open(const char *command, const char *given, bool best)
{
    char path[MODEL_PATH];
    tarn_model *model;
    tarn_error err;

    if (best && !model_is_folder(given)) {
        fprintf(stderr, "%s: --best requires a training folder; %s is not a folder\n", command,
                given);
        return NULL;
    }
    model_path(path, given, best);
    if (tarn_model_load(&model, path, NULL, &err) == TARN_OK)
        return model;
    fprintf(stderr, "%s: %s\n", command, err.text);
    return NULL;
}

int model_refused(const struct args_command *command, const tarn_error *err)
{
    fprintf(stderr, "%s: %s\n", command->name, err->text);
    return err->status == TARN_EINVAL || err->status == TARN_EUNKNOWN ? EXIT_USAGE
                                                                      : EXIT_FAILED;
}
