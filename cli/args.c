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
#include "help.h"
#include "words.h"

/* ---- Questions ---------------------------------------------------------- */

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

/* ---- Values ------------------------------------------------------------- */

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

/* "1,64", "512..65536" */
static bool read_counts(struct args_counts *counts, const struct args_option *option,
                        const char *text, const char *separator, size_t most)
{
    uintmax_t number;

    for (counts->count = 0; counts->count < most; text += strlen(separator)) {
        if (!read_digits(&number, &text) || number < option->minimum ||
            number > option->maximum)
            return false;
        counts->numbers[counts->count++] = (size_t)number;
        if (strncmp(text, separator, strlen(separator)) != 0)
            return !*text;
    }
    return false;
}

static bool read_span(struct args_counts *span, const struct args_option *option,
                      const char *text)
{
    return read_counts(span, option, text, "..", 2) &&
           span->numbers[0] <= span->numbers[span->count - 1];
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

static bool read_number(double *number, const struct args_option *option, const char *text)
{
    char *end;

    *number = strtod(text, &end);
    if (end == text || *end || !isfinite(*number))
        return false;
    if (option->type == ARGS_SECONDS)
        return *number > 0.0;
    return *number >= (double)option->minimum && *number <= (double)option->maximum;
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
        return read_counts(value, option, text, ",", ARGS_COUNTS_MOST);
    case ARGS_SPAN:
        return read_span(value, option, text);
    case ARGS_BYTES:
        return read_bytes(value, option, text);
    case ARGS_HOST:
        return read_count(&((tarn_host *)value)->threads, option, text);
    case ARGS_SECONDS:
    case ARGS_NUMBER:
        return read_number(value, option, text);
    case ARGS_TEXT:
    case ARGS_FIELD:
    case ARGS_OPERAND:
        *(const char **)value = text;
        return true;
    case ARGS_OPERANDS:
        *(struct args_words *)value = (struct args_words){0};
        return true;
    }
    return false;
}

/* ---- Messages ----------------------------------------------------------- */

_Noreturn static void wrong_value(const struct args_option *option, const char *text)
{
    static const char *const expected[] = {
        [ARGS_COUNT] = "a whole number",
        [ARGS_HOST] = "a whole number",
        [ARGS_COUNTS] = "up to 16 whole numbers, separated by commas, each",
        [ARGS_SPAN] = "LO..HI, such as 512..65536, each",
        [ARGS_BYTES] = "a size such as 512M or 8G",
        [ARGS_SECONDS] = "a number of seconds above 0",
        [ARGS_NUMBER] = "a number",
    };
    char range[64] = "";

    if (option->type == ARGS_BYTES)
        snprintf(range, sizeof range, ", up to %zuT", option->maximum >> 40);
    else if (option->maximum == SIZE_MAX)
        snprintf(range, sizeof range, " of at least %zu", option->minimum);
    else if (option->type != ARGS_SECONDS)
        snprintf(range, sizeof range, " from %zu to %zu", option->minimum, option->maximum);
    refuse("%s%s is '%.80s'; it must be %s%s", args_dashes(option), option->name, text,
           expected[option->type], range);
}

/* `word` with its dashes, `name` without. */
_Noreturn static void unknown_option(const struct command *command, const char *word,
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
    if (nearest)
        refuse("unknown option '%.80s'; did you mean --%s?", word, nearest->name);
    refuse("unknown option '%.80s'; %s --help lists all options", word, command->name);
}

/* ---- Reading ------------------------------------------------------------ */

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
static void read_option(const struct command *command, void *values, int argc, char **argv,
                        int *i)
{
    char word[64];
    const struct args_option *const option = find(command, argv[*i]);
    const char *text = strchr(argv[*i], '=');

    snprintf(word, sizeof word, "%.*s", (int)strcspn(argv[*i], "="), argv[*i]);
    if (!option)
        unknown_option(command, word, word + strspn(word, "-"));
    if (!option->argument) {
        if (text)
            refuse("%s does not take a value", word);
        text = "true";
    } else if (text) {
        text++;
    } else if (*i + 1 < argc) {
        text = argv[++*i];
    } else {
        refuse("%s requires a value: %s %s", word, word, option->argument);
    }
    if (!read_value(values, option, text))
        wrong_value(option, text);
}

/* The next operand of the table from *option on. */
static const struct args_option *next_operand(const struct args_option *option)
{
    while (option->name && !args_is_operand(option))
        option++;
    return option->name ? option : NULL;
}

/* A list is kept at the beginning of argv: those words were read already. */
static void read_operand(const struct command *command, void *values,
                         const struct args_option **operand, char **argv, char *word)
{
    if (!*operand)
        refuse("unexpected argument '%.80s'; see %s --help", word, command->name);
    if ((*operand)->type == ARGS_OPERANDS) {
        struct args_words *const list = (void *)((char *)values + (*operand)->offset);

        list->words = argv + 1;
        list->words[list->count++] = word;
        return;
    }
    read_value(values, *operand, word);
    *operand = next_operand(*operand + 1);
}

/* "-o FILE is required: ...". `operand` is the next one that a word without dashes would have
 * been. */
static void check_required(const struct command *command, const void *values,
                           const struct args_option *operand)
{
    for (const struct args_option *option = command->options; option->name; option++) {
        const void *const value = (const char *)values + option->offset;
        bool missing = args_is_required(option);

        if (option->type == ARGS_OPERANDS)
            missing = ((const struct args_words *)value)->count < option->minimum;
        else if (option->type == ARGS_OPERAND)
            missing = missing && operand && option >= operand;
        else
            missing = missing && !*(const char *const *)value;
        if (missing)
            refuse("%s%s%s%s is required: %s", args_dashes(option), option->name,
                   option->argument ? " " : "", option->argument ? option->argument : "",
                   option->help);
    }
}

void args_read(const struct command *command, void *values, int argc, char **argv)
{
    const struct args_option *operand = next_operand(command->options);
    bool options_end = false;

    for (const struct args_option *option = command->options; option->name; option++)
        read_value(values, option, option->type == ARGS_FIELD ? NULL : option->initial);
    for (int i = 1; i < argc; i++) {
        const bool is_option = !options_end && argv[i][0] == '-' && argv[i][1] != '\0';

        if (is_option && args_is_help(argv[i])) {
            help_print(command);
            leave(EXIT_DONE);
        }
        if (is_option && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (is_option)
            read_option(command, values, argc, argv, &i);
        else
            read_operand(command, values, &operand, argv, argv[i]);
    }
    check_required(command, values, operand);
    for (const struct args_option *option = command->options; option->name; option++)
        if (option->type == ARGS_HOST)
            ((tarn_host *)(void *)((char *)values + option->offset))->cpu = hardware_cpu();
}

void args_set_fields(const struct args_option *options, const void *values, args_set *set,
                     void *context)
{
    char field[64];

    for (const struct args_option *option = options; option->name; option++) {
        const void *const value = (const char *)values + option->offset;

        if (option->type != ARGS_FIELD || !*(const char *const *)value)
            continue;
        snprintf(field, sizeof field, "%s", option->name);
        for (char *at = field; (at = strchr(at, '-')) != NULL;)
            *at = '_';
        set(context, field, *(const char *const *)value);
    }
}
