/* SPDX-License-Identifier: MIT */
/* words.h - text for people: the nearest name, wrapped paragraphs, sizes. */
#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>
#include <stdio.h>

/* Letters to insert, delete or replace to make one word of the other; long words are far. */
size_t words_distance(const char *a, const char *b);

/* Prints `text` from column `column` on, going on below it; ends the line. */
void words_wrap(FILE *out, const char *text, int column);

/* `text` with '?' for what a terminal takes as a command: control characters, also those that
 * UTF-8 writes with two bytes. */
void words_harmless(char *out, size_t size, const char *text);

/* "1.5 GiB" */
void words_bytes(char *text, size_t size, double bytes);

/* "1:02:33" or "2:33"; "?" for what is no time. */
void words_time(char *text, size_t size, double seconds);

#endif
