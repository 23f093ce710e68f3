/* SPDX-License-Identifier: MIT */
/* cmd_completion.c - tarn completion: scripts for tab completion in shells. */
#include <stdio.h>
#include <string.h>

#include "completion.h"
#include "words.h"

struct shell {
    tarn_table_row about;
    void (*write)(FILE *out);
};

static const tarn_option_info no_options[] = {{0}};

static const struct shell shells[] = {
    {{"bash", "add to ~/.bashrc: source <(tarn completion bash)", no_options}, completion_bash},
    {{"zsh", "save as _tarn in a folder of $fpath", no_options}, completion_zsh},
    {{"fish", "add to ~/.config/fish/config.fish: tarn completion fish | source", no_options},
     completion_fish},
};

enum { SHELLS = sizeof shells / sizeof shells[0] };

static const tarn_table_row *shell_row(size_t index)
{
    return index < SHELLS ? &shells[index].about : NULL;
}

/* ---- Completions ------------------------------------------------------ */

static void add_word(struct completion_values *values, const char *word, size_t length)
{
    const size_t used = strlen(values->words);

    values->kind = COMPLETION_WORDS;
    snprintf(values->words + used, sizeof values->words - used, "%s%.*s", used ? " " : "",
             (int)length, word);
}

/* "f32|bf16" are words, "LO|HI" are not. */
static bool is_choice(const char *text)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return strchr(text, '|') && !strpbrk(text, capitals);
}

static enum completion_kind kind_of(const char *text)
{
    static const char *const files[] = {"FILE", "PATH", "MODEL", "OUT", "AUDIO"};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(text, files[i]) == 0)
            return COMPLETION_FILES;
    return strcmp(text, "DIR") == 0 ? COMPLETION_FOLDERS : COMPLETION_NOTHING;
}

void completion_values(struct completion_values *values, const struct command *of,
                       const struct args_option *option)
{
    const struct args_table *const table = args_table_of(of, option->name);
    const char *text = args_is_operand(option) ? option->name : option->argument;

    *values = (struct completion_values){.kind = COMPLETION_NOTHING};
    for (size_t i = 0; table && table->row(i); i++)
        add_word(values, table->row(i)->name, strlen(table->row(i)->name));
    if (table || !text)
        return;
    values->kind = kind_of(text);
    for (size_t length; is_choice(text) || values->kind == COMPLETION_WORDS;
         text += length + 1) {
        length = strcspn(text, "|");
        add_word(values, text, length);
        if (!text[length])
            return;
    }
}

void completion_each(FILE *out, const struct command *command, bool operands,
                     completion_put *put)
{
    for (const struct args_option *option = command->options; option && option->name; option++)
        if (args_is_operand(option) == operands)
            put(out, command, option);
}

void completion_put_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
}

/* ---- The command -------------------------------------------------------- */

static const char *shell_name(const void *table, size_t index)
{
    (void)table;
    return index < SHELLS ? shells[index].about.name : NULL;
}

static int run(void *values)
{
    const char *const *const shell = values;

    for (size_t i = 0; i < SHELLS; i++)
        if (strcmp(shells[i].about.name, *shell) == 0) {
            shells[i].write(stdout);
            return EXIT_DONE;
        }
    words_unknown(cmd_completion.name, "shell", *shell, shell_name, NULL);
    return EXIT_USAGE;
}

const struct command cmd_completion = {
    .name = "tarn completion",
    .summary = "print a completion script for bash, zsh or fish",
    .help = "Print a script that completes commands, options and names with the Tab key. If "
            "tarn is installed, the shells find theirs without this.",
    .options =
        (const struct args_option[]){
            {"SHELL", NULL, ARGS_OPERAND, NULL, 0, 1, 0, "bash, zsh or fish"},
            {0},
        },
    .tables = (const struct args_table[]){{"shells", shell_row, "SHELL"}, {0}},
    .examples = "source <(tarn completion bash)\n"
                "tarn completion zsh >~/.zfunc/_tarn\n",
    .values = sizeof(const char *),
    .run = run,
};
