/* SPDX-License-Identifier: MIT */
/* completion_bash.c - one function, which finds the command that was typed and offers what can
 * follow. It does not need the package bash-completion. */
#include "completion.h"

static void put_path(FILE *out, const struct command *command)
{
    if (command != &program)
        fprintf(out, "        '%s') path=\"$path ${COMP_WORDS[i]}\" ;;\n", command->name);
}

/* Finds the command that was typed, word by word. */
static void put_paths(FILE *out)
{
    fputs("_tarn() {\n"
          "    local path=tarn word i offered= kind=words\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    # --option=value is three words to bash\n"
          "    if [[ $cur == = ]]; then\n"
          "        cur=\n"
          "    elif [[ $prev == = && $COMP_CWORD -gt 1 ]]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case \"$path ${COMP_WORDS[i]}\" in\n",
          out);
    command_walk(out, &program, put_path);
    fputs("        esac\n"
          "    done\n",
          out);
}

static void put_offer(FILE *out, const struct completion_values *values)
{
    switch (values->kind) {
    case COMPLETION_WORDS:
        fprintf(out, "offered='%s'", values->words);
        break;
    case COMPLETION_FILES:
        fputs("kind=files", out);
        break;
    case COMPLETION_FOLDERS:
        fputs("kind=folders", out);
        break;
    case COMPLETION_NOTHING:
        fputs("kind=nothing", out);
    }
}

/* The values of an option. */
static void put_option_values(FILE *out, const struct command *command,
                              const struct args_option *option)
{
    struct completion_values values;

    if (option->type == ARGS_FLAG)
        return;
    completion_values(&values, command, option);
    fprintf(out, "    '%s %s%s') ", command->name, args_dashes(option), option->name);
    put_offer(out, &values);
    fputs(" ;;\n", out);
}

static void put_option_name(FILE *out, const struct command *command,
                            const struct args_option *option)
{
    (void)command;
    fprintf(out, "%s%s ", args_dashes(option), option->name);
}

/* All operands are completed like the first. */
static void put_operands(FILE *out, const struct command *command)
{
    const struct args_option *option = command->options;
    struct completion_values values = {.kind = COMPLETION_NOTHING};

    while (option->name && !args_is_operand(option))
        option++;
    if (option->name)
        completion_values(&values, command, option);
    put_offer(out, &values);
}

static void put_command(FILE *out, const struct command *command)
{
    fprintf(out, "        '%s')\n", command->name);
    if (command->rows) {
        fputs("            offered='", out);
        for (size_t i = 0; command->rows[i]; i++)
            fprintf(out, "%s ", command_word(command->rows[i]));
        fputs("--help' ;;\n", out);
        return;
    }
    fputs("            if [[ $cur == -* ]]; then\n                offered='", out);
    completion_each(out, command, false, put_option_name);
    fputs("--help'\n            else\n                ", out);
    put_operands(out, command);
    fputs("\n            fi ;;\n", out);
}

static void put_all_values(FILE *out, const struct command *command)
{
    completion_each(out, command, false, put_option_values);
}

void completion_bash(FILE *out)
{
    fputs("# bash completion for tarn, made by: tarn completion bash\n", out);
    put_paths(out);
    fputs("    case \"$path $prev\" in\n", out);
    command_walk(out, &program, put_all_values);
    fputs("    *)\n        case $path in\n", out);
    command_walk(out, &program, put_command);
    fputs("        esac ;;\n    esac\n"
          "    COMPREPLY=()\n"
          "    case $kind in\n"
          "    words) mapfile -t COMPREPLY < <(compgen -W \"$offered\" -- \"$cur\") ;;\n"
          "    files) compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
          "    folders) compopt -o filenames 2>/dev/null\n"
          "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
          "    esac\n"
          "}\n"
          "complete -F _tarn tarn\n",
          out);
}
