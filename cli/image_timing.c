/* SPDX-License-Identifier: MIT */
#include "image_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_memory.h"
#include "stopwatch.h"

enum {
    PROBED = 3,
    LEAST = 3 /* steps that are measured, however small the budget */
};

/* Seconds of steps measured together: alternating more often would slow down methods with small
 * batches. */
static const double turn_s = 0.25;

/* ---- Steps -------------------------------------------------------------- */

static uint64_t position(const struct image_timing *t)
{
    return tarn_stream_position(t->streams.at[0]);
}

/* One byte of every image; the first is 0, the others are drawn. */
static tarn_status step(struct image_timing *t, tarn_error *err)
{
    const bool drawn = tarn_stream_next(t->streams.at[0]) >= 0;
    const tarn_status status = stream_block_step(&t->streams, drawn ? NULL : t->first, err);

    return status == TARN_OK ? stream_block_draw(&t->streams, NULL, err) : status;
}

static tarn_status timed(struct image_timing *t, double *seconds, size_t count, tarn_error *err)
{
    const double start = stopwatch_seconds();
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = step(t, err);
    *seconds = stopwatch_seconds() - start;
    return status;
}

/* Bytes that vary, up to position `at`; the same ones for all images. */
static tarn_status skip_to(struct image_timing *t, size_t at, tarn_error *err)
{
    const size_t n = at - (size_t)position(t);
    tarn_status status;

    if (n == 0)
        return TARN_OK;
    for (size_t i = 0; i < n; i++)
        t->skipped[i] = (int32_t)(7 * i % 256);
    status = tarn_engine_prefill(t->streams.engine, t->streams.at[0], t->streams.outputs,
                                 t->skipped, n, err);
    for (size_t b = 1; b < t->streams.n && status == TARN_OK; b++)
        stream_block_fork(&t->streams, b, 0);
    return status;
}

void image_timing_restart(struct image_timing *t)
{
    stream_block_restart(&t->streams);
    t->done = 0;
}

tarn_status image_timing_advance(struct image_timing *t, size_t until, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (; t->done < until && status == TARN_OK; t->done++) {
        struct image_piece *const piece = &t->pieces[t->done];
        double seconds;

        if ((status = skip_to(t, piece->at, err)) != TARN_OK ||
            (status = timed(t, &seconds, piece->count, err)) != TARN_OK)
            break;
        piece->seconds = fmin(piece->seconds, seconds);
        t->held = (size_t)fmax((double)t->held, (double)tarn_engine_bytes(t->streams.engine));
    }
    return status;
}

/* ---- Which steps -------------------------------------------------------- */

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A rough average of the time per step, which only decides how many steps are measured. Methods
 * that recompute everything are probed in the middle of the image, others at its beginning,
 * because they would have to run up to the middle first. */
static tarn_status probe(struct image_timing *t, double *mean, tarn_error *err)
{
    const bool again = strcmp(tarn_engine_method(t->streams.engine), "recompute") == 0;
    const size_t middle = t->steps / 2, from = again ? middle : 0;
    const size_t count = t->steps - from < PROBED ? 1 : PROBED;
    tarn_status status;

    image_timing_restart(t);
    if ((status = step(t, err)) != TARN_OK)
        return status;
    t->held_first = t->held = tarn_engine_bytes(t->streams.engine);
    image_timing_restart(t);
    if ((status = skip_to(t, from, err)) != TARN_OK ||
        (status = timed(t, mean, again ? 1 : count, err)) != TARN_OK)
        return status;
    if (again)
        return TARN_OK;
    *mean *= tarn_engine_flops(t->streams.engine, middle) /
             tarn_engine_flops(t->streams.engine, 0) / (double)count;
    return TARN_OK;
}

/* Of the first `measured` steps of the image, which stand for all: the i-th stretch. */
static struct image_piece first_piece(const struct image_timing *t, size_t i, size_t stretch,
                                      size_t measured)
{
    const size_t at = i * stretch, count = least_of(stretch, measured - at);

    return (struct image_piece){at, count, (double)count * (double)t->steps / (double)measured,
                                (double)INFINITY};
}

