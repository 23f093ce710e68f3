/* SPDX-License-Identifier: MIT */
#include "file/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

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
    tn_text_put(&w->out, escape, strlen(escape));
}

static void put_quoted(struct tn_json_writer *w, const char *text)
{
    size_t length = strlen(text), bytes = 0;

    tn_text_put(&w->out, "\"", 1);
    for (; length > 0; text += bytes, length -= bytes) {
        uint32_t point;

        if ((bytes = tn_utf8_read(&point, text, length)) == 0) {
            w->invalid = !w->out.failed;
            w->out.failed = true;
            return;
        }
        if (point < ' ' || point == '"' || point == '\\')
            put_escaped(w, *text);
        else
            tn_text_put(&w->out, text, bytes);
    }
    tn_text_put(&w->out, "\"", 1);
}

/* What comes before every value. */
static void put_key(struct tn_json_writer *w, const char *key)
{
    if (w->comma)
        tn_text_put(&w->out, ",", 1);
    w->comma = true;
    if (key) {
        put_quoted(w, key);
        tn_text_put(&w->out, ":", 1);
    }
}

static void put_word(struct tn_json_writer *w, const char *key, const char *word)
{
    put_key(w, key);
    tn_text_put(&w->out, word, strlen(word));
}

void tn_json_put_text(struct tn_json_writer *w, const char *key, const char *text)
{
    put_word(w, key, text ? "" : "null");
    if (text)
        put_quoted(w, text);
}

/* A text whose bytes were made for it. */
static void put_made(struct tn_json_writer *w, const char *key, struct tn_text *made)
{
    tn_json_put_text(w, key, tn_text_end(made));
    w->out.failed |= made->failed;
    tn_text_free(made);
}

void tn_json_put_bytes(struct tn_json_writer *w, const char *key, const char *bytes, size_t n)
{
    struct tn_text text = {0};

    tn_text_utf8(&text, bytes, n);
    put_made(w, key, &text);
}

void tn_json_put_base64(struct tn_json_writer *w, const char *key, const void *bytes, size_t n)
{
    struct tn_text text = {0};

    tn_text_base64(&text, bytes, n);
    put_made(w, key, &text);
}

/* ---- Numbers ------------------------------------------------------------ */

void tn_json_put_whole(struct tn_json_writer *w, const char *key, int64_t number)
{
    char text[TN_NUMBER_TEXT];

    snprintf(text, sizeof text, "%" PRId64, number);
    put_word(w, key, text);
}

/* A number that has a fraction shows it, 2.0, and an exponent is as short as it can be: 1e-7.
 */
static void put_real(struct tn_text *out, const char *text)
{
    const char *const exponent = strchr(text, 'e');
    const size_t mantissa = exponent ? (size_t)(exponent - text) : strlen(text);

    tn_text_put(out, text, mantissa);
    if (!exponent && !strchr(text, '.'))
        tn_text_put(out, ".0", 2);
    if (!exponent)
        return;
    const char *digits = exponent + 1;

    tn_text_put(out, *digits == '-' ? "e-" : "e", *digits == '-' ? 2 : 1);
    digits += strspn(digits, "+-0");
    tn_text_put(out, digits, strlen(digits));
}

void tn_json_put_number(struct tn_json_writer *w, const char *key, double number, int digits)
{
    char text[TN_NUMBER_TEXT];

    put_word(w, key, isfinite(number) ? "" : "null");
    if (!isfinite(number))
        return;
    if (digits > 0)
        tn_number_rounded(text, number, digits);
    else
        tn_number_text(text, number);
    put_real(&w->out, text);
}

void tn_json_put_bool(struct tn_json_writer *w, const char *key, bool truth)
{
    put_word(w, key, truth ? "true" : "false");
}

/* ---- Brackets ----------------------------------------------------------- */

void tn_json_open(struct tn_json_writer *w, const char *key, char bracket)
{
    put_key(w, key);
    tn_text_put(&w->out, &bracket, 1);
    w->comma = false;
}

void tn_json_close(struct tn_json_writer *w, char bracket)
{
    tn_text_put(&w->out, &bracket, 1);
    w->comma = true;
}

tarn_status tn_json_writer_end(struct tn_json_writer *w, char **text, const char *what,
                               tarn_error *err)
{
    *text = NULL;
    if (tn_text_end(&w->out)) {
        *text = w->out.data;
        *w = (struct tn_json_writer){0};
        return TARN_OK;
    }
    tn_text_free(&w->out);
    return w->invalid ? tn_fail(err, TARN_EINVAL, "%s: contains text that is not UTF-8", what)
                      : tn_fail(err, TARN_ENOMEM, "not enough memory for %s", what);
}
