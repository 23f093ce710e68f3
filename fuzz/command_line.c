/* SPDX-License-Identifier: MIT */
/* command_line.c - whatever words follow `tarn`, one per line, must end in options that are
 * read or in a refusal; nothing is run. What is read is lost at a refusal: leaks are not looked
 * for. */
#include <string.h>

#include "support/fuzzing.h"
#include "support/program.h"

#include "cmd_train.h"
#include "command.h"

enum { WORDS_MOST = 64 };

const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static const struct command *row_of(const struct command *group, const char *word)
{
    for (size_t i = 0; group->rows[i]; i++)
        if (strcmp(command_word(group->rows[i]), word) == 0)
            return group->rows[i];
    return NULL;
}

/* The command that the first words name, and where its own begin. */
static const struct command *find(int count, char **words, int *first)
{
    const struct command *command = &program;

    for (*first = 0; command && command->rows && *first < count; ++*first)
        command = row_of(command, words[*first]);
    return command && !command->rows ? command : NULL;
}

/* `words` begin with the name of the command. */
static void read_options(const struct command *command, int count, char **words)
{
    static struct train_options train;
    void *const values = calloc(1, command->values + 1);

    need(values != NULL);
    command_name(command);
    if (setjmp(program_end) == 0) {
        if (command != &cmd_train)
            args_read(command, values, count, words);
        else if (count > 1 && words[1][0] != '-')
            train_options_read(&train, count - 1, words + 1);
    }
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS_MOST + 1] = {NULL}, *const text = malloc(size + 1);
    int count = 0, first;

    if (!program_output)
        program_output = fopen("/dev/null", "w");
    need(text && program_output);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text; at && count < WORDS_MOST;) {
        char *const end = strchr(at, '\n');

        words[count++] = at;
        if (end)
            *end = '\0';
        at = end ? end + 1 : NULL;
    }
    const struct command *const command = find(count, words, &first);

    if (command && first > 0)
        read_options(command, count - first + 1, words + first - 1);
    free(text);
    return 0;
}
