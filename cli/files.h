/* SPDX-License-Identifier: MIT */
/* files.h - files named on the command line: MODEL, and checks before the work that an output
 * file can be written. */
#ifndef FILES_H
#define FILES_H

#include "command.h"

/* ---- MODEL: a model file, a checkpoint or a training folder ------------- */

enum { MODEL_PATH = TARN_PATH_SIZE + 64 };

/* Help of the operand and of the option that commands with a MODEL share. */
#define MODEL_HELP "model file, checkpoint or training folder"
#define BEST_HELP                                                                              \
    "use the checkpoint with the best validation score; requires a training folder"

bool is_folder(const char *path);

/* The file of MODEL: in a folder model.safetensors or, if `best`, best.safetensors, which a
 * file does not have. */
void model_path(char path[MODEL_PATH], const char *given, bool best);

tarn_model *model_open(const char *given, bool best);

/* ---- Output ------------------------------------------------------------- */

/* What is written; the usual format first, which names with other endings get. */
enum format_use {
    FORMAT_PICTURE = 1, /* PNG, an animation as SVG */
    FORMAT_TEXT = 2,    /* generated text */
    FORMAT_MODEL = 4,   /* safetensors */
    FORMAT_EXPORT = 8,  /* safetensors, NumPy */
};

/* Refuses a name with the ending of a format that cannot be written for this use. `option` is
 * where the name was given: "-o", "OUT". */
void check_format(const char *option, const char *path, enum format_use use);

/* Fails where a regular file cannot be written. */
void check_writable(const char *option, const char *path);

#endif
