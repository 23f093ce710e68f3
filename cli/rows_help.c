/* SPDX-License-Identifier: MIT */
#include "rows_help.h"

#include <stdio.h>
#include <string.h>

#include "words.h"

/* "rounds=1..64", "similarity=map|polynomial|rbf" */
static void option_range(char *text, size_t size, const tarn_option_info *option)
{
    int used = snprintf(text, size, ":%s=", option->name);

    if (!option->choices)
        snprintf(text + used, size - (size_t)used, "%.7g..%.7g", option->minimum,
                 option->maximum);
    for (size_t i = 0; option->choices && option->choices[i] && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%s", i ? "|" : "",
                         option->choices[i]);
}

static void print_row(const tarn_table_row *row, int width)
{
    char text[128];

    printf("  %-*s ", width, row->name);
    words_wrap(stdout, row->help, width + 3);
    for (const tarn_option_info *option = row->options; option->name; option++) {
        option_range(text, sizeof text, option);
        printf("    %-32s ", text);
        if (option->choices)
            snprintf(text, sizeof text, "%s [%s]", option->help,
                     option->choices[(size_t)option->initial]);
        else
            snprintf(text, sizeof text, "%s [%g]", option->help, option->initial);
        words_wrap(stdout, text, 37);
    }
}

void rows_help(const char *title, const tarn_table_row *(*row)(size_t index))
{
    int width = 10;

    printf("\n%s:\n", title);
    for (size_t i = 0; row(i); i++) {
        const int length = (int)strlen(row(i)->name);

        width = length > width ? length : width;
    }
    for (size_t i = 0; row(i); i++)
        print_row(row(i), width);
}
