/* SPDX-License-Identifier: MIT */
#include "file/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/texts.h"
#include "base/utf8.h"

struct parser {
    const char *begin, *at, *end;
    struct tn_json *json;
    char *next; /* free memory for texts */
    size_t depth;
    tarn_status status; /* of the first thing that is wrong; what comes after it is not read */
    tarn_error *err;
};

static bool refuse_as(struct parser *p, tarn_status status, const char *what)
{
    if (p->status == TARN_OK)
        p->status = tn_fail(p->err, status, "byte %zu: %s", (size_t)(p->at - p->begin), what);
    return false;
}

static bool refuse(struct parser *p, const char *what)
{
    return refuse_as(p, TARN_EFORMAT, what);
}

static char peek(const struct parser *p)
{
    return p->at < p->end ? *p->at : '\0';
}

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end &&
           (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool takes(struct parser *p, const char *word)
{
    const size_t length = strlen(word);

    skip_blanks(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* ---- Values ------------------------------------------------------------- */

/* The place of a new one; SIZE_MAX: no memory. */
static size_t add(struct parser *p, enum tn_json_kind kind)
{
    struct tn_json *const json = p->json;
    struct tn_json_value *const root =
        tn_grow(json->root, &json->room, json->count, sizeof *root);

    if (!root) {
        refuse_as(p, TARN_ENOMEM, "not enough memory for its values");
        return SIZE_MAX;
    }
    json->root = root;
    json->root[json->count] = (struct tn_json_value){.kind = kind, .span = 1};
    return json->count++;
}

/* A text or number, whose bytes end at p->next. */
static bool add_text(struct parser *p, enum tn_json_kind kind, const char *text)
{
    const size_t index = add(p, kind);

    if (index == SIZE_MAX)
        return false;
    p->json->root[index].text = text;
    p->json->root[index].size = (size_t)(p->next - text);
    *p->next++ = '\0';
    return true;
}

/* ---- Texts -------------------------------------------------------------- */

/* Four hexadecimal digits; false: there are none. */
static bool read_unit(struct parser *p, uint32_t *unit)
{
    *unit = 0;
    for (size_t i = 0; i < 4; i++, p->at++) {
        const char c = peek(p);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;

        if (digit < 0)
            return refuse(p, "\\u without four hexadecimal digits");
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* After "\u". Two units that are surrogates are one character. */
static bool read_escaped_point(struct parser *p, uint32_t *point)
{
    uint32_t low;

    if (!read_unit(p, point))
        return false;
    if (*point == 0)
        return refuse(p, "a zero byte in a text");
    if (*point < 0xd800 || *point >= 0xe000)
        return true;
    if (*point >= 0xdc00 || p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
        return refuse(p, "half of a surrogate pair");
    p->at += 2;
    if (!read_unit(p, &low))
        return false;
    if (low < 0xdc00 || low >= 0xe000)
        return refuse(p, "half of a surrogate pair");
    *point = 0x10000 + ((*point - 0xd800) << 10 | (low - 0xdc00));
    return true;
}

/* After the backslash. */
static bool read_escape(struct parser *p)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char c = peek(p);
    const char *const known = c ? strchr(letters, c) : NULL;
    uint32_t point;

    p->at += p->at < p->end;
    if (known)
        *p->next++ = meanings[known - letters];
    else if (c != 'u')
        return refuse(p, "an unknown escape in a text");
    else if (!read_escaped_point(p, &point))
        return false;
    else
        p->next += tn_utf8_write(p->next, point);
    return true;
}

/* After the first quote. What a text means is never longer than how it is written. */
static bool read_text(struct parser *p)
{
    const char *const text = p->next;

    while (peek(p) != '"') {
        uint32_t point;
        const size_t bytes = tn_utf8_read(&point, p->at, (size_t)(p->end - p->at));

        if (p->at == p->end)
            return refuse(p, "the end of a text is missing");
        if (bytes == 0)
            return refuse(p, "a text is not UTF-8");
        if (point < ' ')
            return refuse(p, "a control character in a text");
        if (point == '\\') {
            p->at++;
            if (!read_escape(p))
                return false;
            continue;
        }
        memcpy(p->next, p->at, bytes);
        p->next += bytes;
        p->at += bytes;
    }
    p->at++;
    return add_text(p, TN_JSON_TEXT, text);
}

/* ---- Numbers ------------------------------------------------------------ */

static size_t copy_digits(struct parser *p)
{
    const char *const from = p->at;

    while (peek(p) >= '0' && peek(p) <= '9')
        *p->next++ = *p->at++;
    return (size_t)(p->at - from);
}

static bool copies(struct parser *p, const char *one_of)
{
    if (!peek(p) || !strchr(one_of, peek(p)))
        return false;
    *p->next++ = *p->at++;
    return true;
}

static bool fits(const char *text, size_t length, enum tn_json_kind kind)
{
    const struct tn_json_value value = {.text = text, .kind = kind, .size = length};
    int64_t whole;
    double real;

    return kind == TN_JSON_WHOLE ? tn_json_whole(&value, &whole)
                                 : tn_json_number(&value, &real) && isfinite(real);
}

/* -12.5e-3: no leading zero, and digits after point and exponent. */
static bool read_number(struct parser *p)
{
    const char *const text = p->next;
    enum tn_json_kind kind = TN_JSON_WHOLE;

    copies(p, "-");
    const char *const first = p->next;
    const size_t digits = copy_digits(p);

    if (digits == 0 || (digits > 1 && *first == '0'))
        return refuse(p, "not a JSON value");
    if (copies(p, ".")) {
        kind = TN_JSON_REAL;
        if (copy_digits(p) == 0)
            return refuse(p, "a number without digits after its point");
    }
    if (copies(p, "eE")) {
        kind = TN_JSON_REAL;
        copies(p, "+-");
        if (copy_digits(p) == 0)
            return refuse(p, "a number without digits in its exponent");
    }
    *p->next = '\0';
    if (!fits(text, (size_t)(p->next - text), kind))
        return refuse(p, "a number that is too long or too large");
    return add_text(p, kind, text);
}

/* ---- Arrays and objects ------------------------------------------------- */

static bool read_value(struct parser *p);

static bool read_array(struct parser *p, size_t index)
{
    size_t count = 0;

    if (takes(p, "]"))
        return true;
    do {
        if (!read_value(p))
            return false;
        count++;
    } while (takes(p, ","));
    if (!takes(p, "]"))
        return refuse(p, "',' or ']' expected");
    p->json->root[index].size = count;
    return true;
}

/* Equal keys are neighbours once they are sorted. */
static bool check_keys(struct parser *p, const struct tn_json_value *object)
{
    const struct tn_json_value **const keys = malloc((object->size + 1) * sizeof *keys);
    const struct tn_json_value *key = object + 1;
    bool differ = true;

    if (!keys)
        return refuse_as(p, TARN_ENOMEM, "not enough memory for its keys");
    for (size_t i = 0; i < object->size; i++, key = tn_json_next(key + 1))
        keys[i] = key;
    if (object->size > 0)
        qsort(keys, object->size, sizeof *keys, tn_compare_named);
    for (size_t i = 1; i < object->size && differ; i++)
        differ = strcmp(keys[i - 1]->text, keys[i]->text) != 0;
    free(keys);
    return differ || refuse(p, "an object has duplicate keys");
}

static bool read_pair(struct parser *p)
{
    if (!takes(p, "\""))
        return refuse(p, "a key in quotes expected");
    if (!read_text(p))
        return false;
    if (!takes(p, ":"))
        return refuse(p, "':' expected after a key");
    return read_value(p);
}

static bool read_object(struct parser *p, size_t index)
{
    size_t count = 0;

    if (takes(p, "}"))
        return true;
    do {
        if (!read_pair(p))
            return false;
        count++;
    } while (takes(p, ","));
    if (!takes(p, "}"))
        return refuse(p, "',' or '}' expected");
    p->json->root[index].size = count;
    return check_keys(p, &p->json->root[index]);
}

static bool read_nested(struct parser *p, enum tn_json_kind kind)
{
    const size_t index = add(p, kind);

    if (index == SIZE_MAX)
        return false;
    if (++p->depth > TN_JSON_DEPTH)
        return refuse(p, "nested beyond the greatest depth");
    if (!(kind == TN_JSON_ARRAY ? read_array(p, index) : read_object(p, index)))
        return false;
    p->json->root[index].span = p->json->count - index;
    p->depth--;
    return true;
}

static bool read_value(struct parser *p)
{
    if (takes(p, "{"))
        return read_nested(p, TN_JSON_OBJECT);
    if (takes(p, "["))
        return read_nested(p, TN_JSON_ARRAY);
    if (takes(p, "\""))
        return read_text(p);
    if (takes(p, "null"))
        return add(p, TN_JSON_NULL) != SIZE_MAX;
    if (takes(p, "true"))
        return add(p, TN_JSON_TRUE) != SIZE_MAX;
    if (takes(p, "false"))
        return add(p, TN_JSON_FALSE) != SIZE_MAX;
    return read_number(p);
}

/* ---- Life --------------------------------------------------------------- */

tarn_status tn_json_parse(struct tn_json *json, const char *text, size_t length,
                          tarn_error *err)
{
    struct parser p = {.begin = text, .at = text, .end = text + length, .json = json};

    p.err = err;
    *json = (struct tn_json){.texts = malloc(length + 1)};
    p.next = json->texts;
    if (!json->texts)
        return tn_fail(err, TARN_ENOMEM, "byte 0: not enough memory for %zu bytes", length);
    if (read_value(&p)) {
        skip_blanks(&p);
        if (p.at < p.end)
            refuse(&p, "something after the end");
    }
    if (p.status != TARN_OK)
        tn_json_free(json);
    return p.status;
}

void tn_json_free(struct tn_json *json)
{
    free(json->root);
    free(json->texts);
    *json = (struct tn_json){0};
}

/* ---- Questions ---------------------------------------------------------- */

const struct tn_json_value *tn_json_get(const struct tn_json_value *object, const char *key)
{
    const size_t pairs = object && object->kind == TN_JSON_OBJECT ? object->size : 0;
    const struct tn_json_value *at = pairs > 0 ? object + 1 : NULL;

    for (size_t i = 0; i < pairs; i++, at = tn_json_next(at + 1))
        if (strcmp(at->text, key) == 0)
            return at + 1;
    return NULL;
}

const char *tn_json_text(const struct tn_json_value *object, const char *key)
{
    const struct tn_json_value *const value = tn_json_get(object, key);

    return value && value->kind == TN_JSON_TEXT ? value->text : NULL;
}

static bool is_listed(const char *names, const char *name)
{
    for (size_t length; *names; names += length + strspn(names + length, " ")) {
        length = strcspn(names, " ");
        if (strlen(name) == length && memcmp(names, name, length) == 0)
            return true;
    }
    return false;
}

const char *tn_json_unknown(const struct tn_json_value *object, const char *names)
{
    const struct tn_json_value *key = object + 1;

    for (size_t i = 0; i < object->size; i++, key = tn_json_next(key + 1))
        if (!is_listed(names, key->text))
            return key->text;
    return NULL;
}

bool tn_json_whole(const struct tn_json_value *value, int64_t *number)
{
    uint64_t sum = 0;

    if (!value || value->kind != TN_JSON_WHOLE)
        return false;
    const bool negative = *value->text == '-';
    const uint64_t most = negative ? (uint64_t)1 << 63 : INT64_MAX;

    for (const char *digit = value->text + negative; *digit; digit++) {
        const uint64_t one = (uint64_t)(*digit - '0');

        if (sum > (most - one) / 10)
            return false;
        sum = 10 * sum + one;
    }
    *number = negative ? (int64_t)(0 - sum) : (int64_t)sum;
    return true;
}

bool tn_json_number(const struct tn_json_value *value, double *number)
{
    return value && (value->kind == TN_JSON_WHOLE || value->kind == TN_JSON_REAL) &&
           tn_number_read(number, value->text, value->size);
}
