/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char point[] = ".";

/* What stands between 0 and 5 in a half: one character, which may be several bytes. */
static void point_here(char here[TN_NUMBER_TEXT])
{
    char half[TN_NUMBER_TEXT];

    snprintf(half, sizeof half, "%.1f", 0.5);
    snprintf(here, TN_NUMBER_TEXT, "%.*s", (int)strlen(half) - 2, half + 1);
}

bool tn_number_point(char out[TN_NUMBER_TEXT], const char *text, const char *from,
                     const char *to)
{
    const char *const at = strstr(text, from);
    const int before = (int)(at ? (size_t)(at - text) : strlen(text));
    const int length = snprintf(out, TN_NUMBER_TEXT, "%.*s%s%s", before, text, at ? to : "",
                                at ? at + strlen(from) : "");

    return length >= 0 && length < TN_NUMBER_TEXT;
}

bool tn_number_read(double *number, const char *text, size_t length)
{
    char digits[TN_NUMBER_TEXT], here[TN_NUMBER_TEXT], local[TN_NUMBER_TEXT], *end;

    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (strspn(digits, "0123456789+-.eE") != length)
        return false;
    point_here(here);
    if (!tn_number_point(local, digits, point, here))
        return false;
    *number = strtod(local, &end);
    return end != local && *end == '\0';
}

void tn_number_rounded(char text[TN_NUMBER_TEXT], double number, int digits)
{
    char here[TN_NUMBER_TEXT], local[TN_NUMBER_TEXT];

    snprintf(local, sizeof local, "%.*g", digits, number);
    point_here(here);
    tn_number_point(text, local, here, point); /* fits: 25 bytes at most, and no point longer */
}

void tn_number_text(char text[TN_NUMBER_TEXT], double number)
{
    double again;

    for (int digits = 15; digits <= 17; digits++) {
        tn_number_rounded(text, number, digits);
        if (tn_number_read(&again, text, strlen(text)) && again == number)
            break;
    }
}

/* By the bits of the exponent, in a loop without branches, which is not slower than a copy. */
bool tn_all_finite(const void *numbers, size_t count)
{
    const uint32_t exponent = 0x7f800000;
    const char *const from = numbers;
    uint32_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, from + i * sizeof bits, sizeof bits);
        wrong |= (bits & exponent) == exponent;
    }
    return wrong == 0;
}
