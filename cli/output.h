/* SPDX-License-Identifier: MIT */
/* output.h - checks before the work that an output file can be written: its format, by the
 * ending of its name, and its place.
 *
 * A name with an ending that is not in the table gets the usual format. To write another
 * format, add its bit to its row. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "command.h"

/* What is written; the usual format first. */
enum format_use {
    FORMAT_PICTURE = 1, /* PNG, an animation as SVG */
    FORMAT_TEXT = 2,    /* generated text */
    FORMAT_MODEL = 4,   /* safetensors */
    FORMAT_EXPORT = 8,  /* safetensors, NumPy */
};

/* Whether a name has the ending of a format that cannot be written for this use; true after a
 * message that lists those that can. `option` is where the name was given: "-o", "OUT". */
bool format_is_foreign(const struct command *command, const char *option, const char *path,
                       enum format_use use);

/* Whether a regular file can be written there; false after a message. */
bool output_can_be(const struct command *command, const char *option, const char *path);

/* Whether a path ends in ".svg" or the like, in small letters or capitals. */
bool format_ends_in(const char *path, const char *ending);

#endif
