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

/* ---- Errors ------------------------------------------------------------- */

/* Fields whose options have another name; otherwise '_' becomes '-'. */
static const struct {
    const char *field, *option;
} renamed[] = {{"score_batches", "batches"}, {"kind", "attention"}};

static void name_option(char name[32], const char *field, size_t length)
{
    snprintf(name, 32, "%.*s", (int)length, field);
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(name, renamed[i].field) == 0)
            snprintf(name, 32, "%s", renamed[i].option);
    for (char *at = name; (at = strchr(at, '_')) != NULL;)
        *at = '-';
}

/* "score_batches is ..." becomes "--batches is ...". */
int model_refused(const struct args_command *command, const tarn_error *err)
{
    const size_t length = strcspn(err->text, ": [");
    const bool usage = err->status == TARN_EINVAL || err->status == TARN_EUNKNOWN;
    const struct args_option *option = command->options;
    char name[32];

    name_option(name, err->text, length);
    while (option->name && (args_is_operand(option) || strcmp(option->name, name) != 0))
        option++;
    if (usage && option->name)
        fprintf(stderr, "%s: %s%s%s\n", command->name, args_dashes(option), option->name,
                err->text + length);
    else
        fprintf(stderr, "%s: %s\n", command->name, err->text);
    return usage ? EXIT_USAGE : EXIT_FAILED;
}
