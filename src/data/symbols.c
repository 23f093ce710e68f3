/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* strnlen() */
#include "data/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* ---- Texts -------------------------------------------------------------- */

bool tn_symbol_is_name(const char *name, size_t length)
{
    size_t bytes = 0;

    for (size_t at = 0; at < length; at += tn_max(bytes, 1)) {
        uint32_t point = 0;

        bytes = tn_utf8_read(&point, name + at, length - at);
        if (bytes > 0 && tn_is_control(point))
            return false;
    }
    return length > 0 && length < TN_SYMBOL_BYTES;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

static const char *skip_spaces(const char *text)
{
    while (is_space(*text))
        text++;
    return text;
}

/* Spaces after the last character are ignored. What is not UTF-8 is read byte by byte. */
static bool next_character(const char **at, const char **symbol, size_t *length)
{
    const char *const after = skip_spaces(*at);
    uint32_t point;

    if (!*after)
        return false;
    *symbol = after > *at ? " " : *at;
    *length = after > *at ? 1 : tn_max(1, tn_utf8_read(&point, *at, strnlen(*at, 4)));
    *at = after > *at ? after : *at + *length;
    return true;
}

static bool next_word(const char **at, const char **symbol, size_t *length)
{
    *symbol = skip_spaces(*at);
    for (*at = *symbol; **at && !is_space(**at);)
        ++*at;
    *length = (size_t)(*at - *symbol);
    return *length > 0;
}

bool tn_symbol_next(const char **at, const char **symbol, size_t *length,
                    enum tn_symbol_kind kind)
{
    return kind == TN_CHARACTERS ? next_character(at, symbol, length)
                                 : next_word(at, symbol, length);
}

size_t tn_symbol_count(const char *transcript, enum tn_symbol_kind kind)
{
    const char *symbol;
    size_t length, count = 0;

    for (transcript = skip_spaces(transcript);
         tn_symbol_next(&transcript, &symbol, &length, kind);)
        count++;
    return count;
}

/* ---- Tables ------------------------------------------------------------- */

void tn_symbols_free(struct tn_symbols *symbols)
{
    free(symbols->name);
    tn_texts_free(&symbols->texts);
    *symbols = (struct tn_symbols){0};
}

/* Sorted, each once, with the blank before them; false: no memory. */
static bool fill(struct tn_symbols *symbols, const char *const *names, size_t count)
{
    const char **const all = malloc((count + 1) * sizeof *all);

    symbols->name = all;
    if (!all)
        return false;
    all[0] = "";
    for (size_t i = 0; i < count; i++)
        all[i + 1] = names[i];
    qsort(all, count + 1, sizeof *all, tn_compare_texts);
    for (size_t i = 0; i <= count; i++) {
        if (i > 0 && strcmp(all[symbols->count - 1], all[i]) == 0)
            continue;
        const char *const copy = tn_texts_copy(&symbols->texts, all[i], strlen(all[i]));

        if (!copy)
            return false;
        all[symbols->count++] = copy;
    }
    return true;
}

tarn_status tn_symbols_of(struct tn_symbols *symbols, const char *const *names, size_t count,
                          tarn_error *err)
{
    *symbols = (struct tn_symbols){0};
    if (fill(symbols, names, count))
        return TARN_OK;
    tn_symbols_free(symbols);
    return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu symbols", count);
}

bool tn_symbols_find(const struct tn_symbols *symbols, int32_t *number, const char *name,
                     size_t length)
{
    size_t low = 0, high = symbols->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *const found = symbols->name[middle];
        int order = strncmp(name, found, length);

        if (order == 0 && found[length])
            order = -1;
        if (order == 0) {
            *number = (int32_t)middle;
            return length > 0;
        }
        low = order > 0 ? middle + 1 : low;
        high = order > 0 ? high : middle;
    }
    return false;
}

tarn_status tn_symbols_number(const struct tn_symbols *symbols, int32_t *numbers,
                              const char *transcript, enum tn_symbol_kind kind, tarn_error *err)
{
    const char *symbol;
    size_t length;

    for (transcript = skip_spaces(transcript);
         tn_symbol_next(&transcript, &symbol, &length, kind);)
        if (!tn_symbols_find(symbols, numbers++, symbol, length))
            return tn_fail(err, TARN_EUNKNOWN,
                           "symbol '%.*s' is not one of the %zu known symbols",
                           (int)tn_min(length, 40), symbol, symbols->count - 1);
    return TARN_OK;
}
