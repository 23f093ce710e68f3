/* SPDX-License-Identifier: MIT */
#include "base/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/number.h"

/* A stretch of the text: never copied, never longer than the text. */
struct span {
    const char *start;
    size_t length;
};

static bool span_is(struct span span, const char *word)
{
    return strlen(word) == span.length && memcmp(span.start, word, span.length) == 0;
}

static struct span span_until(const char *text, const char *stops)
{
    return (struct span){text, strcspn(text, stops)};
}

/* For messages: what a hostile caller wrote may be long. */
static int shown(struct span span)
{
    return (int)tn_min(span.length, 40);
}

/* The names that are known, for the message about one that is not. */
struct known {
    struct tn_nearest nearest;
    char text[192]; /* "a, b, c", as far as it fits */
    bool full;
};

enum { LIST_MOST = 150 }; /* of the text; the rest is for what was probably meant */

static struct known known_for(struct span name)
{
    return (struct known){.nearest = {.word = name.start, .length = name.length}};
}

static void known_add(struct known *known, const char *name)
{
    const size_t used = strlen(known->text);

    tn_nearest_try(&known->nearest, name);
    if (known->full)
        return;
    known->full = used + strlen(name) + 2 > LIST_MOST;
    snprintf(known->text + used, sizeof known->text - used, "%s%s", used ? ", " : "",
             known->full ? "..." : name);
}

/* "a, b, c; did you mean b?", or without the question. To be called once. */
static const char *known_text(struct known *known)
{
    const size_t used = strlen(known->text);

    if (known->nearest.name)
        snprintf(known->text + used, sizeof known->text - used, "; did you mean %s?",
                 known->nearest.name);
    return used > 0 ? known->text : "none";
}

/* ---- Options ------------------------------------------------------------ */

static tarn_status unknown_option(const tarn_table_row *row, const char *what, struct span name,
                                  tarn_error *err)
{
    struct known known = known_for(name);

    for (const tarn_option_info *option = row->options; option->name; option++)
        known_add(&known, option->name);
    return tn_fail(err, TARN_EUNKNOWN, "%s: '%s' has no option '%.*s'; available: %s", what,
                   row->name, shown(name), name.start, known_text(&known));
}

static tarn_status read_choice(double *value, const tarn_option_info *option, const char *what,
                               struct span text, tarn_error *err)
{
    struct known known = known_for(text);

    for (size_t i = 0; option->choices[i]; i++) {
        if (span_is(text, option->choices[i])) {
            *value = (double)i;
            return TARN_OK;
        }
        known_add(&known, option->choices[i]);
    }
    return tn_fail(err, TARN_EINVAL, "%s: %s is '%.*s'; it must be one of %s", what,
                   option->name, shown(text), text.start, known_text(&known));
}

static tarn_status read_number(double *value, const tarn_option_info *option, const char *what,
                               struct span text, tarn_error *err)
{
    double number;
    const bool read = tn_number_read(&number, text.start, text.length);

    if (!read || number < option->minimum || number > option->maximum ||
        (option->whole && number != floor(number)))
        return tn_fail(err, TARN_EINVAL,
                       "%s: %s is '%.*s'; it must be a%s number from %g to %g", what,
                       option->name, shown(text), text.start, option->whole ? " whole" : "",
                       option->minimum, option->maximum);
    *value = number;
    return TARN_OK;
}

static tarn_status read_one(struct tn_options *options, bool *given, const tarn_table_row *row,
                            const char *what, struct span pair, tarn_error *err)
{
    const struct span name = {pair.start, strcspn(pair.start, "=,")};

    for (size_t i = 0; row->options[i].name; i++) {
        const tarn_option_info *const option = &row->options[i];

        if (!span_is(name, option->name))
            continue;
        if (name.length == pair.length)
            return tn_fail(err, TARN_EINVAL, "%s: %s has no value; write %s=VALUE", what,
                           option->name, option->name);
        if (given[i])
            return tn_fail(err, TARN_EINVAL, "%s: %s is given twice; give it once", what,
                           option->name);
        given[i] = true;
        const struct span text = {name.start + name.length + 1, pair.length - name.length - 1};

        return option->choices ? read_choice(&options->value[i], option, what, text, err)
                               : read_number(&options->value[i], option, what, text, err);
    }
    return unknown_option(row, what, name, err);
}

/* Every option of `row`, from `text` where it is given, else as declared. */
static tarn_status read_options(struct tn_options *options, const tarn_table_row *row,
                                const char *what, const char *text, tarn_error *err)
{
    tarn_status status = TARN_OK;
    bool given[TN_OPTIONS_MAX] = {false};
    const char *at = strchr(text, ':');

    for (size_t i = 0; row->options[i].name; i++)
        options->value[i] = row->options[i].initial;
    while (status == TARN_OK && at) {
        const struct span pair = span_until(at + 1, ",");

        status = read_one(options, given, row, what, pair, err);
        at = pair.start[pair.length] ? pair.start + pair.length : NULL;
    }
    return status;
}

/* ---- Tables ------------------------------------------------------------- */

const tarn_option_info tn_no_options[] = {{0}};

static tarn_status find_row(const tarn_table_row **row, const struct tn_table *table,
                            const char *text, tarn_error *err)
{
    const struct span name = span_until(text, ":");
    struct known known = known_for(name);

    for (size_t i = 0; (*row = table->row(i)) != NULL; i++) {
        if (span_is(name, (*row)->name))
            return TARN_OK;
        known_add(&known, (*row)->name);
    }
    return tn_fail(err, TARN_EUNKNOWN, "%s: unknown name '%.*s'; available: %s", table->what,
                   shown(name), name.start, known_text(&known));
}

const void *tn_table_find(const struct tn_table *table, struct tn_options *options,
                          const char *text, tarn_status *status, tarn_error *err)
{
    const tarn_table_row *row;
    tarn_status found = find_row(&row, table, text, err);

    if (found == TARN_OK && options)
        found = read_options(options, row, table->what, text, err);
    if (status)
        *status = found;
    return found == TARN_OK ? row : NULL;
}

tarn_status tn_table_check(const struct tn_table *table, const char *text, tarn_error *err)
{
    struct tn_options options;
    tarn_status status;

    tn_table_find(table, &options, text, &status, err);
    return status;
}

tarn_status tn_option_word(size_t *index, const char *const *words, const char *what,
                           const char *text, tarn_error *err)
{
    struct known known = known_for((struct span){text, strlen(text)});

    for (size_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            *index = i;
            return TARN_OK;
        }
        known_add(&known, words[i]);
    }
    return tn_fail(err, TARN_EUNKNOWN, "%s: unknown name '%.40s'; available: %s", what, text,
                   known_text(&known));
}
