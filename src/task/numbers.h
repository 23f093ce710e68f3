/* SPDX-License-Identifier: MIT */
/* numbers.h - symbols that look like numbers, each with a blank behind it: "3 1 4 0 ". */
#ifndef TN_NUMBERS_H
#define TN_NUMBERS_H

#include "base/base.h"

/* As tn_task_row.encode, for the symbols 0 .. most - 1; *count is 0 before. */
tarn_status tn_numbers_encode(int32_t *symbols, size_t *count, const char *text, size_t length,
                              size_t most, tarn_error *err);

/* As tn_task_row.decode. */
size_t tn_number_decode(char *text, int32_t symbol);

#endif
