/* SPDX-License-Identifier: MIT */
/* words.h - text for people: the nearest name, wrapped paragraphs, sizes. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The ending of a noun: "1 image", "2 images". */
static inline const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* Edit distance between two words; long words are far from everything. */
size_t words_distance(const char *a, const char *b);

/* A list of names; NULL past the last. */
typedef const char *words_name(size_t index);

/* The name that was probably meant; NULL: none is near. */
const char *words_nearest(const char *word, words_name *names);

/* "bash, zsh, fish" */
void words_list(char *text, size_t size, words_name *names);

/* Whether a file name ends in ".svg" or the like, in small letters or capitals. */
bool words_end_in(const char *name, const char *ending);

/* Whether a word is in a list of words, separated by blanks or by commas and blanks. */
bool words_have(const char *list, const char *word);

/* Prints `text` wrapped at 80 columns, or where a narrower terminal ends, its later lines
 * indented to `column`. The first line is already there. Ends with a newline. */
void words_wrap(FILE *out, const char *text, int column);

/* Prints a block of example command lines, each ended by a newline; nothing if NULL. */
void words_examples(FILE *out, const char *lines);

/* "1.5 GiB" */
void words_bytes(char *text, size_t size, double bytes);

/* "1:02:33" or "2:33"; "?" if it is not a time. */
void words_time(char *text, size_t size, double seconds);

#endif
