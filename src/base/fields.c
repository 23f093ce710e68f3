/* SPDX-License-Identifier: MIT */
#include "base/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

size_t tn_field_bytes(const struct tn_field *field)
{
    switch (field->type) {
    case TN_FIELD_TEXT:
        return TARN_NAME_SIZE;
    case TN_FIELD_PATH:
        return TARN_PATH_SIZE;
    case TN_FIELD_FLAG:
        return sizeof(bool);
    case TN_FIELD_NUMBER:
        return sizeof(double);
    case TN_FIELD_SEED:
        return sizeof(uint64_t);
    case TN_FIELD_COUNT:
        break;
    }
    return sizeof(size_t);
}

static bool is_text(const struct tn_field *field)
{
    return field->type == TN_FIELD_TEXT || field->type == TN_FIELD_PATH;
}

const struct tn_field *tn_fields_find(const struct tn_field *fields, const char *name)
{
    while (fields->about.name && strcmp(fields->about.name, name) != 0)
        fields++;
    return fields->about.name ? fields : NULL;
}

static tarn_status refuse_name(const char *name, tarn_error *err)
{
    return tn_fail(err, TARN_EUNKNOWN, "unknown setting '%.40s'", name);
}

/* ---- Setting ------------------------------------------------------------ */

static tarn_status refuse(const struct tn_field *field, const char *value, tarn_error *err)
{
    if (field->type == TN_FIELD_FLAG)
        return tn_fail(err, TARN_EINVAL, "%s is '%.40s'; it must be true or false",
                       field->about.name, value);
    return tn_fail(err, TARN_EINVAL, "%s is '%.40s'; it must be a%s number from %.16g to %.16g",
                   field->about.name, value, field->type == TN_FIELD_NUMBER ? "" : " whole",
                   field->minimum, field->maximum);
}

static tarn_status check_text(const struct tn_field *field, const char *value, tarn_error *err)
{
    size_t index;

    if (field->table)
        return tn_table_check(field->table, value, err);
    if (field->words)
        return tn_option_word(&index, field->words, field->about.name, value, err);
    return field->check ? field->check(value, err) : TARN_OK;
}

static tarn_status set_text(char *at, const struct tn_field *field, const char *value,
                            tarn_error *err)
{
    const size_t room = tn_field_bytes(field);

    if (strlen(value) >= room)
        return tn_fail(err, TARN_EINVAL,
                       "%s is '%.40s...', which has %zu bytes; it must have fewer than %zu",
                       field->about.name, value, strlen(value), room);
    const tarn_status status = check_text(field, value, err);

    if (status != TARN_OK)
        return status;
    memset(at, 0, room); /* equal values are equal bytes */
    memcpy(at, value, strlen(value));
    return TARN_OK;
}

static tarn_status set_number(void *at, const struct tn_field *field, const char *value,
                              tarn_error *err)
{
    double number;

    if (!tn_number_read(&number, value, strlen(value)) ||
        !(number >= field->minimum && number <= field->maximum) ||
        (field->type != TN_FIELD_NUMBER && number != floor(number)))
        return refuse(field, value, err);
    if (field->type == TN_FIELD_NUMBER)
        *(double *)at = number;
    else if (field->type == TN_FIELD_SEED)
        *(uint64_t *)at = (uint64_t)number;
    else
        *(size_t *)at = (size_t)number;
    return TARN_OK;
}

static tarn_status set_flag(bool *at, const struct tn_field *field, const char *value,
                            tarn_error *err)
{
    const bool yes = strcmp(value, "true") == 0;

    if (!yes && strcmp(value, "false") != 0)
        return refuse(field, value, err);
    *at = yes;
    return TARN_OK;
}

tarn_status tn_fields_set(const struct tn_field *fields, void *at, const char *name,
                          const char *value, tarn_error *err)
{
    const struct tn_field *const field = tn_fields_find(fields, name);

    if (!field)
        return refuse_name(name, err);
    void *const place = (char *)at + field->offset;

    if (is_text(field))
        return set_text(place, field, value, err);
    return field->type == TN_FIELD_FLAG ? set_flag(place, field, value, err)
                                        : set_number(place, field, value, err);
}

