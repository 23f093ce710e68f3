/* SPDX-License-Identifier: MIT */
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog.h"
#include "rows_help.h"
#include "words.h"

/* ---- help --------------------------------------------------------------- */

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

static void print_option(const struct args_option *option)
{
    char text[512];
    const int column = 26;
    const int used =
        printf("  %s%s%s%s", args_dashes(option), option->name, option->argument ? " " : "",
               option->argument ? option->argument : "");

    snprintf(text, sizeof text, "%s%s%s%s", option->help, option->initial ? " [" : "",
             option->initial ? option->initial : "", option->initial ? "]" : "");
    if (used >= column)
        printf("\n%*s", column, "");
    else
        printf("%*s", column - used, "");
    words_wrap(stdout, text, column);
}

static void print_help(const struct args_command *command)
{
    printf("usage: %s", command->name);
    for (const struct args_option *option = command->options; option->name; option++)
        if (args_is_operand(option)) {
            printf(option->minimum ? " %s" : " [%s]", option->name);
            printf("%s", option->type == ARGS_OPERANDS ? "..." : "");
        }
    printf(" [options]\n\n");
    words_wrap(stdout, command->help, 0);
    printf("\n");
    for (const struct args_option *option = command->options; option->name; option++)
        print_option(option);
    printf("  --help\n");
    for (const struct args_table *table = command->tables; table && table->row; table++)
        if (table->title)
            rows_help(table->title, table->row);
    if (command->notes) {
        printf("\n");
        words_wrap(stdout, command->notes, 0);
    }
}

const struct args_table *args_table_of(const struct args_command *command, const char *option)
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
    case ARGS_BYTES:
        return read_bytes(value, option, text);
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

static int wrong_value(const struct args_command *command, const struct args_option *option,
                       const char *text)
{
    static const char *const expected[] = {
        [ARGS_COUNT] = "a whole number",
        [ARGS_BYTES] = "bytes, such as 512M or 8G,",
        [ARGS_NUMBER] = "a number",
    };

    fprintf(stderr, "%s: %s%s: '%.80s'; expected ", command->name, args_dashes(option),
            option->name, text);
    if (option->type == ARGS_SECONDS)
        fprintf(stderr, "seconds above 0\n");
    else
        fprintf(stderr, "%s from %zu to %zu\n", expected[option->type], option->minimum,
                option->maximum);
    return EXIT_USAGE;
}

/* `word` with its dashes, `name` without. */
static int unknown_option(const struct args_command *command, const char *word,
                          const char *name)
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
    fprintf(stderr, "%s: no option '%.80s'", command->name, word);
    if (nearest) {
        fprintf(stderr, "; did you mean --%s?\n", nearest->name);
        return EXIT_USAGE;
    }
    fprintf(stderr, "; there are");
    for (const struct args_option *option = command->options; option->name; option++)
        if (!args_is_operand(option))
            fprintf(stderr, " %s%s", args_dashes(option), option->name);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

static int missing_operand(const struct args_command *command, const struct args_option *option)
{
    fprintf(stderr, "%s: no %s; expected %s\n", command->name, option->name, option->help);
    return EXIT_USAGE;
}

/* ---- reading ------------------------------------------------------------ */

/* What `word` names: up to its '=', behind one dash a single letter, behind two more. */
static const struct args_option *find(const struct args_command *command, const char *word)
{
    const char *const name = word + (word[1] == '-' ? 2 : 1);
    const size_t length = strcspn(name, "=");

    for (const struct args_option *option = command->options; option->name; option++)
        if (strncmp(option->name, name, length) == 0 && option->name[length] == '\0' &&
            strlen(args_dashes(option)) == (size_t)(name - word))
            return option;
    return NULL;
}

/* One option at argv[*i], and its value there or behind it. Moves *i to the last word used. */
static int read_one(const struct args_command *command, void *values, int argc, char **argv,
                    int *i)
{
    char word[64];
    const struct args_option *const option = find(command, argv[*i]);
    const char *text = strchr(argv[*i], '=');

    snprintf(word, sizeof word, "%.*s", (int)strcspn(argv[*i], "="), argv[*i]);
    if (!option)
        return unknown_option(command, word, word + strspn(word, "-"));
    if (option->type == ARGS_FLAG) {
        if (text) {
            fprintf(stderr, "%s: %s takes no value\n", command->name, word);
            return EXIT_USAGE;
        }
        text = word;
    } else if (text) {
        text++;
    } else if (*i + 1 < argc) {
        text = argv[++*i];
    } else {
        fprintf(stderr, "%s: %s needs a value: %s %s\n", command->name, word, word,
                option->argument);
        return EXIT_USAGE;
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

/* One more word of a list, which lies at the beginning of argv: of that all was read before. */
static void add_word(void *values, const struct args_option *operand, char **argv, char *word)
{
    struct args_words *const list = (void *)((char *)values + operand->offset);

    list->words = argv + 1;
    list->words[list->count++] = word;
}

static int read_operand(const struct args_command *command, void *values,
                        const struct args_option **operand, char **argv, char *word)
{
    if (*operand && (*operand)->type == ARGS_OPERANDS) {
        add_word(values, *operand, argv, word);
        return ARGS_GO_ON;
    }
    if (!*operand) {
        fprintf(stderr, "%s: '%.80s' is no option; see %s --help\n", command->name, word,
                command->name);
        return EXIT_USAGE;
    }
    read_value(values, *operand, word);
    *operand = next_operand(*operand + 1);
    return ARGS_GO_ON;
}

static bool lacks(const void *values, const struct args_option *operand)
{
    const struct args_words *const list =
        (const void *)((const char *)values + operand->offset);

    return operand->type == ARGS_OPERANDS ? list->count < operand->minimum
                                          : operand->minimum > 0;
}

int args_read(const struct args_command *command, void *values, int argc, char **argv)
{
    const struct args_option *operand = next_operand(command->options);
    bool options_end = false;

    if (catalog_takes(command))
        return EXIT_DONE;
    for (const struct args_option *option = command->options; option->name; option++)
        read_value(values, option, option->initial);
    for (int i = 1; i < argc; i++) {
        const bool is_option = !options_end && argv[i][0] == '-' && argv[i][1] != '\0';

        if (is_option && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
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
    return operand && lacks(values, operand) ? missing_operand(command, operand) : ARGS_GO_ON;
}
