/* SPDX-License-Identifier: MIT */
#include "task/numbers.h"

#include <stdio.h>
#include <string.h>

#include "task/task.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Digits of a number below `most`, at text + *at; moves past them. */
static bool read_symbol(int32_t *symbol, size_t most, const char *text, size_t length,
                        size_t *at)
{
    const size_t begin = *at;
    size_t value = 0;

    for (; *at < length && text[*at] >= '0' && text[*at] <= '9' && value < most; ++*at)
        value = 10 * value + (size_t)(text[*at] - '0');
    *symbol = (int32_t)value;
    return *at > begin && value < most && (*at == length || is_blank(text[*at]));
}

tarn_status tn_numbers_encode(int32_t *symbols, size_t *count, const char *text, size_t length,
                              size_t most, tarn_error *err)
{
    for (size_t at = 0;;) {
        while (at < length && is_blank(text[at]))
            at++;
        if (at == length)
            return TARN_OK;
        const size_t begin = at;

        if (!read_symbol(&symbols[*count], most, text, length, &at))
            return tn_fail(err, TARN_EINVAL,
                           "prompt: '%.*s' at byte %zu is not a symbol; it must be a list of "
                           "numbers from 0 to %zu, separated by spaces",
                           (int)tn_min(length - begin, 20), text + begin, begin, most - 1);
        ++*count;
    }
}

size_t tn_number_decode(char *text, int32_t symbol)
{
    char digits[TN_TASK_TEXT];
    const int length = snprintf(digits, sizeof digits, "%d ", symbol);

    memcpy(text, digits, (size_t)length);
    return (size_t)length;
}
