/* SPDX-License-Identifier: MIT */
#include "file/fields_json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const json_int_t format_version = 1;

/* ---- Writing ------------------------------------------------------------ */

static json_t *field_json(const struct tn_field *field, const void *at)
{
    const void *const place = (const char *)at + field->offset;

    switch (field->type) {
    case TN_FIELD_TEXT:
    case TN_FIELD_PATH:
        return json_string(place);
    case TN_FIELD_FLAG:
        return json_boolean(*(const bool *)place);
    case TN_FIELD_NUMBER:
        return json_real(*(const double *)place);
    case TN_FIELD_SEED:
        return json_integer((json_int_t) * (const uint64_t *)place);
    case TN_FIELD_COUNT:
        break;
    }
    return json_integer((json_int_t) * (const size_t *)place);
}

char *tn_fields_write(const struct tn_field *fields, const void *at)
{
    json_t *const object = json_object();
    int failed = json_object_set_new(object, "version", json_integer(format_version));

    for (const struct tn_field *field = fields; field->about.name; field++)
        failed |= json_object_set_new(object, field->about.name, field_json(field, at));
    char *const text = failed ? NULL : json_dumps(object, JSON_COMPACT);

    json_decref(object);
    return text;
}

/* ---- Reading ------------------------------------------------------------ */

/* The value as the text that tn_fields_set() takes. */
static bool value_text(char *text, size_t size, const json_t *value)
{
    char number[TN_NUMBER_TEXT];
    int length = -1;

    if (json_is_string(value))
        length = strlen(json_string_value(value)) == json_string_length(value)
                     ? snprintf(text, size, "%s", json_string_value(value))
                     : -1;
    else if (json_is_boolean(value))
        length = snprintf(text, size, "%s", json_is_true(value) ? "true" : "false");
    else if (json_is_integer(value))
        length = snprintf(text, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) {
        tn_number_text(number, json_real_value(value));
        length = snprintf(text, size, "%s", number);
    }
    return length >= 0 && (size_t)length < size;
}

/* What a message is about. */
struct origin {
    const char *source, *what;
};

static tarn_status read_field(const struct tn_field *field, void *at, const json_t *object,
                              const struct origin *from, tarn_error *err)
{
    const char *const name = field->about.name;
    const json_t *value = json_object_get(object, name);
    char text[TARN_PATH_SIZE];
    tarn_error cause;

    if (!value && field->was)
        value = json_object_get(object, field->was);
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

static tarn_status read_object(const struct tn_field *fields, void *at, json_t *object,
                               const struct origin *from, tarn_error *err)
{
    const json_int_t version = json_integer_value(json_object_get(object, "version"));
    const char *key;
    json_t *value;
    tarn_status status = TARN_OK;

    if (version != format_version)
        return tn_fail(
            err, TARN_EFORMAT,
            "%s: its %s has version %lld; expected %lld; use a matching version of tarn",
            from->source, from->what, (long long)version, (long long)format_version);
    json_object_foreach(object, key, value)
    {
        if (!is_field(fields, key))
            return tn_fail(err, TARN_EFORMAT, "%s: its %s has an unknown field '%.40s'",
                           from->source, from->what, key);
    }
    for (const struct tn_field *field = fields; field->about.name && status == TARN_OK; field++)
        status = read_field(field, at, object, from, err);
    return status;
}

tarn_status tn_fields_read(const struct tn_field *fields, void *at, const char *json,
                           const char *source, const char *what, tarn_error *err)
{
    const struct origin from = {source, what};
    json_error_t where;
    json_t *const object = json_loads(json, JSON_REJECT_DUPLICATES, &where);
    tarn_status status;

    if (!object)
        return tn_fail(err, TARN_EFORMAT, "%s: its %s is not valid JSON: %.80s at byte %d",
                       source, what, where.text, where.position);
    status = json_is_object(object)
                 ? read_object(fields, at, object, &from, err)
                 : tn_fail(err, TARN_EFORMAT, "%s: its %s is not a JSON object", source, what);
    json_decref(object);
    return status;
}
