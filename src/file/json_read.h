/* SPDX-License-Identifier: MIT */
/* json_read.h - a JSON text as an array of values, in the order in which they are written.
 *
 *     {"a": [1, 2], "b": null}     is     object, "a", array, 1, 2, "b", null
 *
 * An array is followed by its values, an object by its keys and values in turn. Strict: what
 * RFC 8259 does not allow is refused, and so are a key twice, text that is not UTF-8 or has a
 * zero byte, numbers that do not fit, and more than TN_JSON_DEPTH levels.
 *
 * Values are one block and texts another, so that running out of memory is an error like any
 * other; parsers that allocate each text take what they have of it for the whole. */
#ifndef TN_JSON_READ_H
#define TN_JSON_READ_H

#include "base/base.h"

enum { TN_JSON_DEPTH = 64 };

enum tn_json_kind {
    TN_JSON_NULL,
    TN_JSON_FALSE,
    TN_JSON_TRUE,
    TN_JSON_WHOLE, /* a number without fraction and exponent */
    TN_JSON_REAL,
    TN_JSON_TEXT,
    TN_JSON_ARRAY,
    TN_JSON_OBJECT
};

struct tn_json_value {
    const char *text; /* of texts, and of numbers as they are written; ends in a zero byte */
    enum tn_json_kind kind;
    size_t size; /* bytes of the text; values of an array; pairs of an object */
    size_t span; /* how many values this is, with all inside of it */
};

struct tn_json {
    struct tn_json_value *root;
    size_t count, room; /* of values */
    char *texts;
};

/* What is wrong, as "byte 17: what"; TARN_EFORMAT or TARN_ENOMEM. On failure *json is empty. */
tarn_status tn_json_parse(struct tn_json *json, const char *text, size_t length,
                          tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_json_free(struct tn_json *json);

/* The value after this one and all inside of it: the next in an array, a key's value, the next
 * key. */
static inline const struct tn_json_value *tn_json_next(const struct tn_json_value *value)
{
    return value + value->span;
}

/* The value of a key; NULL: there is none, or this is not an object. Accepts NULL. */
const struct tn_json_value *tn_json_get(const struct tn_json_value *object, const char *key);

/* The text under a key; NULL: there is none. */
const char *tn_json_text(const struct tn_json_value *object, const char *key);

/* The first key of an object that is not in a list of names, separated by blanks; NULL: there
 * is none. */
const char *tn_json_unknown(const struct tn_json_value *object, const char *names);

/* Numbers; false: it is not one, or has a fraction. Accept NULL. */
bool tn_json_whole(const struct tn_json_value *value, int64_t *number);
bool tn_json_number(const struct tn_json_value *value, double *number);

#endif
