/* SPDX-License-Identifier: MIT */
/* words.h - text for people: the nearest name, wrapped paragraphs, sizes. */
#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>
#include <stdio.h>

/* Edit distance between two words; long words are far from everything. */
size_t words_distance(const char *a, const char *b);

/* Reports an unknown name on standard error, with the nearest one or, where none is near, all:
 * "tarn data fetch: unknown data set 'minst'; did you mean 'mnist'?". names(table, i) is NULL
 * past the last. */
void words_unknown(const char *command, const char *what, const char *word,
                   const char *(*names)(const void *table, size_t index), const void *table);

/* Prints `text` wrapped at 80 columns, its later lines indented to `column`. The first line is
 * already there. Ends with a newline. */
void words_wrap(FILE *out, const char *text, int column);

/* Prints a block of example command lines, each ended by a newline; nothing if NULL. */
void words_examples(FILE *out, const char *lines);

/* "1.5 GiB" */
void words_bytes(char *text, size_t size, double bytes);

/* "1:02:33" or "2:33"; "?" if it is not a time. */
void words_time(char *text, size_t size, double seconds);

#endif
