/* SPDX-License-Identifier: MIT */
#include "rows_help.h"

#include <stdio.h>
#include <string.h>

#include "words.h"

void rows_range(char *text, size_t size, const tarn_option_info *option)
{
    int used = snprintf(text, size, ":%s=", option->name);

    if (!option->choices)
        snprintf(text + used, size - (size_t)used, "%.7g..%.7g", option->minimum,
                 option->maximum);
    for (size_t i = 0; option->choices && option->choices[i] && (size_t)used < size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%s", i ? "|" : "",
                         option->choices[i]);
}

void rows_option_help(char *text, size_t size, const tarn_option_info *option)
{
    if (option->choices)
        snprintf(text, size, "%s [%s]", option->help, option->choices[(size_t)option->initial]);
    else
        snprintf(text, size, "%s [%g]", option->help, option->initial);
}

static void print_row(const tarn_table_row *row, int width)
{
    char text[256];

    printf("  %-*s ", width, row->name);
    words_wrap(stdout, row->help, width + 3);
    for (const tarn_option_info *option = row->options; option->name; option++) {
        rows_range(text, sizeof text, option);
        printf("    %-32s ", text);
        rows_option_help(text, sizeof text, option);
        words_wrap(stdout, text, 37);
    }
}

void rows_help(const char *title, const tarn_table_row *(*row)(size_t index))
{
    char text[256];
    int width = 10;

    snprintf(text, sizeof text, "%s:", title);
    printf("\n");
    words_wrap(stdout, text, 0);
    for (size_t i = 0; row(i); i++) {
        const int length = (int)strlen(row(i)->name);

        width = length > width ? length : width;
    }
    for (size_t i = 0; row(i); i++)
        print_row(row(i), width);
}
