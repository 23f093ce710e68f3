/* SPDX-License-Identifier: MIT */
/* cmd_manual.c - tarn manual: a man(7) page for the program and one for each of its commands,
 * written from the same tables as --help. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "help.h"

enum { NAME_SIZE = 64 };

/* ---- Text --------------------------------------------------------------- */

/* Dashes become minus signs, so that options can be copied from a terminal. A dot or an
 * apostrophe at the beginning of a line would be a request of man(7). */
static void put(FILE *page, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", page);
    for (; *text; text++)
        switch (*text) {
        case '\\':
            fputs("\\e", page);
            break;
        case '-':
            fputs("\\-", page);
            break;
        case '\n':
            fputc(' ', page);
            break;
        default:
            fputc(*text, page);
        }
}

static void put_line(FILE *page, const char *text)
{
    put(page, text);
    fputc('\n', page);
}

/* "tarn bench peak" is described in tarn-bench(1): the first two words. */
static void page_name(char name[NAME_SIZE], const struct command *command)
{
    char *blank;

    snprintf(name, NAME_SIZE, "%s", command->name);
    if ((blank = strchr(name, ' ')) != NULL) {
        *blank = '-';
        if ((blank = strchr(blank, ' ')) != NULL)
            *blank = '\0';
    }
}

/* ---- Sections ----------------------------------------------------------- */

static void put_head(FILE *page, const struct command *command)
{
    char name[NAME_SIZE], title[NAME_SIZE];

    page_name(name, command);
    for (size_t i = 0; i < sizeof title; i++)
        title[i] = (char)toupper((unsigned char)name[i]);
    fputs(".TH ", page);
    put(page, title);
    fprintf(page, " 1 \"\" \"tarn %s\" \"User Commands\"\n.SH NAME\n", tarn_version());
    put(page, name);
    fputs(" \\- ", page);
    put_line(page, command->summary);
}

/* "--out DIR" on a line of its own. */
static void put_option_name(FILE *page, const struct args_option *option)
{
    fputs(option->argument ? ".BI " : ".B ", page);
    put(page, args_dashes(option));
    put(page, option->name);
    if (option->argument) {
        fputs(" \" ", page);
        put(page, option->argument);
        fputc('"', page);
    }
    fputc('\n', page);
}

static void put_synopsis(FILE *page, const struct command *command)
{
    const struct args_option *option = command->options;

    fputs(".B ", page);
    put_line(page, command->name);
    if (command->rows)
        fputs(".I COMMAND\n", page);
    for (; option && option->name; option++)
        if (args_is_operand(option)) {
            fprintf(page, option->minimum ? ".IR %s%s\n" : ".RI [ %s ]%s\n", option->name,
                    option->type == ARGS_OPERANDS ? " ..." : "");
        } else if (args_is_required(option)) {
            put_option_name(page, option);
        }
    fputs(".RI [ options ]\n", page);
}

static void put_option(FILE *page, const struct args_option *option)
{
    fputs(".TP\n", page);
    if (args_is_operand(option))
        fprintf(page, ".I %s\n", option->name);
    else
        put_option_name(page, option);
    put(page, option->help);
    if (option->initial) {
        fputs(" [", page);
        put(page, option->initial);
        fputc(']', page);
    }
    fputc('\n', page);
}

static void put_help_option(FILE *page)
{
    fprintf(page, ".TP\n.B \\-h, \\-\\-help\n%s\n", help_of_help);
}

/* "Presets:" */
static void put_title(FILE *page, const char *title)
{
    if (!title)
        return;
    fprintf(page, ".PP\n%c", toupper((unsigned char)*title));
    put(page, title + 1);
    fputs(":\n", page);
}

static void put_indent(FILE *page, bool deeper)
{
    fputs(deeper ? ".RS\n" : ".RE\n", page);
}

static void put_row(FILE *page, const tarn_table_row *row, int width)
{
    (void)width;
    fputs(".TP\n.B ", page);
    put_line(page, row->name);
    put_line(page, row->help);
}

static void put_row_option(FILE *page, const char *range, const char *help)
{
    fputs(".TP\n", page);
    put_line(page, range);
    put_line(page, help);
}

static void put_paragraph(FILE *page, const char *text)
{
    fputs(".PP\n", page);
    put_line(page, text);
}

static const struct help_format format = {
    .title = put_title,
    .option = put_option,
    .help_option = put_help_option,
    .indent = put_indent,
    .row = put_row,
    .row_option = put_row_option,
    .paragraph = put_paragraph,
};

