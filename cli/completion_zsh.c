/* SPDX-License-Identifier: MIT */
/* completion_zsh.c - a function per command, each a call of _arguments. */
#include <string.h>

#include "completion.h"

/* Characters with a meaning to _arguments. */
static const char special[] = "[]:\\";

/* "_tarn_bench_peak" */
static void put_function(FILE *out, const char *path)
{
    fputc('_', out);
    for (; *path; path++)
        fputc(*path == ' ' || *path == '-' ? '_' : *path, out);
}

static void put_action(FILE *out, const struct command *command,
                       const struct args_option *option)
{
    struct completion_values values;

    completion_values(&values, command, option);
    fputc(':', out);
    completion_put_quoted(out, option->argument ? option->argument : option->name, special);
    switch (values.kind) {
    case COMPLETION_WORDS:
        fprintf(out, ":(%s)", values.words);
        break;
    case COMPLETION_FILES:
        fputs(":_files", out);
        break;
    case COMPLETION_FOLDERS:
        fputs(":_files -/", out);
        break;
    case COMPLETION_NOTHING:
        fputs(": ", out);
    }
}

static void put_option(FILE *out, const struct command *command,
                       const struct args_option *option)
{
    const bool is_flag = option->type == ARGS_FLAG, is_long = option->name[1] != '\0';

    fprintf(out, " \\\n        '%s%s%s[", args_dashes(option), option->name,
            is_flag ? "" : (is_long ? "=" : "+"));
    completion_put_quoted(out, option->help, special);
    fputc(']', out);
    if (!is_flag)
        put_action(out, command, option);
    fputc('\'', out);
}

/* Operands in order: optional ones with two colons, a repeated one with a star. */
static void put_operand(FILE *out, const struct command *command,
                        const struct args_option *option)
{
    fprintf(out, " \\\n        '%s",
            option->type == ARGS_OPERANDS ? "*" : (option->minimum ? "" : ":"));
    put_action(out, command, option);
    fputc('\'', out);
}

static void put_options(FILE *out, const struct command *command)
{
    fputs("    _arguments", out);
    completion_each(out, command, false, put_option);
    completion_each(out, command, true, put_operand);
    fputs(" \\\n        '--help[print this help and exit]'\n", out);
}

static void put_group(FILE *out, const struct command *command)
{
    fputs("    local -a commands=(\n", out);
    for (size_t i = 0; command->rows[i]; i++) {
        fprintf(out, "        '%s:", command_word(command->rows[i]));
        completion_put_quoted(out, command->rows[i]->summary, special);
        fputs("'\n", out);
    }
    fputs("    )\n    local context state state_descr line\n    typeset -A opt_args\n"
          "    _arguments -C '--help[print this help and exit]' '1: :->command' '*:: :->rest'\n"
          "    case $state in\n"
          "    command) _describe command commands ;;\n"
          "    rest)\n        case $words[1] in\n",
          out);
    for (size_t i = 0; command->rows[i]; i++) {
        fprintf(out, "        %s) ", command_word(command->rows[i]));
        put_function(out, command->rows[i]->name);
        fputs(" ;;\n", out);
    }
    fputs("        esac ;;\n    esac\n", out);
}

static void put_command(FILE *out, const struct command *command)
{
    fputc('\n', out);
    put_function(out, command->name);
    fputs("() {\n", out);
    (command->rows ? put_group : put_options)(out, command);
    fputs("}\n", out);
}

void completion_zsh(FILE *out)
{
    fputs("#compdef tarn\n# zsh completion for tarn, made by: tarn completion zsh\n", out);
    command_walk(out, &program, put_command);
    fputs("\n_tarn \"$@\"\n", out);
}
