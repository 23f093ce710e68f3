/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <string.h>

#include "words.h"

const char help_of_help[] = "print this help and exit";

/* ---- The walk ----------------------------------------------------------- */

static bool has_operands(const struct command *command)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            return true;
    return false;
}

/* Whether `name` is one of the words of a list. */
static bool lists(const char *list, const char *name)
{
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && strchr(" ", at[strlen(name)]))
            return true;
    return false;
}

static bool is_in_a_group(const struct command *command, const struct args_option *option)
{
    for (const struct args_group *group = command->groups; group && group->title; group++)
        if (lists(group->options, option->name))
            return true;
    return false;
}

/* In the order of the group's list. */
static void put_group(FILE *out, const struct command *command, const struct args_group *group,
                      const struct help_format *f)
{
    f->title(out, group->title);
    for (const char *at = group->options; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");

        for (const struct args_option *option = command->options; option->name; option++)
            if (!args_is_operand(option) && strlen(option->name) == length &&
                strncmp(option->name, at, length) == 0)
                f->option(out, option);
        at += length;
    }
}

/* ":rounds=1..64", ":similarity=map|polynomial|rbf", and the default behind the help. */
static void put_row_option(FILE *out, const tarn_option_info *option,
                           const struct help_format *f)
{
    char range[256], help[256];
    size_t used = (size_t)snprintf(range, sizeof range, ":%s=", option->name);

    if (!option->choices)
        snprintf(range + used, sizeof range - used, "%.7g..%.7g", option->minimum,
                 option->maximum);
    for (size_t i = 0; option->choices && option->choices[i] && used < sizeof range; i++)
        used += (size_t)snprintf(range + used, sizeof range - used, "%s%s", i ? "|" : "",
                                 option->choices[i]);
    if (option->choices)
        snprintf(help, sizeof help, "%s [%s]", option->help,
                 option->choices[(size_t)option->initial]);
    else
        snprintf(help, sizeof help, "%s [%g]", option->help, option->initial);
    f->row_option(out, range, help);
}

static void put_table(FILE *out, const struct args_table *table, const struct help_format *f)
{
    int width = 10;

    for (size_t i = 0; table->row(i); i++)
        if ((int)strlen(table->row(i)->name) > width)
            width = (int)strlen(table->row(i)->name);
    f->title(out, table->title);
    f->indent(out, true);
    for (size_t i = 0; table->row(i); i++) {
        const tarn_option_info *option = table->row(i)->options;

        f->row(out, table->row(i), width);
        if (!option->name)
            continue;
        f->indent(out, true);
        for (; option->name; option++)
            put_row_option(out, option, f);
        f->indent(out, false);
    }
    f->indent(out, false);
}

void help_body(FILE *out, const struct command *command, const struct help_format *f)
{
    if (has_operands(command))
        f->title(out, NULL);
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            f->option(out, option);
    for (const struct args_group *group = command->groups; group && group->title; group++)
        put_group(out, command, group, f);
    if (command->groups || f->options_title)
        f->title(out, command->groups ? "other options" : f->options_title);
    for (const struct args_option *option = command->options; option->name; option++)
        if (!args_is_operand(option) && !is_in_a_group(command, option))
            f->option(out, option);
    f->help_option(out);
    for (const struct args_table *table = command->tables; table && table->row; table++)
        if (table->title)
            put_table(out, table, f);
    if (command->notes)
        f->paragraph(out, command->notes);
}

/* ---- On a terminal ------------------------------------------------------ */

static void print_title(FILE *out, const char *title)
{
    char text[256];

    fputc('\n', out);
    if (!title)
        return;
    snprintf(text, sizeof text, "%s:", title);
    words_wrap(out, text, 0);
}

static void print_option(FILE *out, const struct args_option *option)
{
    char text[512];
    const int column = 26;
    const int used =
        fprintf(out, "  %s%s%s%s", args_dashes(option), option->name,
                option->argument ? " " : "", option->argument ? option->argument : "");

    snprintf(text, sizeof text, "%s%s%s%s", option->help, option->initial ? " [" : "",
             option->initial ? option->initial : "", option->initial ? "]" : "");
    if (used >= column)
        fprintf(out, "\n%*s", column, "");
    else
        fprintf(out, "%*s", column - used, "");
    words_wrap(out, text, column);
}

static void print_help_option(FILE *out)
{
    fprintf(out, "  -h, --help              %s\n", help_of_help);
}

static void print_indent(FILE *out, bool deeper)
{
    (void)out;
    (void)deeper;
}

static void print_row(FILE *out, const tarn_table_row *row, int width)
{
    fprintf(out, "  %-*s ", width, row->name);
    words_wrap(out, row->help, width + 3);
}

static void print_row_option(FILE *out, const char *range, const char *help)
{
    fprintf(out, "    %-32s ", range);
    words_wrap(out, help, 37);
}

static void print_paragraph(FILE *out, const char *text)
{
    fputc('\n', out);
    words_wrap(out, text, 0);
}

static void print_usage(const struct command *command)
{
    printf("usage: %s", command->name);
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option)) {
            printf(option->minimum ? " %s" : " [%s]", option->name);
            printf("%s", option->type == ARGS_OPERANDS ? "..." : "");
        }
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_required(option) && !args_is_operand(option))
            printf(" %s%s %s", args_dashes(option), option->name, option->argument);
    printf(" [options]\n\n");
}

void help_print(const struct command *command)
{
    static const struct help_format format = {
        .options_title = "options",
        .title = print_title,
        .option = print_option,
        .help_option = print_help_option,
        .indent = print_indent,
        .row = print_row,
        .row_option = print_row_option,
        .paragraph = print_paragraph,
    };

    print_usage(command);
    words_wrap(stdout, command->help, 0);
    help_body(stdout, command, &format);
    words_examples(stdout, command->examples);
}
