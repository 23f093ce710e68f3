/* SPDX-License-Identifier: MIT */
#include "file/text_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Room for n more bytes and a zero byte. */
static bool grow(struct tn_text *text, size_t n)
{
    if (text->failed || n >= PTRDIFF_MAX - text->used - 1) {
        text->failed = true;
        return false;
    }
    if (text->used + n + 1 <= text->room)
        return true;
    const size_t room = tn_max(text->used + n + 1, text->room + text->room / 2 + 64);
    char *const data = realloc(text->data, room);

    text->failed = !data;
    if (data) {
        text->data = data;
        text->room = room;
    }
    return !text->failed;
}

void tn_text_put(struct tn_text *text, const void *bytes, size_t n)
{
    if (n == 0 || !grow(text, n))
        return;
    memcpy(text->data + text->used, bytes, n);
    text->used += n;
}

__attribute__((format(printf, 2, 0))) static void print(struct tn_text *text,
                                                        const char *format, va_list args)
{
    va_list again;

    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);

    if (length >= 0 && grow(text, (size_t)length)) {
        vsnprintf(text->data + text->used, (size_t)length + 1, format, again);
        text->used += (size_t)length;
    }
    va_end(again);
}

void tn_text_print(struct tn_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(text, format, args);
    va_end(args);
}

char *tn_text_new(const char *format, ...)
{
    struct tn_text text = {0};
    va_list args;

    va_start(args, format);
    print(&text, format, args);
    va_end(args);
    return text.data;
}

void tn_text_utf8(struct tn_text *text, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t point;
        const size_t length = tn_utf8_read(&point, bytes + i, n - i);

        if (length > 0 && point > 0)
            tn_text_put(text, bytes + i, length);
        else
            tn_text_put(text, "\xef\xbf\xbd", 3);
        i += length > 0 ? length : 1;
    }
}

const char *tn_text_end(struct tn_text *text)
{
    if (!grow(text, 0))
        return NULL;
    text->data[text->used] = '\0';
    return text->data;
}

void tn_text_free(struct tn_text *text)
{
    free(text->data);
    *text = (struct tn_text){0};
}

/* ---- Base64 ------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void tn_text_base64(struct tn_text *text, const void *bytes, size_t n)
{
    const unsigned char *const in = bytes;

    if (n > PTRDIFF_MAX / 2 || !grow(text, (n + 2) / 3 * 4)) {
        text->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t three = (uint32_t)in[i] << 16 |
                               (uint32_t)(i + 1 < n ? in[i + 1] : 0) << 8 |
                               (uint32_t)(i + 2 < n ? in[i + 2] : 0);

        for (size_t k = 0; k < 4; k++)
            text->data[text->used++] = i + k <= n ? digits[three >> (18 - 6 * k) & 63] : '=';
    }
}

/* 64: not a digit. */
static uint32_t value_of(char digit)
{
    const uint32_t c = (unsigned char)digit;

    return c - 'A' < 26   ? c - 'A'
           : c - 'a' < 26 ? c - 'a' + 26
           : c - '0' < 10 ? c - '0' + 52
           : c == '+'     ? 62
           : c == '/'     ? 63
                          : 64;
}

bool tn_text_from_base64(struct tn_text *text, const char *base64, size_t n)
{
    uint32_t bits = 0;

    while (n > 0 && base64[n - 1] == '=' && n % 4 != 1)
        n--;
    if (n % 4 == 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t value = value_of(base64[i]);

        if (value == 64)
            return false;
        bits = bits << 6 | value;
        if (i % 4 != 0)
            tn_text_put(text, &(unsigned char){(unsigned char)(bits >> (6 - 2 * (i % 4)))}, 1);
    }
    return true;
}
