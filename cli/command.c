/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "words.h"

const struct command *command_table(const struct command *command)
{
    return command->describe ? command->describe() : command;
}

const char *command_word(const struct command *command)
{
    const char *const blank = strrchr(command->name, ' ');

    return blank ? blank + 1 : command->name;
}

void command_walk(FILE *out, const struct command *command, command_put *put)
{
    put(out, command_table(command));
    for (size_t i = 0; command->rows && command->rows[i]; i++)
        command_walk(out, command->rows[i], put);
}

/* ---- Messages ----------------------------------------------------------- */

/* Sentences quote what users and files say: nothing of it may be a command to a terminal. */
__attribute__((format(printf, 3, 0))) static int
complain(const struct command *command, int code, const char *format, va_list args)
{
    char text[1024], shown[sizeof text];

    vsnprintf(text, sizeof text, format, args);
    tarn_printable(shown, sizeof shown, text);
    fprintf(stderr, "%s: %s\n", command->name, shown);
    return code;
}

int command_refuse(const struct command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int code = complain(command, EXIT_USAGE, format, args);

    va_end(args);
    return code;
}

int command_fail(const struct command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int code = complain(command, EXIT_FAILED, format, args);

    va_end(args);
    return code;
}

int command_error(const struct command *command, const tarn_error *err)
{
    const bool is_usage = err->status == TARN_EINVAL || err->status == TARN_EUNKNOWN;

    return (is_usage ? command_refuse : command_fail)(command, "%s", err->text);
}

/* ---- Groups ------------------------------------------------------------- */

static void print_group(FILE *out, const struct command *group)
{
    fprintf(out, "usage: %s COMMAND [options]\n\n", group->name);
    words_wrap(out, group->help, 0);
    fprintf(out, "\ncommands:\n");
    for (size_t i = 0; group->rows[i]; i++) {
        fprintf(out, "  %-12s ", command_word(group->rows[i]));
        words_wrap(out, group->rows[i]->summary, 15);
    }
    words_examples(out, group->examples);
    fprintf(out, "\nRun '%s COMMAND --help' for the options of a command.\n", group->name);
}

static const char *word_of(const void *rows, size_t index)
{
    const struct command *const row = ((const struct command *const *)rows)[index];

    return row ? command_word(row) : NULL;
}

static int run_group(const struct command *group, int argc, char **argv)
{
    if (argc < 2) {
        print_group(stderr, group);
        return EXIT_USAGE;
    }
    if (args_is_help(argv[1])) {
        print_group(stdout, group);
        return EXIT_DONE;
    }
    for (size_t i = 0; group->rows[i]; i++)
        if (strcmp(command_word(group->rows[i]), argv[1]) == 0)
            return command_run(group->rows[i], argc - 1, argv + 1);
    words_unknown(group->name, "command", argv[1], word_of, group->rows);
    return EXIT_USAGE;
}

/* ---- Commands ----------------------------------------------------------- */

int command_run(const struct command *command, int argc, char **argv)
{
    if (command->rows)
        return run_group(command, argc, argv);
    if (command->run_words)
        return command->run_words(argc, argv);
    void *const values = calloc(1, command->values + 1);

    if (!values)
        return command_fail(command, "not enough memory");
    int code = args_read(command, values, argc, argv);

    if (code == ARGS_GO_ON)
        code = command->bench ? bench_run(command, values) : command->run(values);
    free(values);
    return code;
}
