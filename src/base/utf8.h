/* SPDX-License-Identifier: MIT */
/* utf8.h - the characters of a text, and those that must not reach a terminal. */
#ifndef TN_UTF8_H
#define TN_UTF8_H

#include "base/base.h"

/* Bytes of the character that begins `length` bytes, and its code point; 0: none does. Neither
 * surrogates nor encodings that are longer than necessary are characters. */
size_t tn_utf8_read(uint32_t *point, const char *text, size_t length);

/* Writes a code point and returns its bytes, 1 to 4. */
size_t tn_utf8_write(char out[4], uint32_t point);

/* Of a text that ends in a zero byte. */
bool tn_is_utf8(const char *text);

/* C0, DEL and C1: terminals take these for commands. */
bool tn_is_control(uint32_t point);

/* What text shows is not what it has: controls, line separators, characters without width and
 * those that turn the direction of writing. */
bool tn_is_hidden(uint32_t point);

#endif
