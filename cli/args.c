/* SPDX-License-Identifier: MIT */
#include "args.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

/* ---- help --------------------------------------------------------------- */

static void print_option(const struct args_option *option)
{
    char text[512];
    const int column = 26;
    const int used = printf("  --%s%s%s", option->name, option->argument ? " " : "",
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
    printf("usage: %s [options]\n\n", command->name);
    words_wrap(stdout, command->help, 0);
    printf("\n");
    for (const struct args_option *option = command->options; option->name; option++)
        print_option(option);
    printf("  --help\n");
    if (command->more_help)
        command->more_help();
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

static bool read_seconds(double *seconds, const char *text)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && !*end && isfinite(*seconds) && *seconds > 0.0;
}

static bool read_value(void *values, const struct args_option *option, const char *text)
{
    void *const value = (char *)values + option->offset;

    switch (option->type) {
    case ARGS_FLAG:
        *(bool *)value = text != NULL;
        return true;
    case ARGS_COUNT:
        return read_count(value, option, text);
    case ARGS_BYTES:
        return read_bytes(value, option, text);
    case ARGS_SECONDS:
        return read_seconds(value, text);
    case ARGS_TEXT:
        *(const char **)value = text;
        return true;
    }
    return false;
}

/* ---- messages ----------------------------------------------------------- */

static int wrong_value(const struct args_command *command, const struct args_option *option,
                       const char *text)
{
    fprintf(stderr, "%s: --%s: '%.80s'; expected ", command->name, option->name, text);
    if (option->type == ARGS_SECONDS)
        fprintf(stderr, "seconds above 0\n");
    else
        fprintf(stderr, "%s from %zu to %zu\n",
                option->type == ARGS_BYTES ? "bytes, such as 512M or 8G," : "a whole number",
                option->minimum, option->maximum);
    return EXIT_USAGE;
}

static int unknown_option(const struct args_command *command, const char *name)
{
    const char *nearest = NULL;
    size_t least = 4; /* beyond, a guess only confuses */

    for (const struct args_option *option = command->options; option->name; option++) {
        const size_t distance = words_distance(name, option->name);

        if (distance < least) {
            least = distance;
            nearest = option->name;
        }
    }
    fprintf(stderr, "%s: no option '--%.80s'", command->name, name);
    if (nearest) {
        fprintf(stderr, "; did you mean --%s?\n", nearest);
        return EXIT_USAGE;
    }
    fprintf(stderr, "; there are");
    for (const struct args_option *option = command->options; option->name; option++)
        fprintf(stderr, " --%s", option->name);
    fprintf(stderr, "\n");
    return EXIT_USAGE;
}

/* ---- reading ------------------------------------------------------------ */

static const struct args_option *find(const struct args_command *command, const char *name)
{
    for (const struct args_option *option = command->options; option->name; option++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

/* One option at argv[*i], and its value there or behind it. Moves *i to the last word used. */
static int read_one(const struct args_command *command, void *values, int argc, char **argv,
                    int *i)
{
    char name[64];
    const char *const word = argv[*i] + 2;
    const char *text = strchr(word, '=');

    snprintf(name, sizeof name, "%.*s", text ? (int)(text - word) : (int)sizeof name, word);
    const struct args_option *const option = find(command, name);
    if (!option)
        return unknown_option(command, name);
    if (option->type == ARGS_FLAG) {
        if (text) {
            fprintf(stderr, "%s: --%s takes no value\n", command->name, name);
            return EXIT_USAGE;
        }
        text = name;
    } else if (text) {
        text++;
    } else if (*i + 1 < argc) {
        text = argv[++*i];
    } else {
        fprintf(stderr, "%s: --%s needs a value: --%s %s\n", command->name, name, name,
                option->argument);
        return EXIT_USAGE;
    }
    return read_value(values, option, text) ? ARGS_GO_ON : wrong_value(command, option, text);
}

int args_read(const struct args_command *command, void *values, int argc, char **argv)
{
    for (const struct args_option *option = command->options; option->name; option++)
        read_value(values, option, option->initial);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return EXIT_DONE;
        }
        if (strncmp(argv[i], "--", 2) != 0) {
            fprintf(stderr, "%s: '%.80s' is no option; see %s --help\n", command->name, argv[i],
                    command->name);
            return EXIT_USAGE;
        }
        const int status = read_one(command, values, argc, argv, &i);
        if (status != ARGS_GO_ON)
            return status;
    }
    return ARGS_GO_ON;
}
