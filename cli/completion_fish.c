/* SPDX-License-Identifier: MIT */
/* completion_fish.c - one line per command, option and operand, each on the condition that the
 * command was typed. */
#include "completion.h"

static const char special[] = "\\";

static void put_path(FILE *out, const struct command *command)
{
    if (command != &program)
        fprintf(out, " '%s'", command->name);
}

static void put_paths(FILE *out)
{
    fputs("function __tarn_at\n"
          "    set -l at tarn\n"
          "    for word in (commandline -opc)[2..-1]\n"
          "        if contains -- \"$at $word\"",
          out);
    command_walk(out, &program, put_path);
    fputs("\n"
          "            set at \"$at $word\"\n"
          "        end\n"
          "    end\n"
          "    test \"$at\" = \"$argv\"\n"
          "end\n\n"
          "complete -c tarn -f\n",
          out);
}

static void put_condition(FILE *out, const struct command *command)
{
    fprintf(out, "complete -c tarn -n '__tarn_at %s'", command->name);
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

static void put_option(FILE *out, const struct command *command,
                       const struct args_option *option)
{
    struct completion_values values;

    put_condition(out, command);
    fprintf(out, " -%c %s", option->name[1] ? 'l' : 's', option->name);
    completion_values(&values, command, option);
    if (option->type != ARGS_FLAG)
        put_values(out, &values);
    put_help(out, option->help);
}

static void put_operand(FILE *out, const struct command *command,
                        const struct args_option *option)
{
    struct completion_values values;

    completion_values(&values, command, option);
    if (values.kind == COMPLETION_NOTHING)
        return;
    put_condition(out, command);
    if (values.kind == COMPLETION_FILES)
        fputs(" -F", out);
    else if (values.kind == COMPLETION_FOLDERS)
        fputs(" -a '(__fish_complete_directories)'", out);
    else
        fprintf(out, " -a '%s'", values.words);
    fputc('\n', out);
}

static void put_command(FILE *out, const struct command *command)
{
    for (size_t i = 0; command->rows && command->rows[i]; i++) {
        put_condition(out, command);
        fprintf(out, " -a %s", command_word(command->rows[i]));
        put_help(out, command->rows[i]->summary);
    }
    put_condition(out, command);
    fputs(" -l help -d 'print this help and exit'\n", out);
    completion_each(out, command, false, put_option);
    completion_each(out, command, true, put_operand);
}

void completion_fish(FILE *out)
{
    fputs("# fish completion for tarn, made by: tarn completion fish\n", out);
    put_paths(out);
    command_walk(out, &program, put_command);
}
