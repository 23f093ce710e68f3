/* SPDX-License-Identifier: MIT */
/* progress.h - the progress of long work on standard error: on a terminal one line that is
 * rewritten and never wider than the terminal, elsewhere a line every few seconds.
 *
 *     progress_begin();
 *     ...
 *     if (progress_is_due()) {
 *         progress_part(0, "update %zu/%zu", update, updates);
 *         progress_part(1, "loss %.4f", loss);
 *         progress_show();
 *     }
 *     progress_erase(); */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>

#include "tarn/tarn.h"

/* The first line is due an interval later. */
void progress_begin(void);
double progress_seconds(void); /* since then */

/* Whether it is time for another line; whether that can be rewritten. */
bool progress_is_due(void);
bool progress_on_terminal(void);

/* Appends a part to the next line. Where a terminal is too narrow, the part of the highest rank
 * goes first; rank 0 stays, cut. */
void progress_part(int rank, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress_show(void);

/* Keeps the open line, if there is one, or removes it: what follows begins a line. */
void progress_keep(void);
void progress_erase(void);

/* From now on Ctrl-C and SIGTERM ask the work to stop; a second one ends the program. So does a
 * limit of processor time (ulimit -S -t), which repeats its signal every second. */
void progress_listen(void);
bool progress_must_stop(void);

/* Reports a skipped part of the data, on a line of its own. */
void progress_skipped(const tarn_skipped *skipped);

#endif
