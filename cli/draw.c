/* SPDX-License-Identifier: MIT */
#include "draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_open.h"
#include "progress_line.h"
#include "stopwatch.h"
#include "stream_block.h"
#include "words.h"

/* Images first .. first + streams.n - 1. */
struct group {
    struct draw *draw;
    struct stream_block streams;
    int32_t *symbols; /* of an image that are given, or one of each */
    size_t first;
    struct progress_line line;
    double begin; /* seconds: when the first was begun */
};

size_t draw_bytes(tarn_image_size size)
{
    return size.height * size.width * size.channels;
}

tarn_image_size draw_size(const struct command *command, const char *path,
                          const tarn_model *model)
{
    const char *const task = tarn_model_config(model)->task;
    tarn_image_size size;

    if (!tarn_task_image(&size, task))
        command_refuse(command, "%s is a model of task '%s'; it must be an image model", path,
                       task);
    else if (draw_bytes(size) < 2)
        command_refuse(command,
                       "%s: task '%s' does not give the size of the images; it must be like "
                       "image:height=28,width=28,channels=1",
                       path, task);
    return draw_bytes(size) < 2 ? (tarn_image_size){0} : size;
}

/* ---- One group ---------------------------------------------------------- */

static unsigned char *image_at(const struct group *g, size_t b)
{
    return g->draw->pixels + (g->first + b) * draw_bytes(g->draw->size);
}

/* Images that begin alike are read once. */
static int start(struct group *g)
{
    const struct draw *const d = g->draw;
    struct stream_block *const s = &g->streams;
    tarn_sampling sampling = d->sampling;
    tarn_error err;

    s->n = d->count - g->first < s->n ? d->count - g->first : s->n;
    stream_block_restart(s);
    for (size_t b = 0; b < s->n; b++) {
        if (b > 0 && memcmp(image_at(g, b), image_at(g, b - 1), d->given) == 0) {
            stream_block_fork(s, b, b - 1);
            continue;
        }
        for (size_t i = 0; i < d->given; i++)
            g->symbols[i] = image_at(g, b)[i];
        if (tarn_engine_prefill(s->engine, s->at[b], s->outputs + b * s->width, g->symbols,
                                d->given, &err) != TARN_OK)
            return command_error(d->command, &err);
    }
    sampling.number += g->first;
    return stream_block_sampling(s, &sampling, &err) == TARN_OK
               ? ARGS_GO_ON
               : command_error(d->command, &err);
}

/* Byte `at` of all images of the group. */
static void put(const struct group *g, size_t at)
{
    for (size_t b = 0; b < g->streams.n; b++)
        image_at(g, b)[at] = (unsigned char)tarn_stream_next(g->streams.at[b]);
}

/* Whose first `at` bytes are there, as are all images before. */
static void show_progress(struct group *g, size_t at)
{
    const struct draw *const d = g->draw;
    const double images = (double)g->first + (double)g->streams.n * (double)(at - d->given) /
                                                 (double)(draw_bytes(d->size) - d->given);
    const double now = stopwatch_seconds(), speed = images / (now - g->begin);
    struct progress_parts parts = {0};
    char left[32];

    if (!progress_line_is_due(&g->line, now))
        return;
    words_time(left, sizeof left, ((double)d->count - images) / speed);
    progress_part(&parts, 0, "%.0f %% of %zu image%s", floor(100.0 * images / (double)d->count),
                  d->count, d->count == 1 ? "" : "s");
    progress_part(&parts, 2, "%.3g images/s", speed);
    progress_part(&parts, 1, "%s left", left);
    progress_line_show(&g->line, &parts, now);
}

static int draw_group(struct group *g)
{
    const struct draw *const d = g->draw;
    const size_t bytes = draw_bytes(d->size);
    tarn_error err;
    const int code = start(g);

    for (size_t at = d->given; code == ARGS_GO_ON && at < bytes; at++) {
        if (at > d->given && stream_block_step(&g->streams, NULL, &err) != TARN_OK)
            return command_error(d->command, &err);
        if (stream_block_draw(&g->streams, NULL, &err) != TARN_OK)
            return command_error(d->command, &err);
        put(g, at);
        show_progress(g, at + 1);
    }
    return code;
}

/* ---- All of them -------------------------------------------------------- */

static size_t at_once(const struct draw *d)
{
    if (d->at_once > 0 && d->at_once < d->count)
        return d->at_once;
    return d->at_once == 0 && d->count > DRAW_AT_ONCE ? DRAW_AT_ONCE : d->count;
}

static int set_up(struct group *g)
{
    struct draw *const d = g->draw;
    tarn_engine_desc how = d->how;
    tarn_error err;

    how.longest = draw_bytes(d->size) - 1; /* the last is not read */
    if (stream_block_open(&g->streams, d->model, &how, at_once(d), &err) != TARN_OK)
        return command_error(d->command, &err);
    g->symbols = malloc(d->given * sizeof *g->symbols);
    if (g->symbols)
        return ARGS_GO_ON;
    return command_fail(d->command, "not enough memory for %zu bytes of an image", d->given);
}

int draw_images(struct draw *d)
{
    const double begin = stopwatch_seconds();
    struct group g = {.draw = d, .line = progress_line_of(begin), .begin = begin};
    int code = set_up(&g);

    for (; code == ARGS_GO_ON && g.first < d->count; g.first += g.streams.n)
        code = draw_group(&g);
    progress_line_erase(&g.line);
    d->seconds = stopwatch_seconds() - begin;
    stream_block_close(&g.streams);
    free(g.symbols);
    return code == ARGS_GO_ON ? EXIT_DONE : code;
}
