/* SPDX-License-Identifier: MIT */
#include "json_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

void json_put_text(json_t *object, const char *name, const char *text)
{
    json_object_set_new(object, name, text ? json_string(text) : json_null());
}

void json_put_count(json_t *object, const char *name, size_t count)
{
    json_object_set_new(object, name, json_integer((json_int_t)count));
}

void json_put_number(json_t *object, const char *name, double number)
{
    json_object_set_new(object, name, isfinite(number) ? json_real(number) : json_null());
}

void json_put_bool(json_t *object, const char *name, int truth)
{
    json_object_set_new(object, name, json_boolean(truth));
}

/* Bytes of the UTF-8 character at `text`, as jansson checks it; 0: not valid. */
static size_t character(const char *text, size_t n)
{
    const unsigned char lead = (unsigned char)*text;
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    json_t *const trial = bytes <= n ? json_stringn(text, bytes) : NULL;

    json_decref(trial);
    return trial ? bytes : 0;
}

void json_put_bytes(json_t *object, const char *name, const char *bytes, size_t n)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *const text = allocate(3 * n + 1, 1, "a text of %zu bytes", n);
    size_t used = 0;

    for (size_t i = 0; i < n;) {
        const size_t whole = character(bytes + i, n - i);

        memcpy(text + used, whole ? bytes + i : replacement, whole ? whole : 3);
        used += whole ? whole : 3;
        i += whole ? whole : 1;
    }
    json_object_set_new(object, name, json_stringn(text, used));
    free(text);
}

void json_write_line(json_t *object, FILE *out)
{
    json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(7));
    fputc('\n', out);
    json_decref(object);
}

void json_print_line(json_t *object)
{
    json_write_line(object, stdout);
    fflush(stdout);
}
