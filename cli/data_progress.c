/* SPDX-License-Identifier: MIT */
#include "data_progress.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "stopwatch.h"
#include "words.h"

static const double terminal_every = 0.1, log_every = 5.0; /* seconds between lines */

struct data_progress data_progress_in(const char *folder)
{
    return (struct data_progress){.folder = folder, .on_terminal = isatty(STDERR_FILENO)};
}

void data_progress_end_line(struct data_progress *p)
{
    if (p->line_open)
        fputs("\r\033[K", stderr);
    p->line_open = false;
}

static void show(struct data_progress *p, uint64_t done, double at)
{
    const double speed = (double)(done - p->from) / (at - p->begin);
    char there[32], total[32], pace[32], left[32];

    words_bytes(there, sizeof there, (double)done);
    words_bytes(total, sizeof total, (double)p->file->bytes);
    words_bytes(pace, sizeof pace, isfinite(speed) ? speed : 0.0);
    words_time(left, sizeof left, (double)(p->file->bytes - done) / speed);
    fprintf(stderr, "%s%s/%s  %s of %s  %s/s  %s left%s", p->on_terminal ? "\r" : "", p->folder,
            p->file->path, there, total, pace, left, p->on_terminal ? "\033[K" : "\n");
    fflush(stderr);
    p->line_open = p->on_terminal;
    p->shown = at;
}

/* libcurl calls before the first byte, too. */
static bool progress(void *context, const tarn_data_file *file, uint64_t done)
{
    struct data_progress *const p = context;
    const double at = stopwatch_seconds();

    if (p->file != file) {
        p->file = file;
        p->from = done;
        p->begin = p->shown = at;
        if (done > 0)
            fprintf(stderr, "%s/%s  going on behind byte %ju\n", p->folder, file->path,
                    (uintmax_t)done);
    }
    if (done > p->from && at - p->shown >= (p->on_terminal ? terminal_every : log_every))
        show(p, done, at);
    return true;
}

static void file(void *context, const tarn_data_file *file, tarn_data_state state)
{
    static const char *const words[] = {
        [TARN_DATA_THERE] = "is there",    [TARN_DATA_FETCHED] = "fetched",
        [TARN_DATA_UNPACKED] = "unpacked", [TARN_DATA_MISSING] = "is missing",
        [TARN_DATA_WRONG] = "is wrong",
    };
    struct data_progress *const p = context;

    data_progress_end_line(p);
    printf("%s/%s  %s\n", p->folder, file->path, words[state]);
    fflush(stdout);
}

tarn_data_events data_progress_events(struct data_progress *p)
{
    return (tarn_data_events){.context = p, .progress = progress, .file = file};
}
