/* SPDX-License-Identifier: MIT */
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "hardware.h"
#include "rows_help.h"
#include "words.h"

/* ---- help --------------------------------------------------------------- */

const char args_help_help[] = "print this help and exit";

bool args_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

bool args_is_operand(const struct args_option *option)
{
    return option->type == ARGS_OPERAND || option->type == ARGS_OPERANDS;
}

const char *args_dashes(const struct args_option *option)
{
    if (args_is_operand(option))
        return "";
    return option->name[1] == '\0' ? "-" : "--";
}

bool args_is_required(const struct args_option *option)
{
    return option->minimum > 0 && (args_is_operand(option) || option->type == ARGS_TEXT);
}

static void print_option(void *context, const struct args_option *option)
{
    char text[512];
    const int column = 26;
    const int used =
        printf("  %s%s%s%s", args_dashes(option), option->name, option->argument ? " " : "",
               option->argument ? option->argument : "");

    (void)context;
    snprintf(text, sizeof text, "%s%s%s%s", option->help, option->initial ? " [" : "",
             option->initial ? option->initial : "", option->initial ? "]" : "");
    if (used >= column)
        printf("\n%*s", column, "");
    else
        printf("%*s", column - used, "");
    words_wrap(stdout, text, column);
}

static void print_usage(const struct command *command)
{
    printf("usage: %s", command->name);
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option)) {
            printf(option->minimum ? " %s" : " [%s]", option->name);
            printf("%s", option->type == ARGS_OPERANDS ? "..." : "");
        }
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_required(option) && !args_is_operand(option))
            printf(" %s%s %s", args_dashes(option), option->name, option->argument);
    printf(" [options]\n\n");
}

static bool has_operands(const struct command *command)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            return true;
    return false;
}

/* Whether the first `length` letters of `word` are the name of an option. */
static bool is_named(const struct args_option *option, const char *word, size_t length)
{
    return !args_is_operand(option) && strlen(option->name) == length &&
           strncmp(option->name, word, length) == 0;
}

static bool is_in_a_group(const struct command *command, const struct args_option *option)
{
    for (const struct args_group *group = command->groups; group && group->title; group++)
        for (const char *at = group->options; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");

            if (is_named(option, at, length))
                return true;
            at += length;
        }
    return false;
}

void args_each_operand(const struct command *command, args_put *put, void *context)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option))
            put(context, option);
}

void args_each_in(const struct command *command, const struct args_group *group, args_put *put,
                  void *context)
{
    for (const char *at = group->options; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");

        for (const struct args_option *option = command->options; option->name; option++)
            if (is_named(option, at, length))
                put(context, option);
        at += length;
    }
}

void args_each_other(const struct command *command, args_put *put, void *context)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (!args_is_operand(option) && !is_in_a_group(command, option))
            put(context, option);
}

static void print_options(const struct command *command)
{
    for (const struct args_group *group = command->groups; group && group->title; group++) {
        printf("\n%s:\n", group->title);
        args_each_in(command, group, print_option, NULL);
    }
    printf("\n%s:\n", command->groups ? "other options" : "options");
    args_each_other(command, print_option, NULL);
    printf("  -h, --help              %s\n", args_help_help);
}

static void print_help(const struct command *command)
{
    print_usage(command);
    words_wrap(stdout, command->help, 0);
    if (has_operands(command)) {
        printf("\n");
        args_each_operand(command, print_option, NULL);
    }
    print_options(command);
    for (const struct args_table *table = command->tables; table && table->row; table++)
        if (table->title)
            rows_help(table->title, table->row);
    if (command->notes) {
        printf("\n");
        words_wrap(stdout, command->notes, 0);
    }
    words_examples(stdout, command->examples);
}

const struct args_table *args_table_of(const struct command *command, const char *option)
{
    for (const struct args_table *table = command->tables; table && table->row; table++)
        if (table->option && strcmp(table->option, option) == 0)
            return table;
    return NULL;
}

/* ---- values ------------------------------------------------------------- */

