/* SPDX-License-Identifier: MIT */
/* cmd_manual.c - tarn manual: a man(7) page for the program and one for each of its commands,
 * written from the same tables as --help. */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "output.h"
#include "help.h"

enum { NAME_SIZE = 64 };

/* ---- Text --------------------------------------------------------------- */

/* Dashes become minus signs, so that options can be copied from a terminal. */
__attribute__((format(printf, 2, 3))) static void put(FILE *page, const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (const char *at = text; *at; at++)
        if (*at == '\\')
            fputs("\\e", page);
        else
            fprintf(page, "%s%c", *at == '-' ? "\\" : "", *at);
}

/* A line. A dot or an apostrophe at its beginning would be a request of man(7). */
static void put_line(FILE *page, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", page);
    put(page, "%s\n", text);
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

/* ---- Options ------------------------------------------------------------ */

/* "--out DIR" on a line of its own. */
static void put_name(FILE *page, const char *dashes, const char *name, const char *argument)
{
    if (argument)
        put(page, ".BI %s%s \" %s\"\n", dashes, name, argument);
    else
        put(page, ".B %s%s\n", dashes, name);
}

static void put_item(FILE *page, const struct help_item *item)
{
    fputs(".TP\n", page);
    if (item->kind == HELP_OPERAND)
        put(page, ".I %s\n", item->name);
    else if (item->kind == HELP_ROW_OPTION)
        put_line(page, item->name);
    else
        put_name(page, item->dashes, item->name, item->argument);
    if (item->initial)
        put(page, "%s [%s]\n", item->help, item->initial);
    else
        put_line(page, item->help);
}

/* "Presets:" */
static void put_title(FILE *page, const char *title)
{
    if (title)
        put(page, ".PP\n%c%s:\n", toupper((unsigned char)*title), title + 1);
}

static void put_indent(FILE *page, bool deeper)
{
    fputs(deeper ? ".RS\n" : ".RE\n", page);
}

static void put_paragraph(FILE *page, const char *text)
{
    fputs(".PP\n", page);
    put_line(page, text);
}

static const struct help_format format = {
    .title = put_title,
    .item = put_item,
    .indent = put_indent,
    .paragraph = put_paragraph,
};

/* ---- Sections ----------------------------------------------------------- */

/* A page has the commands of its group; those of the program have pages of their own. */
static const struct command *on_page(const struct command *group, size_t i)
{
    return group->rows && group != &program ? group->rows[i] : NULL;
}

static void put_head(FILE *page, const struct command *command)
{
    char name[NAME_SIZE] = "", title[NAME_SIZE];

    page_name(name, command);
    for (size_t i = 0; i < sizeof title; i++)
        title[i] = (char)toupper((unsigned char)name[i]);
    put(page, ".TH %s 1 \"\" \"tarn %s\" \"User Commands\"\n.SH NAME\n%s - %s\n", title,
        tarn_version(), name, command->summary);
}

static void put_synopsis(FILE *page, const struct command *command)
{
    const struct args_option *option = command->options;

    put(page, ".B %s\n", command->name);
    if (command->rows)
        fputs(".I COMMAND\n", page);
    for (; option && option->name; option++)
        if (args_is_operand(option)) {
            fprintf(page, option->minimum ? ".IR %s%s\n" : ".RI [ %s ]%s\n", option->name,
                    option->type == ARGS_OPERANDS ? " ..." : "");
        } else if (args_is_required(option)) {
            put_name(page, args_dashes(option), option->name, option->argument);
        }
    fputs(".RI [ options ]\n", page);
}

/* Of all commands of a group, each below the name of the command. */
static void put_options(FILE *page, const struct command *command)
{
    const struct command *below;

    if (command == &program)
        put(page, ".TP\n.B -h, --help\nprint the commands, or after a command its options, and "
                  "exit\n.TP\n.B --version\nprint the version and exit\n");
    else if (!command->rows)
        help_body(page, command, &format);
    for (size_t i = 0; (below = on_page(command, i)) != NULL; i++) {
        put(page, ".SS %s\n", below->name);
        put_line(page, below->help);
        help_body(page, below, &format);
    }
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
        put(page, "%s.BR %s (1)", between, name);
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
    for (size_t i = 0; command->rows && command->rows[i]; i++)
        put(page, ".TP\n.B %s\n%s\n", command_word(command->rows[i]),
            command->rows[i]->summary);
    fputs(".SH OPTIONS\n", page);
    put_options(page, command);
    fputs(".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure, with the reason on standard "
          "error: "
          "a file cannot be read or written or is damaged, or there is not enough memory.\n"
          ".TP\n2\nWrong usage: an argument is not valid, does not fit the others, or names a "
          "model that the command cannot use, such as a text model for completing images.\n",
          page);
    put(page, ".SH EXAMPLES\n.EX\n%s", command->examples);
    for (size_t i = 0; (below = on_page(command, i)) != NULL; i++)
        put(page, "%s", below->examples);
    fputs(".EE\n", page);
    put_see_also(page, command);
}

/* ---- Files -------------------------------------------------------------- */

static void write_page(const char *folder, const struct command *command)
{
    char name[NAME_SIZE], path[TARN_PATH_SIZE + NAME_SIZE + 4];

    page_name(name, command);
    snprintf(path, sizeof path, "%s/%s.1", folder, name);
    FILE *const page = output_begin(path);

    put_page(page, command);
    output_end(page);
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
