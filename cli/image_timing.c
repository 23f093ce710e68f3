/* SPDX-License-Identifier: MIT */
#include "image_timing.h"

#include <math.h>
#include <string.h>

#include "command.h"
#include "hardware.h"

enum {
    PROBED = 3,
    LEAST = 3 /* steps that are measured, however small the budget */
};

/* Seconds of steps measured together: alternating more often would slow down methods with small
 * batches. */
static const double piece_s = 0.25;

/* ---- Steps -------------------------------------------------------------- */

/* One byte of every image; the first is 0, the others are drawn. */
static void step(struct image_timing *t)
{
    const bool drawn = tarn_stream_next(t->streams.at[0]) >= 0;

    stream_block_step(&t->streams, drawn ? NULL : t->first);
    stream_block_draw(&t->streams, NULL);
}

static double seconds_of(struct image_timing *t, size_t count)
{
    const double start = seconds_now();

    for (size_t i = 0; i < count; i++)
        step(t);
    return seconds_now() - start;
}

/* Bytes that vary, up to position `at`; the same ones for all images. */
static void skip_to(struct image_timing *t, size_t at)
{
    const size_t n = at - (size_t)tarn_stream_position(t->streams.at[0]);

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        t->skipped[i] = (int32_t)(7 * i % 256);
    stream_block_prefill(&t->streams, 0, t->skipped, n);
    for (size_t b = 1; b < t->streams.n; b++)
        stream_block_fork(&t->streams, b, 0);
}

void image_timing_restart(struct image_timing *t)
{
    stream_block_restart(&t->streams);
    t->done = 0;
}

void image_timing_advance(struct image_timing *t, size_t until)
{
    for (; t->done < until; t->done++) {
        struct image_piece *const piece = &t->pieces[t->done];

        skip_to(t, piece->at);
        piece->seconds = fmin(piece->seconds, seconds_of(t, piece->count));
        t->held = (size_t)fmax((double)t->held, (double)tarn_engine_bytes(t->streams.engine));
    }
}

/* ---- Which steps -------------------------------------------------------- */

/* A rough average of the time per step, which only decides how many steps are measured. Methods
 * that recompute everything are probed in the middle of the image, others at its beginning,
 * because they would have to run up to the middle first. */
static double probe(struct image_timing *t)
{
    const tarn_engine *const engine = t->streams.engine;
    const bool recomputes = strcmp(tarn_engine_method(engine), "recompute") == 0;
    const size_t middle = t->steps / 2, count = t->steps < PROBED ? 1 : PROBED;

    image_timing_restart(t);
    step(t);
    t->held_first = t->held = tarn_engine_bytes(engine);
    image_timing_restart(t);
    if (!recomputes)
        return seconds_of(t, count) / (double)count * tarn_engine_flops(engine, middle) /
               tarn_engine_flops(engine, 0);
    skip_to(t, middle);
    return seconds_of(t, 1);
}

/* The step in the middle of each of equal pieces, where steps grow; else the first steps, in
 * stretches. Running up to a step takes about as long as the step itself if everything is
 * recomputed. */
static void choose_pieces(struct image_timing *t, double mean)
{
    const bool whole = mean * (double)t->steps <= t->budget;
    const bool jumps = t->grows && !whole;
    const double affordable = t->budget / mean / (jumps ? 2.0 : 1.0);
    const size_t sampled = smaller((size_t)fmin(fmax(affordable, LEAST), 1e9), t->steps);
    const size_t measured = whole ? t->steps : sampled;
    const size_t stretch = smaller(1 + (size_t)fmin(piece_s / mean, 1e9), measured);

    t->count = jumps ? measured : (measured + stretch - 1) / stretch;
    t->pieces = allocate(t->count, sizeof *t->pieces, "%zu pieces of an image", t->count);
    for (size_t i = 0; i < t->count; i++) {
        struct image_piece *const piece = &t->pieces[i];
        const double size = (double)t->steps / (double)t->count;

        piece->at = jumps ? (size_t)(((double)i + 0.5) * size) : i * stretch;
        piece->count = jumps ? 1 : smaller(stretch, measured - piece->at);
        piece->stands_for =
            jumps ? size : (double)piece->count * (double)t->steps / (double)measured;
        piece->seconds = (double)INFINITY;
    }
}

/* ---- Life --------------------------------------------------------------- */

/* A growing state cannot be created for an endless stream; its size at the first step is that
 * of a stream of length 1. */
static void find_first_state(struct image_timing *t, tarn_engine_desc desc)
{
    tarn_engine *other;

    t->state_first = t->streams.n * t->streams.size;
    desc.longest = 0;
    t->grows = tarn_engine_create(&other, t->model, &desc, NULL) != TARN_OK;
    if (t->grows) {
        desc.longest = 1;
        must(tarn_engine_create(&other, t->model, &desc, &failure));
        t->state_first = t->streams.n * tarn_stream_size(other);
    }
    must(tarn_engine_free(other, &failure));
}

void image_timing_open(struct image_timing *t)
{
    t->steps = t->engine.longest = t->length - 1;
    t->streams = stream_block_open(t->model, &t->engine, t->batch);
    find_first_state(t, t->engine);
    t->first = allocate(t->batch, sizeof *t->first, "%zu images at a time", t->batch);
    t->skipped = allocate(t->steps, sizeof *t->skipped, "an image");
    choose_pieces(t, probe(t));
}

/* ---- Results ------------------------------------------------------------ */

double image_timing_seconds(const struct image_timing *t)
{
    double seconds = 0.0;

    for (size_t i = 0; i < t->count; i++)
        seconds += t->pieces[i].seconds * t->pieces[i].stands_for / (double)t->pieces[i].count;
    return seconds;
}

size_t image_timing_measured(const struct image_timing *t)
{
    size_t steps = 0;

    for (size_t i = 0; i < t->count; i++)
        steps += t->pieces[i].count;
    return steps;
}

double image_timing_flops(const struct image_timing *t)
{
    double flops = 0.0;

    for (size_t i = 0; i < t->steps; i++)
        flops += tarn_engine_flops(t->streams.engine, i);
    return flops;
}
