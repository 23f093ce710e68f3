/* SPDX-License-Identifier: MIT */
#include "draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "words.h"

/* Images first .. first + streams.n - 1. */
struct group {
    struct draw *draw;
    struct stream_block streams;
    int32_t *symbols; /* of an image that are given */
    size_t first;
};

size_t image_bytes(tarn_image_size size)
{
    return size.height * size.width * size.channels;
}

tarn_image_size image_size(const char *path, const tarn_model *model)
{
    const char *const task = tarn_model_config(model)->task;
    tarn_image_size size;

    if (!tarn_task_image(&size, task))
        refuse("%s is a model of task '%s'; it must be an image model", path, task);
    if (image_bytes(size) < 2)
        refuse("%s: task '%s' does not give the size of the images; it must be like "
               "image:height=28,width=28,channels=1",
               path, task);
    return size;
}

/* ---- One group ---------------------------------------------------------- */

static unsigned char *image_at(const struct group *g, size_t b)
{
    return g->draw->pixels + (g->first + b) * image_bytes(g->draw->size);
}

/* Images that begin alike are read once. */
static void start(struct group *g)
{
    const struct draw *const d = g->draw;
    struct stream_block *const s = &g->streams;
    tarn_sampling sampling = d->sampling;

    s->n = smaller(s->n, d->count - g->first);
    stream_block_restart(s);
    for (size_t b = 0; b < s->n; b++) {
        if (b > 0 && memcmp(image_at(g, b), image_at(g, b - 1), d->given) == 0) {
            stream_block_fork(s, b, b - 1);
            continue;
        }
        for (size_t i = 0; i < d->given; i++)
            g->symbols[i] = image_at(g, b)[i];
        stream_block_prefill(s, b, g->symbols, d->given);
    }
    sampling.number += g->first;
    stream_block_sampling(s, sampling);
}

/* The first `at` bytes of the group are there, as are all images before. */
static void show_progress(const struct group *g, size_t at)
{
    const struct draw *const d = g->draw;
    const double images = (double)g->first + (double)g->streams.n * (double)(at - d->given) /
                                                 (double)(image_bytes(d->size) - d->given);
    const double speed = images / progress_seconds();
    char left[32];

    if (!progress_is_due())
        return;
    words_time(left, sizeof left, ((double)d->count - images) / speed);
    progress_part(0, "%.0f %% of %zu image%s", floor(100.0 * images / (double)d->count),
                  d->count, plural(d->count));
    progress_part(2, "%.3g images/s", speed);
    progress_part(1, "%s left", left);
    progress_show();
}

static void draw_group(struct group *g)
{
    const struct draw *const d = g->draw;

    start(g);
    for (size_t at = d->given; at < image_bytes(d->size); at++) {
        if (at > d->given)
            stream_block_step(&g->streams, NULL);
        stream_block_draw(&g->streams, NULL);
        for (size_t b = 0; b < g->streams.n; b++)
            image_at(g, b)[at] = (unsigned char)tarn_stream_next(g->streams.at[b]);
        show_progress(g, at + 1);
    }
}

/* ---- All of them -------------------------------------------------------- */

void draw_images(struct draw *d)
{
    const size_t at_once = d->at_once ? d->at_once : DRAW_AT_ONCE;
    struct group g = {.draw = d};

    progress_begin();
    d->how.longest = image_bytes(d->size) - 1; /* the last is not read */
    g.streams = stream_block_open(d->model, &d->how, smaller(at_once, d->count));
    g.symbols = allocate(d->given, sizeof *g.symbols, "%zu bytes of an image", d->given);
    for (; g.first < d->count; g.first += g.streams.n)
        draw_group(&g);
    progress_erase();
    d->seconds = progress_seconds();
    stream_block_close(&g.streams);
    free(g.symbols);
}
