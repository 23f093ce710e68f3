/* SPDX-License-Identifier: MIT */
/* cmd_manual.c - tarn manual: a man(7) page for the program and one for each of its commands,
 * written from the same tables as --help. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "catalog.h"
#include "command.h"
#include "rows_help.h"

struct options {
    const char *folder;
};

static const struct args_option rows[] = {
    {"DIR", NULL, ARGS_OPERAND, NULL, offsetof(struct options, folder), 1, 0,
     "existing folder for the pages"},
    {0},
};

static const struct args_command command = {
    .name = "tarn manual",
    .help = "Write the manual pages: tarn.1, tarn-train.1 and one for every other command. If "
            "tarn is installed they are already there: try 'man tarn'.",
    .options = rows,
    .examples = "mkdir pages && tarn manual pages && man pages/tarn-train.1\n",
};

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
static void page_name(char name[CATALOG_PATH], const char *path)
{
    char *blank;

    snprintf(name, CATALOG_PATH, "%s", path);
    if ((blank = strchr(name, ' ')) != NULL) {
        *blank = '-';
        if ((blank = strchr(blank, ' ')) != NULL)
            *blank = '\0';
    }
}

/* ---- Sections ----------------------------------------------------------- */

static void put_head(FILE *page, const struct catalog_entry *entry)
{
    char name[CATALOG_PATH], title[CATALOG_PATH];

    page_name(name, entry->path);
    for (size_t i = 0; i < sizeof title; i++)
        title[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    fputs(".TH ", page);
    put(page, title);
    fprintf(page, " 1 \"\" \"tarn %s\" \"User Commands\"\n.SH NAME\n", tarn_version());
    put(page, name);
    fputs(" \\- ", page);
    put_line(page, entry->summary);
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

static void put_synopsis(FILE *page, const struct catalog_entry *entry)
{
    fputs(".B ", page);
    put_line(page, entry->path);
    if (entry->group)
        fputs(".I COMMAND\n", page);
    for (const struct args_option *option = entry->command ? entry->command->options : rows + 1;
         option->name; option++)
        if (args_is_operand(option)) {
            fprintf(page, option->minimum ? ".IR %s%s\n" : ".RI [ %s ]%s\n", option->name,
                    option->type == ARGS_OPERANDS ? " ..." : "");
        } else if (args_is_required(option)) {
            put_option_name(page, option);
        }
    fputs(".RI [ options ]\n", page);
}

static void put_option(void *context, const struct args_option *option)
{
    FILE *const page = context;

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

static void put_row(FILE *page, const tarn_table_row *row)
{
    char text[256];

    fputs(".TP\n.B ", page);
    put_line(page, row->name);
    put_line(page, row->help);
    if (!row->options->name)
        return;
    fputs(".RS\n", page);
    for (const tarn_option_info *option = row->options; option->name; option++) {
        fputs(".TP\n", page);
        rows_range(text, sizeof text, option);
        put_line(page, text);
        rows_option_help(text, sizeof text, option);
        put_line(page, text);
    }
    fputs(".RE\n", page);
}

/* "Presets:" */
static void put_title(FILE *page, const char *title)
{
    const char first = title[0];

    fputs(".PP\n", page);
    fputc(first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, page);
    put(page, title + 1);
    fputs(":\n", page);
}

static void put_table(FILE *page, const struct args_table *table)
{
    put_title(page, table->title);
    fputs(".RS\n", page);
    for (size_t i = 0; table->row(i); i++)
        put_row(page, table->row(i));
    fputs(".RE\n", page);
}

static void put_options(FILE *page, const struct args_command *of)
{
    args_each_operand(of, put_option, page);
    for (const struct args_group *group = of->groups; group && group->title; group++) {
        put_title(page, group->title);
        args_each_in(of, group, put_option, page);
    }
    if (of->groups)
        put_title(page, "other options");
    args_each_other(of, put_option, page);
    fprintf(page, ".TP\n.B \\-h, \\-\\-help\n%s\n", args_help_help);
    for (const struct args_table *table = of->tables; table && table->row; table++)
        if (table->title)
            put_table(page, table);
    if (of->notes) {
        fputs(".PP\n", page);
        put_line(page, of->notes);
    }
}

static const char *examples_of(const struct catalog_entry *entry)
{
    return entry->group ? entry->group->examples : entry->command->examples;
}

static void put_example_lines(FILE *page, const char *lines)
{
    for (; lines && *lines; lines++)
        if (*lines == '-')
            fputs("\\-", page);
        else
            fputc(*lines, page);
}

/* Those of the page's command, and of a group's commands. */
static void put_examples(FILE *page, const struct catalog *catalog,
                         const struct catalog_entry *entry)
{
    fputs(".SH EXAMPLES\n.EX\n", page);
    put_example_lines(page, examples_of(entry));
    for (size_t i = 0; entry != catalog->entries && i < catalog->count; i++)
        if (catalog_is_in(&catalog->entries[i], entry))
            put_example_lines(page, examples_of(&catalog->entries[i]));
    fputs(".EE\n", page);
}

/* ---- Pages -------------------------------------------------------------- */

/* The options of all commands of a group, each below the name of the command. */
static void put_group_options(FILE *page, const struct catalog *catalog,
                              const struct catalog_entry *group)
{
    for (size_t i = 0; i < catalog->count; i++) {
        const struct catalog_entry *const entry = &catalog->entries[i];

        if (!entry->command || !catalog_is_in(entry, group))
            continue;
        fputs(".SS ", page);
        put_line(page, entry->path);
        put_line(page, entry->about);
        put_options(page, entry->command);
    }
}

static void put_rows(FILE *page, const struct command *list)
{
    for (; list->name; list++) {
        fputs(".TP\n.B ", page);
        put_line(page, list->name);
        put_line(page, list->help);
    }
}

static void put_program_options(FILE *page)
{
    fputs(".TP\n.B \\-h, \\-\\-help\nprint the commands, or after a command its options, "
          "and exit\n.TP\n.B \\-\\-version\nprint the version and exit\n",
          page);
}

static void put_see_also(FILE *page, const struct catalog *catalog,
                         const struct catalog_entry *entry)
{
    char own[CATALOG_PATH], name[CATALOG_PATH];
    const char *between = "";

    page_name(own, entry->path);
    fputs(".SH SEE ALSO\n", page);
    for (size_t i = 0; i < catalog->count; i++) {
        const struct catalog_entry *const other = &catalog->entries[i];

        page_name(name, other->path);
        if (strcmp(name, own) == 0 ||
            (other != catalog->entries && !catalog_is_in(other, catalog->entries)))
            continue;
        fprintf(page, "%s.BR ", between);
        put(page, name);
        fputs(" (1)", page);
        between = ",\n";
    }
    fputc('\n', page);
}

static void put_page(FILE *page, const struct catalog *catalog,
                     const struct catalog_entry *entry)
{
    put_head(page, entry);
    fputs(".SH SYNOPSIS\n", page);
    put_synopsis(page, entry);
    for (size_t i = 0; entry != catalog->entries && i < catalog->count; i++)
        if (catalog_is_in(&catalog->entries[i], entry)) {
            fputs(".br\n", page);
            put_synopsis(page, &catalog->entries[i]);
        }
    fputs(".SH DESCRIPTION\n", page);
    put_line(page, entry->about);
    if (entry->group)
        put_rows(page, entry->group->rows);
    fputs(".SH OPTIONS\n", page);
    if (entry == catalog->entries)
        put_program_options(page);
    else if (entry->group)
        put_group_options(page, catalog, entry);
    else
        put_options(page, entry->command);
    fputs(".SH EXIT STATUS\n.TP\n0\nSuccess.\n.TP\n1\nFailure, with the reason on standard "
          "error: "
          "a file cannot be read or written or is damaged, or there is not enough memory.\n"
          ".TP\n2\nWrong usage: an argument is not valid, does not fit the others, or names a "
          "model that the command cannot use, such as a text model for completing images.\n",
          page);
    put_examples(page, catalog, entry);
    put_see_also(page, catalog, entry);
}

static int write_page(const char *folder, const struct catalog *catalog,
                      const struct catalog_entry *entry)
{
    char name[CATALOG_PATH], path[TARN_PATH_SIZE + CATALOG_PATH];

    page_name(name, entry->path);
    if (snprintf(path, sizeof path, "%s/%s.1", folder, name) >= (int)sizeof path)
        errno = ENAMETOOLONG;
    FILE *const page = strlen(folder) < TARN_PATH_SIZE ? fopen(path, "w") : NULL;
    bool written = page != NULL;

    if (page) {
        put_page(page, catalog, entry);
        written = !ferror(page);
        written = fclose(page) == 0 && written;
    }
    if (!written)
        fprintf(stderr, "%s: %.200s: %s\n", command.name, path, strerror(errno));
    return written ? EXIT_DONE : EXIT_FAILED;
}

int cmd_manual(int argc, char **argv)
{
    struct options o;
    int code = args_read(&command, &o, argc, argv);

    if (code != ARGS_GO_ON)
        return code;
    const struct catalog *const catalog = catalog_read();
    const struct catalog_entry *const program = catalog->entries;

    code = write_page(o.folder, catalog, program);
    for (size_t i = 1; i < catalog->count && code == EXIT_DONE; i++)
        if (catalog_is_in(&catalog->entries[i], program))
            code = write_page(o.folder, catalog, &catalog->entries[i]);
    return code;
}