/* Digits only: strtoull alone takes "-1" and blanks. */
static bool read_digits(uintmax_t *number, const char **text)
{
    char *end;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *number = strtoumax(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static bool read_count(size_t *count, const struct args_option *option, const char *text)
{
    uintmax_t number;

    if (!read_digits(&number, &text) || *text || number < option->minimum ||
        number > option->maximum)
        return false;
    *count = (size_t)number;
    return true;
}

/* "1,64" */
static bool read_counts(struct args_counts *counts, const struct args_option *option,
                        const char *text)
{
    uintmax_t number;

    for (counts->count = 0; counts->count < ARGS_COUNTS_MOST; text++) {
        if (!read_digits(&number, &text) || number < option->minimum ||
            number > option->maximum)
            return false;
        counts->numbers[counts->count++] = (size_t)number;
        if (*text != ',')
            return !*text;
    }
    return false;
}

/* "4G", "4GB" and "4GiB" are the same. */
static bool read_bytes(size_t *bytes, const struct args_option *option, const char *text)
{
    static const char units[] = "KMGT";
    uintmax_t number;

    if (!read_digits(&number, &text))
        return false;
    const char *const unit = *text ? strchr(units, *text) : NULL;

    if (unit) {
        const int shift = 10 * (int)(unit - units + 1);

        if (number > UINTMAX_MAX >> shift)
            return false;
        number <<= shift;
        text++;
        if (*text == 'i' && text[1] == 'B')
            text++;
        if (*text == 'B')
            text++;
    }
    if (*text || number < option->minimum || number > option->maximum)
        return false;
    *bytes = (size_t)number;
    return true;
}

static bool read_number(double *number, const char *text)
{
    char *end;

    *number = strtod(text, &end);
    return end != text && !*end && isfinite(*number);
}

static bool read_seconds(double *seconds, const char *text)
{
    return read_number(seconds, text) && *seconds > 0.0;
}

static bool read_within(double *number, const struct args_option *option, const char *text)
{
    return read_number(number, text) && *number >= (double)option->minimum &&
           *number <= (double)option->maximum;
}

static bool read_value(void *values, const struct args_option *option, const char *text)
{
    void *const value = (char *)values + option->offset;

    switch (option->type) {
    case ARGS_FLAG:
        *(bool *)value = text != NULL;
        return true;
    case ARGS_COUNT:
        if (text)
            return read_count(value, option, text);
        *(size_t *)value = 0;
        return true;
    case ARGS_COUNTS:
        return read_counts(value, option, text);
    case ARGS_BYTES:
        return read_bytes(value, option, text);
    case ARGS_HOST:
        return read_count(&((tarn_host *)value)->threads, option, text);
    case ARGS_SECONDS:
        return read_seconds(value, text);
    case ARGS_NUMBER:
        return read_within(value, option, text);
    case ARGS_TEXT:
    case ARGS_OPERAND:
        *(const char **)value = text;
        return true;
    case ARGS_OPERANDS:
        *(struct args_words *)value = (struct args_words){0};
        return true;
    }
    return false;
}

/* ---- messages ----------------------------------------------------------- */

static int wrong_value(const struct command *command, const struct args_option *option,
                       const char *text)
{
    static const char *const expected[] = {
        [ARGS_COUNT] = "a whole number",
        [ARGS_HOST] = "a whole number",
        [ARGS_COUNTS] = "up to 16 whole numbers, separated by commas, each",
        [ARGS_BYTES] = "a size such as 512M or 8G",
        [ARGS_NUMBER] = "a number",
    };

    char shown[81];

    tarn_printable(shown, sizeof shown, text);
    fprintf(stderr, "%s: %s%s is '%s'; it must be ", command->name, args_dashes(option),
            option->name, shown);
    if (option->type == ARGS_SECONDS)
        fprintf(stderr, "a number of seconds above 0\n");
    else if (option->type == ARGS_BYTES)
        fprintf(stderr, "%s, up to %zuT\n", expected[option->type], option->maximum >> 40);
    else if (option->maximum == SIZE_MAX)
        fprintf(stderr, "%s of at least %zu\n", expected[option->type], option->minimum);
    else
        fprintf(stderr, "%s from %zu to %zu\n", expected[option->type], option->minimum,
                option->maximum);
    return EXIT_USAGE;
}

/* `word` with its dashes, `name` without. */
static int unknown_option(const struct command *command, const char *word, const char *name)
{
    const struct args_option *nearest = NULL;
    size_t least = 4; /* beyond, a guess only confuses */

    for (const struct args_option *option = command->options; option->name; option++) {
        const size_t distance = words_distance(name, option->name);

        if (!args_is_operand(option) && option->name[1] && distance < least) {
            least = distance;
            nearest = option;
        }
    }
    if (nearest)
        return command_refuse(command, "unknown option '%.80s'; did you mean --%s?", word,
                              nearest->name);
    return command_refuse(command, "unknown option '%.80s'; %s --help lists all options", word,
                          command->name);
}

/* "-o FILE is required: ..." */
static int missing(const struct command *command, const struct args_option *option)
{
    return command_refuse(command, "%s%s%s%s is required: %s", args_dashes(option),
                          option->name, option->argument ? " " : "",
                          option->argument ? option->argument : "", option->help);
}

/* ---- reading ------------------------------------------------------------ */

/* The option that `word` names, up to its '=': one letter after one dash, more after two. */
static const struct args_option *find(const struct command *command, const char *word)
{
    const char *const name = word + (word[1] == '-' ? 2 : 1);
    const size_t length = strcspn(name, "=");

    for (const struct args_option *option = command->options; option->name; option++)
        if (strncmp(option->name, name, length) == 0 && option->name[length] == '\0' &&
            strlen(args_dashes(option)) == (size_t)(name - word))
            return option;
    return NULL;
}

/* One option at argv[*i], with its value there or in the next word. Moves *i to the last word
 * used. */
static int read_one(const struct command *command, void *values, int argc, char **argv, int *i)
{
    char word[64];
    const struct args_option *const option = find(command, argv[*i]);
    const char *text = strchr(argv[*i], '=');

    snprintf(word, sizeof word, "%.*s", (int)strcspn(argv[*i], "="), argv[*i]);
    if (!option)
        return unknown_option(command, word, word + strspn(word, "-"));
    if (option->type == ARGS_FLAG) {
        if (text)
            return command_refuse(command, "%s does not take a value", word);
        text = word;
    } else if (text) {
        text++;
    } else if (*i + 1 < argc) {
        text = argv[++*i];
    } else {
        return command_refuse(command, "%s requires a value: %s %s", word, word,
                              option->argument);
    }
    return read_value(values, option, text) ? ARGS_GO_ON : wrong_value(command, option, text);
}

/* The next operand of the table from *option on. */
static const struct args_option *next_operand(const struct args_option *option)
{
    while (option->name && !args_is_operand(option))
        option++;
    return option->name ? option : NULL;
}

/* Appends a word to a list, which is kept at the beginning of argv: those words were read
 * already. */
static void add_word(void *values, const struct args_option *operand, char **argv, char *word)
{
    struct args_words *const list = (void *)((char *)values + operand->offset);

    list->words = argv + 1;
    list->words[list->count++] = word;
}

static int read_operand(const struct command *command, void *values,
                        const struct args_option **operand, char **argv, char *word)
{
    if (*operand && (*operand)->type == ARGS_OPERANDS) {
        add_word(values, *operand, argv, word);
        return ARGS_GO_ON;
    }
    if (!*operand)
        return command_refuse(command, "unexpected argument '%.80s'; see %s --help", word,
                              command->name);
    read_value(values, *operand, word);
    *operand = next_operand(*operand + 1);
    return ARGS_GO_ON;
}

/* The first operand or option that must be given and was not; NULL: none. `operand` is the
 * next one that a word without dashes would have been. */
static const struct args_option *find_missing(const struct command *command, const void *values,
                                              const struct args_option *operand)
{
    for (const struct args_option *option = command->options; option->name; option++) {
        const void *const value = (const char *)values + option->offset;

        if (!args_is_required(option))
            continue;
        if (option->type == ARGS_OPERANDS
                ? ((const struct args_words *)value)->count < option->minimum
                : (option->type == ARGS_TEXT ? !*(const char *const *)value
                                             : operand && option >= operand))
            return option;
    }
    return NULL;
}

/* Where threads are an option, so is the instruction set, by TARN_CPU. */
static bool read_cpu(const struct command *command, void *values)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (option->type == ARGS_HOST)
            return hardware_cpu(&((tarn_host *)(void *)((char *)values + option->offset))->cpu);
    return true;
}

int args_read(const struct command *command, void *values, int argc, char **argv)
{
    const struct args_option *operand = next_operand(command->options);
    bool options_end = false;

    for (const struct args_option *option = command->options; option->name; option++)
        read_value(values, option, option->initial);
    for (int i = 1; i < argc; i++) {
        const bool is_option = !options_end && argv[i][0] == '-' && argv[i][1] != '\0';

        if (is_option && args_is_help(argv[i])) {
            print_help(command);
            return EXIT_DONE;
        }
        if (is_option && strcmp(argv[i], "--") == 0) {
            options_end = true;
            continue;
        }
        const int status = is_option ? read_one(command, values, argc, argv, &i)
                                     : read_operand(command, values, &operand, argv, argv[i]);

        if (status != ARGS_GO_ON)
            return status;
    }
    const struct args_option *const absent = find_missing(command, values, operand);

    if (absent)
        return missing(command, absent);
    return read_cpu(command, values) ? ARGS_GO_ON : EXIT_USAGE;
}
