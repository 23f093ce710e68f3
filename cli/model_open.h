/* SPDX-License-Identifier: MIT */
/* model_open.h - MODEL on the command line: a file of a model or a checkpoint, or a folder of
 * training; and what a command says when the library refuses. */
#ifndef MODEL_OPEN_H
#define MODEL_OPEN_H

#include <stdbool.h>

#include "args.h"
#include "tarn/tarn.h"

enum { MODEL_PATH = TARN_PATH_SIZE + 64 };

/* A file stands for itself, a folder for its model.safetensors or, if `best`, its
 * best.safetensors. */
void model_path(char path[MODEL_PATH], const char *given, bool best);

bool model_is_folder(const char *given);

/* NULL, after a message. */
tarn_model *model_open(const char *command, const char *given, bool best);

/* Prints the error, about the option of the command where it is about a field of the library's,
 * and returns the exit code for it: wrong usage if an argument was. */
int model_refused(const struct args_command *command, const tarn_error *err);

#endif
