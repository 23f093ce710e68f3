/* SPDX-License-Identifier: MIT */
/* number.h - numbers as text that is the same whatever locale the host program has set.
 *
 * strtod() and printf() use the locale's decimal point, while options, settings and files have
 * '.' everywhere. What the C library uses on this thread is seen in what it prints, which needs
 * no lock and asks no global state. */
#ifndef TN_NUMBER_H
#define TN_NUMBER_H

#include "base/base.h"

enum { TN_NUMBER_TEXT = 64 };

/* All of `length` bytes as a decimal number: no blanks, no hex, no nan, no inf. */
bool tn_number_read(double *number, const char *text, size_t length);

/* As few digits as give the same number again: 0.1 and not 0.10000000000000001. */
void tn_number_text(char text[TN_NUMBER_TEXT], double number);

/* With at most so many digits, up to 17. */
void tn_number_rounded(char text[TN_NUMBER_TEXT], double number, int digits);

/* Writes `to` in the place of the first `from`, if there is one; false: it does not fit. */
bool tn_number_point(char out[TN_NUMBER_TEXT], const char *text, const char *from,
                     const char *to);

/* Whether none of `count` numbers, of any alignment, is infinite or not a number. */
bool tn_all_finite(const void *numbers, size_t count);

#endif
