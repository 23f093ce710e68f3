/* SPDX-License-Identifier: MIT */
/* texts.h - many small texts in few blocks of memory, all freed at once. */
#ifndef TN_TEXTS_H
#define TN_TEXTS_H

#include "base/base.h"

/* Zeros are an empty one. Texts do not move. */
struct tn_texts {
    struct tn_text_block *last;
};

/* Bytes for a text; NULL if there is no memory. */
char *tn_texts_alloc(struct tn_texts *texts, size_t bytes);

/* A copy of `length` bytes and a zero byte; NULL if there is no memory. */
const char *tn_texts_copy(struct tn_texts *texts, const char *text, size_t length);

/* Leaves it empty; accepts what is empty. */
void tn_texts_free(struct tn_texts *texts);

/* For qsort() and bsearch(), by the order of bytes: of texts or of structs that begin with one,
 * and of pointers to such structs. */
int tn_compare_texts(const void *a, const void *b);
int tn_compare_named(const void *a, const void *b);

#endif
