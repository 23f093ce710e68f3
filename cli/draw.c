/* SPDX-License-Identifier: MIT */
#include "draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_open.h"
#include "progress_line.h"
#include "stopwatch.h"
#include "words.h"

/* Images first .. first + B - 1. If fewer are left, the last one is repeated and the copies are
 * discarded, so that all matrix products have the same shape. */
struct group {
    struct draw *draw;
    tarn_generator *generator;
    tarn_sampler *sampler;
    void *state;
    int32_t *symbols; /* B x given */
    size_t first, B;
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
    const struct draw *const d = g->draw;
    const size_t i = g->first + b;

    return d->pixels + (i < d->count ? i : d->count - 1) * draw_bytes(d->size);
}

static int start(struct group *g, const float **outputs)
{
    struct draw *const d = g->draw;
    tarn_sampling sampling = d->sampling;
    tarn_error err;

    sampling.stream += g->first;
    tarn_sampler_free(g->sampler);
    if (tarn_sampler_create(&g->sampler, d->model, &sampling, &d->how.host, &err) != TARN_OK)
        return command_error(d->command, &err);
    memset(g->state, 0, tarn_generator_state_size(g->generator));
    for (size_t b = 0; b < g->B; b++)
        for (size_t i = 0; i < d->given; i++)
            g->symbols[b * d->given + i] = image_at(g, b)[i];
    if (tarn_generator_prefill(g->generator, g->state, outputs, g->symbols, d->given, &err) !=
        TARN_OK)
        return command_error(d->command, &err);
    return ARGS_GO_ON;
}

/* Byte `at` of all images of the group. */
static void put(const struct group *g, const int32_t *symbols, size_t at)
{
    for (size_t b = 0; b < g->B && g->first + b < g->draw->count; b++)
        image_at(g, b)[at] = (unsigned char)symbols[b];
}

/* Whose first `at` bytes are there, as are all images before. */
static void show_progress(struct group *g, size_t at)
{
    const struct draw *const d = g->draw;
    const size_t there = d->count - g->first < g->B ? d->count - g->first : g->B;
    const double images = (double)g->first + (double)there * (double)(at - d->given) /
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
    const float *outputs;
    tarn_error err;
    const int code = start(g, &outputs);

    for (size_t at = d->given; code == ARGS_GO_ON && at < bytes; at++) {
        tarn_sampler_draw(g->sampler, g->symbols, outputs, g->B, at);
        put(g, g->symbols, at);
        show_progress(g, at + 1);
        if (at + 1 < bytes &&
            tarn_generator_step(g->generator, g->state, &outputs, g->symbols, &err) != TARN_OK)
            return command_error(d->command, &err);
    }
    return code;
}

/* ---- All of them -------------------------------------------------------- */

static size_t at_once(const struct draw *d)
{
    if (d->how.batch > 0)
        return d->how.batch;
    return d->count > DRAW_AT_ONCE ? DRAW_AT_ONCE : d->count;
}

static int set_up(struct group *g)
{
    struct draw *const d = g->draw;
    tarn_generator_desc how = d->how;
    tarn_error err;

    how.batch = g->B;
    how.longest = draw_bytes(d->size) - 1; /* the last is not read */
    if (tarn_generator_create(&g->generator, d->model, &how, &err) != TARN_OK)
        return command_error(d->command, &err);
    g->state = malloc(tarn_generator_state_size(g->generator));
    g->symbols = d->given <= SIZE_MAX / sizeof *g->symbols / g->B
                     ? malloc(g->B * d->given * sizeof *g->symbols)
                     : NULL;
    if (g->state && g->symbols)
        return ARGS_GO_ON;
    return command_fail(d->command,
                        "not enough memory for %zu images at a time; reduce --streams", g->B);
}

int draw_images(struct draw *d)
{
    const double begin = stopwatch_seconds();
    struct group g = {
        .draw = d, .B = at_once(d), .line = progress_line_of(begin), .begin = begin};
    int code = set_up(&g);

    for (; code == ARGS_GO_ON && g.first < d->count; g.first += g.B)
        code = draw_group(&g);
    progress_line_erase(&g.line);
    d->seconds = stopwatch_seconds() - begin;
    tarn_sampler_free(g.sampler);
    tarn_generator_free(g.generator);
    free(g.symbols);
    free(g.state);
    return code == ARGS_GO_ON ? EXIT_DONE : code;
}
