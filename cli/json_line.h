/* SPDX-License-Identifier: MIT */
/* json_line.h - results for programs: one JSON object per line on standard output. */
#ifndef JSON_LINE_H
#define JSON_LINE_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

void json_put_text(json_t *object, const char *name, const char *text); /* NULL: null */
void json_put_count(json_t *object, const char *name, size_t count);
void json_put_number(json_t *object, const char *name, double number); /* not finite: null */
void json_put_bool(json_t *object, const char *name, int truth);

/* Bytes that are not valid UTF-8 become U+FFFD. */
void json_put_bytes(json_t *object, const char *name, const char *bytes, size_t n);

/* Writes an object to a file and releases it. */
void json_write_line(json_t *object, FILE *out);

/* Prints an object immediately, for readers of a pipe, and releases it. */
void json_print_line(json_t *object);

#endif
