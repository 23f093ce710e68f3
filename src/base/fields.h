/* SPDX-License-Identifier: MIT */
/* fields.h - a struct described by a table, so that text, JSON, checks and help agree on it. */
#ifndef TN_FIELDS_H
#define TN_FIELDS_H

#include "base/option.h"
#include "tarn/model.h"

enum tn_field_type {
    TN_FIELD_TEXT,   /* char[TARN_NAME_SIZE] */
    TN_FIELD_PATH,   /* char[TARN_PATH_SIZE] */
    TN_FIELD_COUNT,  /* size_t */
    TN_FIELD_SEED,   /* uint64_t */
    TN_FIELD_NUMBER, /* double */
    TN_FIELD_FLAG    /* bool */
};

struct tn_field {
    tarn_field about;
    enum tn_field_type type;
    size_t offset;
    double minimum, maximum; /* of counts, seeds and numbers */
    const char *absent;      /* what files say that were made before it; NULL: they have it */
    const char *was;         /* its name in files of version 0.1; NULL: the same */

    /* Text must name a row of the table, be one of the words, or pass the check; NULL: it may
     * be any. */
    const struct tn_table *table;
    const char *const *words;
    tarn_status (*check)(const char *value, tarn_error *err);
};

/* The greatest whole number that JSON and double hold exactly. */
#define TN_FIELD_MOST 9007199254740992.0

/* Rows of a table of struct `record`, ended by {{0}}. After the range come the help and, where
 * users set the field, the placeholder of its value. */
#define TN_FIELD(record, kind, field, least, most, ...)                                        \
    TN_FIELD_SINCE(record, kind, field, least, most, NULL, __VA_ARGS__)

/* The same for a field that older files lack, and for one that files of version 0.1 have under
 * another name. */
#define TN_FIELD_SINCE(record, kind, field, least, most, before, ...)                          \
    TN_FIELD_OF(record, kind, field, least, most, .absent = before, __VA_ARGS__)
#define TN_FIELD_RENAMED(record, kind, field, least, most, old, ...)                           \
    TN_FIELD_OF(record, kind, field, least, most, .was = old, __VA_ARGS__)
#define TN_FIELD_OF(record, kind, field, least, most, past, ...)                               \
    {                                                                                          \
        .about = {.name = #field, __VA_ARGS__}, .type = TN_FIELD_##kind,                       \
        .offset = offsetof(record, field), .minimum = least, .maximum = most, past             \
    }

/* Text of which `limit`, such as .table = &tn_tasks, says what it may be. before: as above, or
 * NULL. */
#define TN_FIELD_NAME(record, field, before, limit, ...)                                       \
    {                                                                                          \
        .about = {.name = #field, __VA_ARGS__}, .type = TN_FIELD_TEXT,                         \
        .offset = offsetof(record, field), .absent = before, limit                             \
    }

/* NULL: there is none of that name. */
const struct tn_field *tn_fields_find(const struct tn_field *fields, const char *name);

/* Sets the field called `name` of the struct at `at`; refuses what cannot be a value of it. */
tarn_status tn_fields_set(const struct tn_field *fields, void *at, const char *name,
                          const char *value, tarn_error *err);

/* Its value as text that sets it again; refuses a `size` that it does not fit in. */
tarn_status tn_fields_text(const struct tn_field *fields, const void *at, char *text,
                           size_t size, const char *name, tarn_error *err);

/* Values that were not set by tn_fields_set(): ranges, and text that ends. Names are left to
 * those who look them up. */
tarn_status tn_fields_check(const struct tn_field *fields, const void *at, tarn_error *err);

/* Refuses a struct that has another value than `wanted`, which is from `path`, in a field that
 * is not among `except`, ended by NULL. */
tarn_status tn_fields_agree(const struct tn_field *fields, const void *at, const void *wanted,
                            const char *const *except, const char *path, tarn_error *err);

size_t tn_field_bytes(const struct tn_field *field);

#endif