static void put_example_lines(FILE *page, const struct command *command)
{
    for (const char *lines = command->examples; *lines; lines++)
        if (*lines == '-')
            fputs("\\-", page);
        else
            fputc(*lines, page);
}

/* ---- Pages -------------------------------------------------------------- */

/* A page has the commands of its group; those of the program have pages of their own. */
static const struct command *on_page(const struct command *group, size_t i)
{
    return group->rows && group != &program ? group->rows[i] : NULL;
}

/* Of all commands of a group, each below the name of the command. */
static void put_group_options(FILE *page, const struct command *group)
{
    const struct command *command;

    for (size_t i = 0; (command = on_page(group, i)) != NULL; i++) {
        fputs(".SS ", page);
        put_line(page, command->name);
        put_line(page, command->help);
        help_body(page, command, &format);
    }
}

static void put_rows(FILE *page, const struct command *const *rows)
{
    for (; *rows; rows++) {
        fputs(".TP\n.B ", page);
        put_line(page, command_word(*rows));
        put_line(page, (*rows)->summary);
    }
}

static void put_program_options(FILE *page)
{
    fputs(".TP\n.B \\-h, \\-\\-help\nprint the commands, or after a command its options, "
          "and exit\n.TP\n.B \\-\\-version\nprint the version and exit\n",
          page);
}

static void put_see_also(FILE *page, const struct command *command)
{
    char name[NAME_SIZE];
    const char *between = "";

    fputs(".SH SEE ALSO\n", page);
    for (size_t i = 0; i == 0 || program.rows[i - 1]; i++) {
        const struct command *const other = i == 0 ? &program : program.rows[i - 1];

        if (strcmp(other->name, command->name) == 0)
            continue;
        page_name(name, other);
        fprintf(page, "%s.BR ", between);
        put(page, name);
        fputs(" (1)", page);
        between = ",\n";
    }
    fputc('\n', page);
}

static void put_page(FILE *page, const struct command *command)
{
    const struct command *below;

    put_head(page, command);
    fputs(".SH SYNOPSIS\n", page);
    put_synopsis(page, command);
    for (size_t i = 0; (below = on_page(command, i)) != NULL; i++) {
        fputs(".br\n", page);
        put_synopsis(page, below);
    }
    fputs(".SH DESCRIPTION\n", page);
    put_line(page, command->help);
    if (command->rows)
        put_rows(page, command->rows);
    fputs(".SH OPTIONS\n", page);
    if (command == &program)
        put_program_options(page);
    else if (command->rows)
        put_group_options(page, command);
    else
        help_body(page, command, &format);
    fputs(".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure, with the reason on standard "
          "error: "
          "a file cannot be read or written or is damaged, or there is not enough memory.\n"
          ".TP\n2\nWrong usage: an argument is not valid, does not fit the others, or names a "
          "model that the command cannot use, such as a text model for completing images.\n",
          page);
    fputs(".SH EXAMPLES\n.EX\n", page);
    put_example_lines(page, command);
    for (size_t i = 0; (below = on_page(command, i)) != NULL; i++)
        put_example_lines(page, below);
    fputs(".EE\n", page);
    put_see_also(page, command);
}

static void write_page(const char *folder, const struct command *command)
{
    char name[NAME_SIZE], path[TARN_PATH_SIZE + NAME_SIZE];

    page_name(name, command);
    if (snprintf(path, sizeof path, "%s/%s.1", folder, name) >= (int)sizeof path)
        errno = ENAMETOOLONG;
    FILE *const page = strlen(folder) < TARN_PATH_SIZE ? fopen(path, "w") : NULL;

    if (page)
        put_page(page, command);
    if (!page || !close_written(page))
        fail("%.200s: %s", path, strerror(errno));
}

static void run(void *values)
{
    const char *const *const folder = values;

    write_page(*folder, &program);
    for (size_t i = 0; program.rows[i]; i++)
        write_page(*folder, command_table(program.rows[i]));
}

const struct command cmd_manual = {
    .name = "tarn manual",
    .summary = "write the manual pages",
    .help = "Write the manual pages: tarn.1, tarn-train.1 and one for every other command. If "
            "tarn is installed they are already there: try 'man tarn'.",
    .options =
        (const struct args_option[]){
            {"DIR", NULL, ARGS_OPERAND, NULL, 0, 1, 0, "existing folder for the pages"},
            {0},
        },
    .examples = "mkdir pages && tarn manual pages && man pages/tarn-train.1\n",
    .values = sizeof(const char *),
    .run = run,
};