/* ---- Reading ------------------------------------------------------------ */

/* As tn_fields_set() takes it. */
static void put_text(char text[TARN_PATH_SIZE], const struct tn_field *field, const void *at)
{
    const void *const place = (const char *)at + field->offset;

    switch (field->type) {
    case TN_FIELD_TEXT:
    case TN_FIELD_PATH:
        snprintf(text, TARN_PATH_SIZE, "%s", (const char *)place);
        break;
    case TN_FIELD_FLAG:
        snprintf(text, TARN_PATH_SIZE, "%s", *(const bool *)place ? "true" : "false");
        break;
    case TN_FIELD_NUMBER:
        tn_number_text(text, *(const double *)place);
        break;
    case TN_FIELD_SEED:
        snprintf(text, TARN_PATH_SIZE, "%llu", (unsigned long long)*(const uint64_t *)place);
        break;
    case TN_FIELD_COUNT:
        snprintf(text, TARN_PATH_SIZE, "%zu", *(const size_t *)place);
        break;
    }
}

tarn_status tn_fields_text(const struct tn_field *fields, const void *at, char *text,
                           size_t size, const char *name, tarn_error *err)
{
    const struct tn_field *const field = tn_fields_find(fields, name);
    char whole[TARN_PATH_SIZE];

    if (!field)
        return refuse_name(name, err);
    put_text(whole, field, at);
    if (strlen(whole) >= size)
        return tn_fail(err, TARN_EINVAL, "size is %zu; '%s' needs %zu bytes", size, name,
                       strlen(whole) + 1);
    memcpy(text, whole, strlen(whole) + 1);
    return TARN_OK;
}

/* ---- Checking ----------------------------------------------------------- */

/* Of a count, a seed or a number. */
static double value_of(const struct tn_field *field, const void *place)
{
    if (field->type == TN_FIELD_NUMBER)
        return *(const double *)place;
    if (field->type == TN_FIELD_SEED)
        return (double)*(const uint64_t *)place;
    return (double)*(const size_t *)place;
}

static tarn_status check(const struct tn_field *field, const void *place, tarn_error *err)
{
    if (is_text(field) && !memchr(place, '\0', tn_field_bytes(field)))
        return tn_fail(err, TARN_EINVAL,
                       "%s does not end in a zero byte; it must have fewer than %zu bytes",
                       field->about.name, tn_field_bytes(field));
    if (is_text(field) || field->type == TN_FIELD_FLAG)
        return TARN_OK;
    const double value = value_of(field, place);

    if (!(value >= field->minimum && value <= field->maximum)) /* NaN is neither */
        return tn_fail(err, TARN_EINVAL, "%s is %.16g; it must be from %.16g to %.16g",
                       field->about.name, value, field->minimum, field->maximum);
    return TARN_OK;
}

tarn_status tn_fields_check(const struct tn_field *fields, const void *at, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (const struct tn_field *field = fields; field->about.name && status == TARN_OK; field++)
        status = check(field, (const char *)at + field->offset, err);
    return status;
}

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

tarn_status tn_fields_agree(const struct tn_field *fields, const void *at, const void *wanted,
                            const char *const *except, const char *path, tarn_error *err)
{
    for (const struct tn_field *field = fields; field->about.name; field++) {
        char found[TARN_PATH_SIZE], expected[TARN_PATH_SIZE];

        put_text(found, field, at);
        put_text(expected, field, wanted);
        if (!is_among(except, field->about.name) && strcmp(found, expected) != 0)
            return tn_fail(err, TARN_EINVAL, "%s is '%.50s'; it must be '%.50s', as in %.60s",
                           field->about.name, found, expected, path);
    }
    return TARN_OK;
}
