/* SPDX-License-Identifier: MIT */
#include "words.h"

#include <string.h>
#include <strings.h>

#include "terminal.h"

enum { LONGEST = 40, COLUMNS_MOST = 80 };

/* Levenshtein's distance, one row of its table at a time. */
size_t words_distance(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);
    size_t row[LONGEST + 1];

    if (m > LONGEST || n > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = smaller(replaced, 1 + smaller(row[j], row[j - 1]));
        }
    }
    return row[n];
}

const char *words_nearest(const char *word, words_name *names)
{
    const char *name, *nearest = NULL;
    size_t least = 3; /* beyond, a guess only confuses */

    for (size_t i = 0; (name = names(i)) != NULL; i++) {
        const size_t distance = words_distance(word, name);

        if (distance < least && 2 * distance < strlen(name)) {
            least = distance;
            nearest = name;
        }
    }
    return nearest;
}

void words_list(char *text, size_t size, words_name *names)
{
    const char *name;
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; (name = names(i)) != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
}

bool words_end_in(const char *name, const char *ending)
{
    const size_t length = strlen(name), tail = strlen(ending);

    return length > tail && strcasecmp(name + length - tail, ending) == 0;
}

bool words_have(const char *list, const char *word)
{
    for (const char *at = list; *word && (at = strstr(at, word)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && strchr(" ,", at[strlen(word)]))
            return true;
    return false;
}

void words_wrap(FILE *out, const char *text, int column)
{
    const struct terminal terminal = terminal_of(fileno(out));
    const size_t known = terminal.is_terminal ? terminal.columns : COLUMNS_MOST;
    const int columns = (int)smaller(known, COLUMNS_MOST);
    int at = column;

    while (*text) {
        const int length = (int)strcspn(text, " ");

        if (at > column && at + 1 + length > columns) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        }
        at += fprintf(out, "%s%.*s", at > column ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

void words_examples(FILE *out, const char *lines)
{
    if (lines)
        fprintf(out, "\nexamples:\n");
    for (; lines && *lines; lines += strcspn(lines, "\n") + 1)
        fprintf(out, "  %.*s\n", (int)strcspn(lines, "\n"), lines);
}

void words_bytes(char *text, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;

    while (bytes >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024.0;
        unit++;
    }
    snprintf(text, size, "%.*f %s", unit == 0 || bytes >= 100.0 ? 0 : 1, bytes, units[unit]);
}

void words_time(char *text, size_t size, double seconds)
{
    if (!(seconds >= 0.0 && seconds < 1e9)) { /* NaN is neither */
        snprintf(text, size, "?");
        return;
    }
    const long whole = (long)(seconds + 0.5), hours = whole / 3600;

    if (hours > 0)
        snprintf(text, size, "%ld:%02ld:%02ld", hours, whole / 60 % 60, whole % 60);
    else
        snprintf(text, size, "%ld:%02ld", whole / 60, whole % 60);
}
