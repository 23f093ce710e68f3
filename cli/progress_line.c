/* SPDX-License-Identifier: MIT */
#include "progress_line.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double terminal_every = 0.1, log_every = 5.0; /* seconds between lines */
static const char between[] = "  ";

struct progress_line progress_line_of(double now)
{
    return (struct progress_line){.on_terminal = terminal_of(STDERR_FILENO).rewrites,
                                  .shown = now};
}

bool progress_line_is_due(const struct progress_line *line, double now)
{
    return now - line->shown >= (line->on_terminal ? terminal_every : log_every);
}

void progress_part(struct progress_parts *parts, int rank, const char *format, ...)
{
    va_list args;

    if (parts->count == PROGRESS_PARTS)
        return;
    va_start(args, format);
    vsnprintf(parts->part[parts->count].text, PROGRESS_PART_SIZE, format, args);
    va_end(args);
    parts->part[parts->count++].rank = rank;
}

/* ---- Width -------------------------------------------------------------- */

/* Characters of UTF-8: bytes that do not continue one. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static size_t width_below(const struct progress_parts *parts, int rank)
{
    size_t width = 0;

    for (size_t i = 0; i < parts->count; i++)
        if (parts->part[i].rank < rank)
            width += (width ? strlen(between) : 0) + width_of(parts->part[i].text);
    return width;
}

/* Parts below this rank fit. The last column stays free: many terminals wrap when it is used.
 */
static int rank_that_fits(const struct progress_parts *parts, size_t columns)
{
    int rank = 1;

    for (size_t i = 0; i < parts->count; i++)
        rank = parts->part[i].rank >= rank ? parts->part[i].rank + 1 : rank;
    while (rank > 1 && width_below(parts, rank) >= columns)
        rank--;
    return rank;
}

static void cut(char *text, size_t columns)
{
    size_t width = 0;

    for (; *text; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
        if (width >= columns) {
            *text = '\0';
            return;
        }
    }
}

/* ---- Lines -------------------------------------------------------------- */

enum { LINE_SIZE = PROGRESS_PARTS * (PROGRESS_PART_SIZE + sizeof between) };

static void join(char line[LINE_SIZE], const struct progress_parts *parts, size_t columns)
{
    const int rank = rank_that_fits(parts, columns);
    size_t used = 0;

    *line = '\0';
    for (size_t i = 0; i < parts->count; i++)
        if (parts->part[i].rank < rank)
            used += (size_t)snprintf(line + used, LINE_SIZE - used, "%s%s", used ? between : "",
                                     parts->part[i].text);
    cut(line, columns);
}

/* In one piece: standard error has no buffer, and half a line would flicker. */
void progress_line_show(struct progress_line *line, const struct progress_parts *parts,
                        double now)
{
    char text[LINE_SIZE];

    join(text, parts, line->on_terminal ? terminal_of(STDERR_FILENO).columns : SIZE_MAX);
    fprintf(stderr, line->on_terminal ? "\r%s\033[K" : "%s\n", text);
    line->open = line->on_terminal;
    line->shown = now;
}

void progress_line_keep(struct progress_line *line)
{
    if (line->open)
        fputc('\n', stderr);
    line->open = false;
}

void progress_line_erase(struct progress_line *line)
{
    if (line->open)
        fputs("\r\033[K", stderr);
    line->open = false;
}
