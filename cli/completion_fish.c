/* SPDX-License-Identifier: MIT */
/* completion_fish.c - one line per command, option and operand, each on the condition that the
 * command was typed. */
#include "completion.h"

static const char special[] = "\\";

static void put_paths(FILE *out, const struct catalog *catalog)
{
    fputs("function __tarn_at\n"
          "    set -l at tarn\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        if contains -- \"$at $word\"",
          out);
    for (size_t i = 1; i < catalog->count; i++)
        fprintf(out, " '%s'", catalog->entries[i].path);
    fputs("\n"
          "            set at \"$at $word\"\n"
          "        end\n"
          "    end\n"
          "    test \"$at\" = \"$argv\"\n"
          "end\n\n"
          "complete -c tarn -f\n",
          out);
}

static void put_condition(FILE *out, const struct catalog_entry *entry)
{
    fprintf(out, "complete -c tarn -n '__tarn_at %s'", entry->path);
}

static void put_values(FILE *out, const struct completion_values *values)
{
    switch (values->kind) {
    case COMPLETION_WORDS:
        fprintf(out, " -x -a '%s'", values->words);
        break;
    case COMPLETION_FILES:
        fputs(" -r -F", out);
        break;
    case COMPLETION_FOLDERS:
        fputs(" -x -a '(__fish_complete_directories)'", out);
        break;
    case COMPLETION_NOTHING:
        fputs(" -x", out);
    }
}

static void put_help(FILE *out, const char *text)
{
    fputs(" -d '", out);
    completion_put_quoted(out, text, special);
    fputs("'\n", out);
}

static void put_option(FILE *out, const struct catalog_entry *entry,
                       const struct args_option *option)
{
    struct completion_values values;

    put_condition(out, entry);
    fprintf(out, " -%c %s", option->name[1] ? 'l' : 's', option->name);
    completion_values(&values, entry->command, option);
    if (option->type != ARGS_FLAG)
        put_values(out, &values);
    put_help(out, option->help);
}

static void put_operand(FILE *out, const struct catalog_entry *entry,
                        const struct args_option *option)
{
    struct completion_values values;

    completion_values(&values, entry->command, option);
    if (values.kind == COMPLETION_NOTHING)
        return;
    put_condition(out, entry);
    if (values.kind == COMPLETION_FILES)
        fputs(" -F", out);
    else if (values.kind == COMPLETION_FOLDERS)
        fputs(" -a '(__fish_complete_directories)'", out);
    else
        fprintf(out, " -a '%s'", values.words);
    fputc('\n', out);
}

static void put_entry(FILE *out, const struct catalog_entry *entry)
{
    for (const struct command *row = entry->group ? entry->group->rows : NULL; row && row->name;
         row++) {
        put_condition(out, entry);
        fprintf(out, " -a %s", row->name);
        put_help(out, row->help);
    }
    put_condition(out, entry);
    fputs(" -l help -d 'print this help and exit'\n", out);
    completion_each(out, entry, false, put_option);
    completion_each(out, entry, true, put_operand);
}

void completion_fish(FILE *out, const struct catalog *catalog)
{
    fputs("# fish completion for tarn, made by: tarn completion fish\n", out);
    put_paths(out, catalog);
    for (size_t i = 0; i < catalog->count; i++)
        put_entry(out, &catalog->entries[i]);
}
