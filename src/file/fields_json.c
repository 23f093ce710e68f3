/* SPDX-License-Identifier: MIT */
#include "file/fields_json.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "file/json_read.h"
#include "file/json_write.h"

enum { VERSION = 1 };

/* ---- Writing ------------------------------------------------------------ */

static void put_field(struct tn_json_writer *w, const struct tn_field *field, const void *at)
{
    const void *const place = (const char *)at + field->offset;
    const char *const name = field->about.name;

    switch (field->type) {
    case TN_FIELD_TEXT:
    case TN_FIELD_PATH:
        tn_json_put_text(w, name, place);
        break;
    case TN_FIELD_FLAG:
        tn_json_put_bool(w, name, *(const bool *)place);
        break;
    case TN_FIELD_NUMBER:
        tn_json_put_number(w, name, *(const double *)place, 0);
        break;
    case TN_FIELD_SEED:
        tn_json_put_whole(w, name, (int64_t) * (const uint64_t *)place);
        break;
    case TN_FIELD_COUNT:
        tn_json_put_whole(w, name, (int64_t) * (const size_t *)place);
        break;
    }
}

tarn_status tn_fields_write(char **json, const struct tn_field *fields, const void *at,
                            const char *what, tarn_error *err)
{
    struct tn_json_writer w = {0};

    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "version", VERSION);
    for (const struct tn_field *field = fields; field->about.name; field++)
        put_field(&w, field, at);
    tn_json_close(&w, '}');
    return tn_json_writer_end(&w, json, what, err);
}

/* ---- Reading ------------------------------------------------------------ */

/* The value as the text that tn_fields_set() takes. */
static bool value_text(char *text, size_t size, const struct tn_json_value *value)
{
    char number[TN_NUMBER_TEXT];
    const char *found = NULL;
    double real;

    if (value->kind == TN_JSON_TEXT || value->kind == TN_JSON_WHOLE)
        found = value->text;
    else if (value->kind == TN_JSON_TRUE || value->kind == TN_JSON_FALSE)
        found = value->kind == TN_JSON_TRUE ? "true" : "false";
    else if (tn_json_number(value, &real)) {
        tn_number_text(number, real);
        found = number;
    }
    return found && snprintf(text, size, "%s", found) < (int)size;
}

/* What a message is about. */
struct origin {
    const char *source, *what;
};

static tarn_status read_field(const struct tn_field *field, void *at,
                              const struct tn_json_value *object, const struct origin *from,
                              tarn_error *err)
{
    const char *const name = field->about.name;
    const struct tn_json_value *value = tn_json_get(object, name);
    char text[TARN_PATH_SIZE];
    tarn_error cause;

    if (!value && field->was)
        value = tn_json_get(object, field->was);
    if (!value && field->absent)
        return tn_fields_set(field, at, name, field->absent, err);
    if (!value)
        return tn_fail(err, TARN_EFORMAT, "%s: its %s has no '%s'", from->source, from->what,
                       name);
    if (!value_text(text, sizeof text, value))
        return tn_fail(err, TARN_EFORMAT, "%s: '%s' in its %s is not a plain value",
                       from->source, name, from->what);
    if (tn_fields_set(field, at, name, text, &cause) != TARN_OK)
        return tn_fail(err, TARN_EFORMAT, "%s: in its %s, %.140s", from->source, from->what,
                       cause.text);
    return TARN_OK;
}

static bool is_field(const struct tn_field *fields, const char *key)
{
    for (; fields->about.name; fields++)
        if (strcmp(fields->about.name, key) == 0 ||
            (fields->was && strcmp(fields->was, key) == 0))
            return true;
    return strcmp(key, "version") == 0;
}

static tarn_status check_version(const struct tn_json_value *object, const struct origin *from,
                                 tarn_error *err)
{
    int64_t version = 0;

    if (tn_json_whole(tn_json_get(object, "version"), &version) && version == VERSION)
        return TARN_OK;
    return tn_fail(err, TARN_EFORMAT,
                   "%s: its %s has version %jd; expected %d; use a matching version of tarn",
                   from->source, from->what, (intmax_t)version, VERSION);
}

static tarn_status read_object(const struct tn_field *fields, void *at,
                               const struct tn_json_value *object, const struct origin *from,
                               tarn_error *err)
{
    const struct tn_json_value *key = object + 1;
    tarn_status status;

    if (object->kind != TN_JSON_OBJECT)
        return tn_fail(err, TARN_EFORMAT, "%s: its %s is not a JSON object", from->source,
                       from->what);
    if ((status = check_version(object, from, err)) != TARN_OK)
        return status;
    for (size_t i = 0; i < object->size; i++, key = tn_json_next(key + 1))
        if (!is_field(fields, key->text))
            return tn_fail(err, TARN_EFORMAT, "%s: its %s has an unknown field '%.40s'",
                           from->source, from->what, key->text);
    for (const struct tn_field *field = fields; field->about.name && status == TARN_OK; field++)
        status = read_field(field, at, object, from, err);
    return status;
}

tarn_status tn_fields_read(const struct tn_field *fields, void *at, const char *json,
                           const char *source, const char *what, tarn_error *err)
{
    const struct origin from = {source, what};
    struct tn_json parsed;
    tarn_error cause;
    tarn_status status = tn_json_parse(&parsed, json, strlen(json), &cause);

    if (status == TARN_ENOMEM)
        return tn_fail(err, status, "%s: not enough memory for its %s", source, what);
    if (status != TARN_OK)
        return tn_fail(err, status, "%s: its %s is not valid JSON: %.80s", source, what,
                       cause.text);
    status = read_object(fields, at, parsed.root, &from, err);
    tn_json_free(&parsed);
    return status;
}
