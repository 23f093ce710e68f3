/* SPDX-License-Identifier: MIT */
/* rows_help.h - the library's tables for --help: a row that is added there is listed here. */
#ifndef ROWS_HELP_H
#define ROWS_HELP_H

#include "tarn/tarn.h"

/* Prints "TITLE:", then every row, and its options with ranges and defaults. */
void rows_help(const char *title, const tarn_table_row *(*row)(size_t index));

#endif
