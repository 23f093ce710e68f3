/* SPDX-License-Identifier: MIT */
/* model_open.h - MODEL on the command line: a model file, a checkpoint or a training folder;
 * and error messages about options that the library rejects. */
#ifndef MODEL_OPEN_H
#define MODEL_OPEN_H

#include <stdbool.h>

#include "args.h"
#include "tarn/tarn.h"

enum { MODEL_PATH = TARN_PATH_SIZE + 64 };

/* Help of the operand and of the options that commands with a MODEL share. */
#define MODEL_HELP "model file, checkpoint or training folder"
#define BEST_HELP                                                                              \
    "use the checkpoint with the best validation score; requires a training folder"

/* The file of MODEL: in a folder model.safetensors or, if `best`, best.safetensors. */
void model_path(char path[MODEL_PATH], const char *given, bool best);

bool model_is_folder(const char *given);

/* NULL, after a message. */
tarn_model *model_open(const char *command, const char *given, bool best);

/* Prints an error of the library and returns its exit code. */
int model_refused(const struct args_command *command, const tarn_error *err);

#endif
