/* SPDX-License-Identifier: MIT */
#include "help.h"

#include <string.h>

#include "words.h"

const struct help_item help_of_help = {
    .kind = HELP_OPTION,
    .dashes = "",
    .name = "-h, --help",
    .help = "print this help and exit",
};

/* ---- The walk ----------------------------------------------------------- */

static bool has_operands(const struct command *command)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            return true;
    return false;
}

static bool is_in_a_group(const struct command *command, const struct args_option *option)
{
    for (const struct args_group *group = command->groups; group && group->title; group++)
        if (words_have(group->options, option->name))
            return true;
    return false;
}

static void put_option(FILE *out, const struct args_option *option, const struct help_format *f)
{
    f->item(out, &(struct help_item){
                     .kind = args_is_operand(option) ? HELP_OPERAND : HELP_OPTION,
                     .dashes = args_dashes(option),
                     .name = option->name,
                     .argument = option->argument,
                     .help = option->help,
                     .initial = option->initial,
                 });
}

static void indent(FILE *out, bool deeper, const struct help_format *f)
{
    if (f->indent)
        f->indent(out, deeper);
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
                put_option(out, option, f);
        at += length;
    }
}

/* ":rounds=1..64", ":similarity=map|polynomial|rbf" */
static void put_row_option(FILE *out, const tarn_option_info *option,
                           const struct help_format *f)
{
    char range[256], initial[32];
    size_t used = (size_t)snprintf(range, sizeof range, ":%s=", option->name);

    snprintf(initial, sizeof initial, "%g", option->initial);
    if (!option->choices)
        snprintf(range + used, sizeof range - used, "%.7g..%.7g", option->minimum,
                 option->maximum);
    for (size_t i = 0; option->choices && option->choices[i] && used < sizeof range; i++)
        used += (size_t)snprintf(range + used, sizeof range - used, "%s%s", i ? "|" : "",
                                 option->choices[i]);
    f->item(out,
            &(struct help_item){
                .kind = HELP_ROW_OPTION,
                .dashes = "",
                .name = range,
                .help = option->help,
                .initial = option->choices ? option->choices[(size_t)option->initial] : initial,
            });
}

static void put_row(FILE *out, const tarn_table_row *row, int width,
                    const struct help_format *f)
{
    f->item(out, &(struct help_item){.kind = HELP_ROW,
                                     .dashes = "",
                                     .name = row->name,
                                     .help = row->help,
                                     .width = width});
    if (!row->options || !row->options->name)
        return;
    indent(out, true, f);
    for (const tarn_option_info *option = row->options; option->name; option++)
        put_row_option(out, option, f);
    indent(out, false, f);
}

static void put_table(FILE *out, const struct args_table *table, const struct help_format *f)
{
    int width = 10;

    for (size_t i = 0; table->row(i); i++)
        if ((int)strlen(table->row(i)->name) > width)
            width = (int)strlen(table->row(i)->name);
    f->title(out, table->title);
    indent(out, true, f);
    for (size_t i = 0; table->row(i); i++)
        put_row(out, table->row(i), width, f);
    indent(out, false, f);
}

void help_body(FILE *out, const struct command *command, const struct help_format *f)
{
    if (has_operands(command))
        f->title(out, NULL);
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            put_option(out, option, f);
    for (const struct args_group *group = command->groups; group && group->title; group++)
        put_group(out, command, group, f);
    if (command->groups || f->options_title)
        f->title(out, command->groups ? "other options" : f->options_title);
    for (const struct args_option *option = command->options; option->name; option++)
        if (!args_is_operand(option) && !is_in_a_group(command, option))
            put_option(out, option, f);
    f->item(out, &help_of_help);
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

/* The description begins at a column, on the next line if the name is too long. */
static void print_item(FILE *out, const struct help_item *item)
{
    const int columns[] = {26, 26, item->width + 3, 37}, column = columns[item->kind];
    const bool is_deeper = item->kind == HELP_ROW_OPTION;
    char text[512];
    const int used =
        fprintf(out, "%s%s%s%s%s", is_deeper ? "    " : "  ", item->dashes, item->name,
                item->argument ? " " : "", item->argument ? item->argument : "");

    snprintf(text, sizeof text, "%s%s%s%s", item->help, item->initial ? " [" : "",
             item->initial ? item->initial : "", item->initial ? "]" : "");
    if (used >= column)
        fprintf(out, "\n%*s", column, "");
    else
        fprintf(out, "%*s", column - used, "");
    words_wrap(out, text, column);
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
        .item = print_item,
        .paragraph = print_paragraph,
    };

    print_usage(command);
    words_wrap(stdout, command->help, 0);
    help_body(stdout, command, &format);
    words_examples(stdout, command->examples);
}
