/* SPDX-License-Identifier: MIT */
/* text_buffer.h - bytes that grow. The first failure stays: what is put after it is ignored. */
#ifndef TN_TEXT_BUFFER_H
#define TN_TEXT_BUFFER_H

#include "base/base.h"

/* Zeros are an empty one. */
struct tn_text {
    char *data;
    size_t used, room;
    bool failed; /* not enough memory */
};

void tn_text_put(struct tn_text *text, const void *bytes, size_t n);
void tn_text_print(struct tn_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A text of its own, free() it; NULL: not enough memory. */
char *tn_text_new(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As valid UTF-8 without zero bytes: U+FFFD replaces what is not. */
void tn_text_utf8(struct tn_text *text, const char *bytes, size_t n);

/* A zero byte after the text that does not count; the text, or NULL after a failure. */
const char *tn_text_end(struct tn_text *text);

void tn_text_base64(struct tn_text *text, const void *bytes, size_t n);

/* Decodes base64 with or without its padding; false: these are other characters. */
bool tn_text_from_base64(struct tn_text *text, const char *base64, size_t n);

/* Leaves it empty; accepts what is empty. */
void tn_text_free(struct tn_text *text);

#endif
