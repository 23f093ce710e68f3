/* SPDX-License-Identifier: MIT */
#include "data_progress.h"

#include <math.h>
#include <stdio.h>

#include "stopwatch.h"
#include "words.h"

struct data_progress data_progress_in(const char *folder)
{
    return (struct data_progress){.folder = folder,
                                  .line = progress_line_of(stopwatch_seconds())};
}

static void show(struct data_progress *p, uint64_t done, double at)
{
    const double speed = (double)(done - p->from) / (at - p->begin);
    struct progress_parts parts = {0};
    char there[32], total[32], pace[32], left[32];

    words_bytes(there, sizeof there, (double)done);
    words_bytes(total, sizeof total, (double)p->file->bytes);
    words_bytes(pace, sizeof pace, isfinite(speed) ? speed : 0.0);
    words_time(left, sizeof left, (double)(p->file->bytes - done) / speed);
    progress_part(&parts, 2, "%s/%s", p->folder, p->file->path);
    progress_part(&parts, 0, "%s of %s", there, total);
    progress_part(&parts, 3, "%s/s", pace);
    progress_part(&parts, 1, "%s left", left);
    progress_line_show(&p->line, &parts, at);
}

/* libcurl also calls before the first byte. */
static bool progress(void *context, const tarn_data_file *file, uint64_t done)
{
    struct data_progress *const p = context;
    const double at = stopwatch_seconds();

    if (p->file != file) {
        p->file = file;
        p->from = done;
        p->begin = p->line.shown = at;
        if (done > 0)
            fprintf(stderr, "%s/%s  resuming after byte %ju\n", p->folder, file->path,
                    (uintmax_t)done);
    }
    if (done > p->from && progress_line_is_due(&p->line, at))
        show(p, done, at);
    return true;
}

static void file(void *context, const tarn_data_file *file, tarn_data_state state)
{
    static const char *const words[] = {
        [TARN_DATA_THERE] = "ok",          [TARN_DATA_FETCHED] = "fetched",
        [TARN_DATA_UNPACKED] = "unpacked", [TARN_DATA_MISSING] = "missing",
        [TARN_DATA_WRONG] = "corrupt",
    };
    struct data_progress *const p = context;

    progress_line_erase(&p->line);
    printf("%s/%s  %s\n", p->folder, file->path, words[state]);
    fflush(stdout);
}

tarn_data_events data_progress_events(struct data_progress *p)
{
    return (tarn_data_events){.context = p, .progress = progress, .file = file};
}