/* The step in the middle of the i-th of equal pieces. */
static struct image_piece middle_piece(const struct image_timing *t, size_t i)
{
    const double size = (double)t->steps / (double)t->count;

    return (struct image_piece){(size_t)(((double)i + 0.5) * size), 1, size, (double)INFINITY};
}

static size_t longest_skip(const struct image_timing *t)
{
    size_t most = 0, at = 0;

    for (size_t i = 0; i < t->count; i++) {
        const size_t skip = t->pieces[i].at - at;

        most = skip > most ? skip : most;
        at = t->pieces[i].at + t->pieces[i].count;
    }
    return most;
}

/* Running up to a step takes about as long as the step itself if everything is recomputed. */
static bool choose_pieces(struct image_timing *t, double mean)
{
    const bool whole = mean * (double)t->steps <= t->desc.budget;
    const bool jumps = t->grows && !whole;
    const double affordable = t->desc.budget / mean / (jumps ? 2.0 : 1.0);
    const size_t sampled = least_of((size_t)fmin(fmax(affordable, LEAST), 1e9), t->steps);
    const size_t measured = whole ? t->steps : sampled;
    const size_t stretch = least_of(1 + (size_t)fmin(turn_s / mean, 1e9), measured);

    t->count = jumps ? measured : (measured + stretch - 1) / stretch;
    t->pieces = malloc(t->count * sizeof *t->pieces);
    for (size_t i = 0; t->pieces && i < t->count; i++)
        t->pieces[i] = jumps ? middle_piece(t, i) : first_piece(t, i, stretch, measured);
    return t->pieces != NULL;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status no_memory(const struct image_timing *t, tarn_error *err)
{
    return bench_no_memory(err, "%zu images at a time", t->desc.batch);
}

static tarn_engine_desc engine_desc(const struct image_timing *t, size_t longest)
{
    const struct image_timing_desc *const d = &t->desc;

    return (tarn_engine_desc){
        .longest = longest, .method = d->method, .precision = d->precision, .host = d->host};
}

/* A growing state cannot be created for an endless stream; its size at the first step is that
 * of a stream of length 1. */
static tarn_status find_first_state(struct image_timing *t, tarn_error *err)
{
    tarn_engine_desc desc = engine_desc(t, 0);
    tarn_engine *other;
    tarn_status status;

    t->state_first = t->streams.n * t->streams.size;
    t->grows = tarn_engine_create(&other, t->desc.model, &desc, NULL) != TARN_OK;
    if (t->grows) {
        desc.longest = 1;
        if ((status = tarn_engine_create(&other, t->desc.model, &desc, err)) != TARN_OK)
            return status;
        t->state_first = t->streams.n * tarn_stream_size(other);
    }
    return tarn_engine_free(other, err);
}

static tarn_status make_parts(struct image_timing *t, tarn_error *err)
{
    const tarn_engine_desc desc = engine_desc(t, t->steps);
    tarn_status status;

    if ((status = stream_block_open(&t->streams, t->desc.model, &desc, t->desc.batch, err)) !=
            TARN_OK ||
        (status = find_first_state(t, err)) != TARN_OK)
        return status;
    t->first = calloc(t->desc.batch, sizeof *t->first);
    return t->first ? TARN_OK : no_memory(t, err);
}

static bool make_skipped(struct image_timing *t, size_t most)
{
    free(t->skipped);
    t->skipped = malloc((most + 1) * sizeof *t->skipped);
    return t->skipped != NULL;
}

tarn_status image_timing_open(struct image_timing *t, const struct image_timing_desc *desc,
                              tarn_error *err)
{
    double mean;
    tarn_status status;

    *t = (struct image_timing){.desc = *desc, .steps = desc->length - 1};
    if ((status = make_parts(t, err)) != TARN_OK)
        return status;
    if (!make_skipped(t, t->grows ? t->steps : 0))
        return no_memory(t, err);
    if ((status = probe(t, &mean, err)) != TARN_OK)
        return status;
    return choose_pieces(t, mean) && make_skipped(t, longest_skip(t)) ? TARN_OK
                                                                      : no_memory(t, err);
}

void image_timing_close(struct image_timing *t)
{
    free(t->pieces);
    free(t->skipped);
    free(t->first);
    stream_block_close(&t->streams);
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
