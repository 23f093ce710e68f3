/* SPDX-License-Identifier: MIT */
/* json_write.h - a JSON text, written from its beginning to its end.
 *
 * Commas and quotes are the writer's. The first thing that fails stays: whatever is put after
 * it is ignored, and tn_json_writer_end() reports it. So a text is whole or not there at all.
 *
 *     struct tn_json_writer w = {0};
 *     tn_json_open(&w, '{');
 *     tn_json_key(&w, "layers");
 *     tn_json_put_whole(&w, 4);
 *     tn_json_close(&w, '}');
 *     status = tn_json_writer_end(&w, &text, "the configuration", err); */
#ifndef TN_JSON_WRITE_H
#define TN_JSON_WRITE_H

#include "base/base.h"

/* Zeros are an empty one. */
struct tn_json_writer {
    char *text;
    size_t used, room;
    bool comma;         /* before the next value */
    tarn_status status; /* TARN_ENOMEM, or TARN_EINVAL: text that is not UTF-8 */
};

/* An object, '{' to '}', or an array, '[' to ']'. */
void tn_json_open(struct tn_json_writer *w, char bracket);
void tn_json_close(struct tn_json_writer *w, char bracket);

/* Before each value of an object. */
void tn_json_key(struct tn_json_writer *w, const char *key);

void tn_json_put_text(struct tn_json_writer *w, const char *text); /* NULL: null */
void tn_json_put_whole(struct tn_json_writer *w, int64_t number);
void tn_json_put_bool(struct tn_json_writer *w, bool truth);

/* With `digits` of precision, 0: as few as give the same number again. JSON has no infinity and
 * no NaN: they are null. */
void tn_json_put_number(struct tn_json_writer *w, double number, int digits);

/* The whole text, free() it; the writer is empty then. `what` begins the sentence about what
 * failed. On failure *text is NULL. */
tarn_status tn_json_writer_end(struct tn_json_writer *w, char **text, const char *what,
                               tarn_error *err);

/* Accepts one that is empty. */
void tn_json_writer_free(struct tn_json_writer *w);

#endif
