/* SPDX-License-Identifier: MIT */
#include "file/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

/* ---- Bytes -------------------------------------------------------------- */

static bool make_room(struct tn_json_writer *w, size_t bytes)
{
    if (w->status != TARN_OK)
        return false;
    if (bytes < w->room - w->used) /* one is for the zero byte */
        return true;
    const size_t room = 2 * (w->used + bytes) + 64;
    char *const text = realloc(w->text, room);

    if (!text) {
        w->status = TARN_ENOMEM;
        return false;
    }
    w->text = text;
    w->room = room;
    return true;
}

static void put(struct tn_json_writer *w, const char *bytes, size_t count)
{
    if (!make_room(w, count))
        return;
    memcpy(w->text + w->used, bytes, count);
    w->used += count;
}

static void begin_value(struct tn_json_writer *w)
{
    if (w->comma)
        put(w, ",", 1);
    w->comma = true;
}

static void put_word(struct tn_json_writer *w, const char *word)
{
    begin_value(w);
    put(w, word, strlen(word));
}

/* ---- Texts -------------------------------------------------------------- */

static void put_escaped(struct tn_json_writer *w, char c)
{
    static const char letters[] = "\"\\bfnrt", meanings[] = "\"\\\b\f\n\r\t";
    const char *const known = strchr(meanings, c);
    char escape[8];

    if (known)
        snprintf(escape, sizeof escape, "\\%c", letters[known - meanings]);
    else
        snprintf(escape, sizeof escape, "\\u%04X", (unsigned)c);
    put(w, escape, strlen(escape));
}

static void put_quoted(struct tn_json_writer *w, const char *text)
{
    size_t length = strlen(text), bytes = 0;

    put(w, "\"", 1);
    for (; length > 0; text += bytes, length -= bytes) {
        uint32_t point;

        if ((bytes = tn_utf8_read(&point, text, length)) == 0) {
            w->status = w->status == TARN_OK ? TARN_EINVAL : w->status;
            return;
        }
        if (point < ' ' || point == '"' || point == '\\')
            put_escaped(w, *text);
        else
            put(w, text, bytes);
    }
    put(w, "\"", 1);
}

void tn_json_put_text(struct tn_json_writer *w, const char *text)
{
    if (!text) {
        put_word(w, "null");
        return;
    }
    begin_value(w);
    put_quoted(w, text);
}

void tn_json_key(struct tn_json_writer *w, const char *key)
{
    tn_json_put_text(w, key);
    put(w, ":", 1);
    w->comma = false;
}

/* ---- Numbers ------------------------------------------------------------ */

void tn_json_put_whole(struct tn_json_writer *w, int64_t number)
{
    char text[TN_NUMBER_TEXT];

    snprintf(text, sizeof text, "%" PRId64, number);
    put_word(w, text);
}

/* A number that has a fraction shows it, 2.0, and an exponent is as short as it can be: 1e-7.
 */
static void put_real(struct tn_json_writer *w, const char *text)
{
    const char *const exponent = strchr(text, 'e');
    const size_t mantissa = exponent ? (size_t)(exponent - text) : strlen(text);

    begin_value(w);
    put(w, text, mantissa);
    if (!exponent && !strchr(text, '.'))
        put(w, ".0", 2);
    if (!exponent)
        return;
    const char *digits = exponent + 1;
    const bool negative = *digits == '-';

    digits += strspn(digits, "+-0");
    put(w, negative ? "e-" : "e", negative ? 2 : 1);
    put(w, digits, strlen(digits));
}

void tn_json_put_number(struct tn_json_writer *w, double number, int digits)
{
    char text[TN_NUMBER_TEXT];

    if (!isfinite(number)) {
        put_word(w, "null");
        return;
    }
    if (digits > 0)
        tn_number_rounded(text, number, digits);
    else
        tn_number_text(text, number);
    put_real(w, text);
}

void tn_json_put_bool(struct tn_json_writer *w, bool truth)
{
    put_word(w, truth ? "true" : "false");
}

/* ---- Brackets ----------------------------------------------------------- */

void tn_json_open(struct tn_json_writer *w, char bracket)
{
    begin_value(w);
    put(w, &bracket, 1);
    w->comma = false;
}

void tn_json_close(struct tn_json_writer *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = true;
}

void tn_json_writer_free(struct tn_json_writer *w)
{
    free(w->text);
    *w = (struct tn_json_writer){0};
}

tarn_status tn_json_writer_end(struct tn_json_writer *w, char **text, const char *what,
                               tarn_error *err)
{
    *text = NULL;
    make_room(w, 0);
    const tarn_status status = w->status;

    if (status == TARN_OK) {
        w->text[w->used] = '\0';
        *text = w->text;
        w->text = NULL;
    }
    tn_json_writer_free(w);
    if (status == TARN_ENOMEM)
        return tn_fail(err, status, "not enough memory for %s", what);
    if (status != TARN_OK)
        return tn_fail(err, status, "%s: contains text that is not UTF-8", what);
    return TARN_OK;
}
