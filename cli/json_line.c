/* SPDX-License-Identifier: MIT */
#include "json_line.h"

#include <math.h>
#include <stdio.h>

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

void json_print_line(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(7));
    printf("\n");
    fflush(stdout);
    json_decref(object);
}
