/* SPDX-License-Identifier: MIT */
/* option.h - "name:option=value,option=value", read by the options that a row declares. */
#ifndef TN_OPTION_H
#define TN_OPTION_H

#include "base/base.h"
#include "tarn/attention.h"

enum { TN_OPTIONS_MAX = 8 };

/* Values in the order of the row's options. */
struct tn_options {
    double value[TN_OPTIONS_MAX];
};

/* The row of `rows` (ended by NULL) that `text` names. `what` is the argument, for the
 * message. */
tarn_status tn_option_row(const tarn_table_row **row, const tarn_table_row *const *rows,
                          const char *what, const char *text, tarn_error *err);

/* The row that `text` names, and its options. */
tarn_status tn_option_choose(const tarn_table_row **row, struct tn_options *options,
                             const tarn_table_row *const *rows, const char *what,
                             const char *text, tarn_error *err);

/* Refuses what names no row, or has options that the row cannot have. */
tarn_status tn_option_check(const tarn_table_row *const *rows, const char *what,
                            const char *text, tarn_error *err);

/* For arguments that are one of a few words (ended by NULL): which one `text` is. */
tarn_status tn_option_word(size_t *index, const char *const *words, const char *what,
                           const char *text, tarn_error *err);

/* Row `index` of such a table; NULL past the last. */
static inline const tarn_table_row *tn_row_at(const tarn_table_row *const *rows, size_t index)
{
    while (index > 0 && *rows) {
        rows++;
        index--;
    }
    return *rows;
}

/* Every option of `row`, from `text` where it is given, else as declared. */
tarn_status tn_option_read(struct tn_options *options, const tarn_table_row *row,
                           const char *what, const char *text, tarn_error *err);

#endif
