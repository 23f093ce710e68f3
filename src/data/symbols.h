/* SPDX-License-Identifier: MIT */
/* symbols.h - what a transcript is made of, and the numbers of it.
 *
 * Number 0 is the blank, whose name is empty, as no symbol's is; the others follow in the order
 * of their bytes, which is the same on every machine. */
#ifndef TN_SYMBOLS_H
#define TN_SYMBOLS_H

#include "base/texts.h"

enum tn_symbol_kind {
    TN_PHONES,     /* words between spaces, of the column or file of phones */
    TN_CHARACTERS, /* of the text: code points; any run of spaces is one */
    TN_WORDS       /* words between spaces, of the text */
};

enum { TN_SYMBOLS_MOST = 1 << 20, TN_SYMBOL_BYTES = 256 }; /* fewer than these; of a name */

struct tn_symbols {
    const char **name;
    size_t count; /* with the blank; 0: empty */
    struct tn_texts texts;
};

/* Takes any order, and any number of times the same; names are UTF-8. On failure *symbols is
 * empty. */
tarn_status tn_symbols_of(struct tn_symbols *symbols, const char *const *names, size_t count,
                          tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_symbols_free(struct tn_symbols *symbols);

/* What may be a name: not empty, not longer than that, and nothing that commands a terminal. */
bool tn_symbol_is_name(const char *name, size_t length);

/* A transcript's first symbol: its `length` bytes; *at moves past it. False at its end. */
bool tn_symbol_next(const char **at, const char **symbol, size_t *length,
                    enum tn_symbol_kind kind);

/* Symbols of a transcript. */
size_t tn_symbol_count(const char *transcript, enum tn_symbol_kind kind);

/* The number of a name, or false. */
bool tn_symbols_find(const struct tn_symbols *symbols, int32_t *number, const char *name,
                     size_t length);

/* Writes as many numbers as tn_symbol_count() says. A symbol that is none of these is named in
 * *err. */
tarn_status tn_symbols_number(const struct tn_symbols *symbols, int32_t *numbers,
                              const char *transcript, enum tn_symbol_kind kind,
                              tarn_error *err);

#endif
