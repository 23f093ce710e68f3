/* SPDX-License-Identifier: MIT */
/* rows_help.h - the library's tables for --help: a row that is added there is listed here. */
#ifndef ROWS_HELP_H
#define ROWS_HELP_H

#include "tarn/tarn.h"

/* Prints "TITLE:", then every row, and its options with ranges and defaults. */
void rows_help(const char *title, const tarn_table_row *(*row)(size_t index));

/* ":rounds=1..64", ":similarity=map|polynomial|rbf" */
void rows_range(char *text, size_t size, const tarn_option_info *option);

/* What it is for, and its default in brackets. */
void rows_option_help(char *text, size_t size, const tarn_option_info *option);

#endif
