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

bool model_path(const struct command *command, char path[MODEL_PATH], const char *given,
                bool best)
{
    const bool is_folder = model_is_folder(given);

    if (best && !is_folder)
        command_fail(command, "--best requires a training folder; %s is not a folder", given);
    if (is_folder)
        snprintf(path, MODEL_PATH, "%s/%s.safetensors", given, best ? "best" : "model");
    else
        snprintf(path, MODEL_PATH, "%s", given);
    return is_folder || !best;
}

tarn_model *model_open(const struct command *command, const char *given, bool best)
{
    char path[MODEL_PATH];
    tarn_model *model = NULL;
    tarn_error err;

    if (model_path(command, path, given, best) &&
        tarn_model_load(&model, path, NULL, &err) != TARN_OK)
        command_fail(command, "%s", err.text);
    return model;
}
