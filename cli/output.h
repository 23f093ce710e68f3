/* SPDX-License-Identifier: MIT */
/* output.h - a file that a command writes: what was there stays until all of it is written.
 *
 * It is written to PATH.tmp, which becomes PATH in the end, and is removed if the program ends
 * before. Devices and pipes are written themselves. One file at a time. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* NULL, with errno: cannot be written. `path` must stay as it is until the file is closed. */
FILE *output_open(const char *path);

/* False, with errno: something could not be written, and the file is what it was before. */
bool output_close(FILE *file);

/* The same, but what goes wrong ends the program. */
FILE *output_begin(const char *path);
void output_end(FILE *file);

#endif
