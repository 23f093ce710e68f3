/* SPDX-License-Identifier: MIT */
/* model_open.h - MODEL on the command line: a model file, a checkpoint or a training folder.
 */
#ifndef MODEL_OPEN_H
#define MODEL_OPEN_H

#include <stdbool.h>

#include "command.h"

enum { MODEL_PATH = TARN_PATH_SIZE + 64 };

/* Help of the operand and of the options that commands with a MODEL share. */
#define MODEL_HELP "model file, checkpoint or training folder"
#define BEST_HELP                                                                              \
    "use the checkpoint with the best validation score; requires a training folder"

/* The file of MODEL: in a folder model.safetensors or, if `best`, best.safetensors. False after
 * a message if `best` is asked of a file. */
bool model_path(const struct command *command, char path[MODEL_PATH], const char *given,
                bool best);

bool model_is_folder(const char *given);

/* NULL, after a message. */
tarn_model *model_open(const struct command *command, const char *given, bool best);

#endif
