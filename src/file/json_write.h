/* SPDX-License-Identifier: MIT */
/* json_write.h - a JSON text, written from its beginning to its end.
 *
 * Commas and quotes are the writer's. The first thing that fails stays: whatever is put after
 * it is ignored, and tn_json_writer_end() reports it. So a text is whole or not there at all.
 *
 *     struct tn_json_writer w = {0};
 *     tn_json_open(&w, NULL, '{');
 *     tn_json_put_whole(&w, "layers", 4);
 *     tn_json_close(&w, '}');
 *     status = tn_json_writer_end(&w, &text, "the configuration", err); */
#ifndef TN_JSON_WRITE_H
#define TN_JSON_WRITE_H

#include "file/text_buffer.h"

/* Zeros are an empty one. tn_text_free(&w.out) frees it. */
struct tn_json_writer {
    struct tn_text out; /* failed: not enough memory, or invalid */
    bool comma;         /* before the next value */
    bool invalid;       /* text that is not UTF-8 */
};

/* `key`: of a value in an object; NULL in an array and at the top. */

/* An object, '{' to '}', or an array, '[' to ']'. */
void tn_json_open(struct tn_json_writer *w, const char *key, char bracket);
void tn_json_close(struct tn_json_writer *w, char bracket);

void tn_json_put_text(struct tn_json_writer *w, const char *key,
                      const char *text); /* NULL: null */
void tn_json_put_whole(struct tn_json_writer *w, const char *key, int64_t number);
void tn_json_put_bool(struct tn_json_writer *w, const char *key, bool truth);

/* With `digits` of precision, 0: as few as give the same number again. JSON has no infinity and
 * no NaN: they are null. */
void tn_json_put_number(struct tn_json_writer *w, const char *key, double number, int digits);

/* Any bytes: as tn_text_utf8() makes a text of them, and in base64. */
void tn_json_put_bytes(struct tn_json_writer *w, const char *key, const char *bytes, size_t n);
void tn_json_put_base64(struct tn_json_writer *w, const char *key, const void *bytes, size_t n);

/* The whole text, free() it; the writer is empty then. `what` begins the sentence about what
 * failed. On failure *text is NULL. */
tarn_status tn_json_writer_end(struct tn_json_writer *w, char **text, const char *what,
                               tarn_error *err);

#endif
