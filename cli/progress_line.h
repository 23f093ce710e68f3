/* SPDX-License-Identifier: MIT */
/* progress_line.h - progress on standard error: on a terminal one line that is rewritten and
 * never wider than the terminal, elsewhere a line every few seconds.
 *
 *     struct progress_parts parts = {0};
 *     progress_part(&parts, 0, "update %zu/%zu", update, updates);
 *     progress_part(&parts, 1, "loss %.4f", loss);
 *     progress_line_show(&line, &parts, stopwatch_seconds()); */
#ifndef PROGRESS_LINE_H
#define PROGRESS_LINE_H

#include "terminal.h"

struct progress_line {
    bool on_terminal; /* that can rewrite a line */
    bool open;        /* there is a line that the next one replaces */
    double shown;     /* seconds: when the last line was written */
};

/* `now`: in seconds. The first line is due an interval later. */
struct progress_line progress_line_of(double now);

/* Whether it is time for another line. */
bool progress_line_is_due(const struct progress_line *line, double now);

enum { PROGRESS_PARTS = 8, PROGRESS_PART_SIZE = 160 };

/* From left to right. */
struct progress_parts {
    size_t count;
    struct {
        char text[PROGRESS_PART_SIZE];
        int rank;
    } part[PROGRESS_PARTS];
};

/* Where a terminal is too narrow, the part of the highest rank goes first; rank 0 stays, cut.
 */
void progress_part(struct progress_parts *parts, int rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void progress_line_show(struct progress_line *line, const struct progress_parts *parts,
                        double now);

/* Keeps the open line, if there is one, or removes it: what follows begins a line. */
void progress_line_keep(struct progress_line *line);
void progress_line_erase(struct progress_line *line);

#endif
