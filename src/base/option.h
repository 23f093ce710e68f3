/* SPDX-License-Identifier: MIT */
/* option.h - tables of rows, and "name:option=value,option=value", read by the options that a
 * row declares. */
#ifndef TN_OPTION_H
#define TN_OPTION_H

#include "base/base.h"
#include "tarn/attention.h"

enum { TN_OPTIONS_MAX = 8 };

/* Values in the order of the row's options. */
struct tn_options {
    double value[TN_OPTIONS_MAX];
};

/* Rows are structs whose first member is their tarn_table_row. */
struct tn_table {
    const char *what;                           /* the argument that names a row */
    const tarn_table_row *(*row)(size_t index); /* NULL past the last */
};

extern const tarn_option_info tn_no_options[]; /* of a row */

/* The row that `text` names, and its options unless `options` is NULL. NULL: there is none
 * such, or it has no such options; *status, unless NULL, and *err say why. */
const void *tn_table_find(const struct tn_table *table, struct tn_options *options,
                          const char *text, tarn_status *status, tarn_error *err);

/* Refuses what names no row, or has options that the row cannot have. */
tarn_status tn_table_check(const struct tn_table *table, const char *text, tarn_error *err);

/* For arguments that are one of a few words (ended by NULL): which one `text` is. */
tarn_status tn_option_word(size_t *index, const char *const *words, const char *what,
                           const char *text, tarn_error *err);

#endif
