/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "progress.h"
#include "ranks.h"

static const struct command *current = &program; /* the command that runs */

const struct command *command_table(const struct command *command)
{
    return command->describe ? command->describe() : command;
}

void command_name(const struct command *command)
{
    current = command;
}

const char *command_word(const struct command *command)
{
    const char *const blank = strrchr(command->name, ' ');

    return blank ? blank + 1 : command->name;
}

/* ---- The end ------------------------------------------------------------ */

tarn_error failure;

_Noreturn void leave(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tarn: standard output");
        code = EXIT_FAILED;
    }
    exit(code);
}

/* Sentences quote what users and files say: nothing of it may be a command to a terminal. */
__attribute__((format(printf, 1, 0))) static void complain(const char *format, va_list args)
{
    char text[1024], shown[sizeof text], rank[32];

    if (!ranks_complains(rank))
        return;
    vsnprintf(text, sizeof text, format, args);
    tarn_printable(shown, sizeof shown, text);
    progress_erase();
    fflush(stdout);
    fprintf(stderr, "%s: %s%s\n", current->name, rank, shown);
}

void warn(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(format, args);
    va_end(args);
}

_Noreturn void refuse(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(format, args);
    va_end(args);
    exit(EXIT_USAGE);
}

_Noreturn void fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(format, args);
    va_end(args);
    exit(EXIT_FAILED);
}

void must(tarn_status status)
{
    if (status == TARN_ERANK)
        ranks_lost();
    if (status == TARN_EINVAL || status == TARN_EUNKNOWN)
        refuse("%s", failure.text);
    if (status != TARN_OK)
        fail("%s", failure.text);
}

_Noreturn void refuse_name(const char *what, const char *word, words_name *names)
{
    const char *const nearest = words_nearest(word, names);
    char all[640];

    if (nearest)
        refuse("unknown %s '%.80s'; did you mean '%s'?", what, word, nearest);
    words_list(all, sizeof all, names);
    refuse("unknown %s '%.80s'; available: %s", what, word, all);
}

void *allocate(size_t count, size_t size, const char *format, ...)
{
    void *const memory = calloc(count ? count : 1, size);
    char what[256];
    va_list args;

    if (memory)
        return memory;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fail("not enough memory for %s", what);
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

/* Of the group that runs. */
static const char *word_at(size_t index)
{
    return current->rows[index] ? command_word(current->rows[index]) : NULL;
}

static void run_group(const struct command *group, int argc, char **argv)
{
    const bool is_help = argc > 1 && args_is_help(argv[1]);

    if (argc < 2 || is_help) {
        print_group(is_help ? stdout : stderr, group);
        leave(is_help ? EXIT_DONE : EXIT_USAGE);
    }
    for (size_t i = 0; group->rows[i]; i++)
        if (strcmp(command_word(group->rows[i]), argv[1]) == 0) {
            command_run(group->rows[i], argc - 1, argv + 1);
            return;
        }
    if (argv[1][0] == '-')
        refuse("unknown option '%.80s'; see %s --help", argv[1], group->name);
    refuse_name("command", argv[1], word_at);
}

/* ---- Commands ----------------------------------------------------------- */

void command_run(const struct command *command, int argc, char **argv)
{
    current = command;
    if (command->rows) {
        run_group(command, argc, argv);
        return;
    }
    if (command->run_words) {
        command->run_words(argc, argv);
        return;
    }
    void *const values = allocate(1, command->values + 1, "the options");

    args_read(command, values, argc, argv);
    if (command->bench)
        bench_run(command, values);
    else
        command->run(values);
    free(values);
}
