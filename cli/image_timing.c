/* SPDX-License-Identifier: MIT */
#include "image_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_memory.h"
#include "hardware.h"
#include "stopwatch.h"

enum {
    PROBED = 3,
    LEAST = 3 /* steps that are measured, however small the budget */
};

/* Seconds of steps measured together: alternating more often would slow down methods with small
 * batches. */
static const double turn_s = 0.25;

/* ---- Steps -------------------------------------------------------------- */

/* One byte of every image. */
static tarn_status step(struct image_timing *t, tarn_error *err)
{
    const float *outputs;
    const tarn_status status =
        tarn_generator_step(t->generator, t->state, &outputs, t->symbols, err);

    if (status == TARN_OK)
        tarn_sampler_draw(t->sampler, t->symbols, outputs, t->desc.batch,
                          tarn_state_position(t->state));
    return status;
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

/* Bytes that vary, up to position `at`. */
static tarn_status skip_to(struct image_timing *t, size_t at, tarn_error *err)
{
    const size_t B = t->desc.batch, n = at - (size_t)tarn_state_position(t->state);
    const float *outputs;

    if (n == 0)
        return TARN_OK;
    for (size_t i = 0; i < B * n; i++)
        t->skipped[i] = (int32_t)(7 * i % 256);
    return tarn_generator_prefill(t->generator, t->state, &outputs, t->skipped, n, err);
}

void image_timing_restart(struct image_timing *t)
{
    memset(t->state, 0, tarn_generator_state_size(t->generator));
    memset(t->symbols, 0, t->desc.batch * sizeof *t->symbols);
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
        t->held = (size_t)fmax((double)t->held, (double)tarn_generator_bytes(t->generator));
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
    const bool again = strcmp(tarn_generator_method(t->generator), "recompute") == 0;
    const size_t middle = t->steps / 2, from = again ? middle : 0;
    const size_t count = t->steps - from < PROBED ? 1 : PROBED;
    tarn_status status;

    image_timing_restart(t);
    if ((status = step(t, err)) != TARN_OK)
        return status;
    t->held_first = t->held = tarn_generator_bytes(t->generator);
    image_timing_restart(t);
    if ((status = skip_to(t, from, err)) != TARN_OK ||
        (status = timed(t, mean, again ? 1 : count, err)) != TARN_OK)
        return status;
    if (again)
        return TARN_OK;
    *mean *= tarn_generator_flops(t->generator, middle) /
             tarn_generator_flops(t->generator, 0) / (double)count;
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
    return bench_no_memory(err, "%zu images at a time, with a state of %zu bytes",
                           t->desc.batch, tarn_generator_state_size(t->generator));
}

static tarn_generator_desc generator_desc(const struct image_timing *t, size_t longest)
{
    const struct image_timing_desc *const d = &t->desc;

    return (tarn_generator_desc){.batch = d->batch,
                                 .longest = longest,
                                 .method = d->method,
                                 .precision = d->precision,
                                 .host = {.threads = d->threads, .cpu = d->cpu}};
}

/* A growing state cannot be created for an endless stream; its size at the first step is that
 * of a stream of length 1. */
static tarn_status find_first_state(struct image_timing *t, tarn_error *err)
{
    tarn_generator_desc desc = generator_desc(t, 0);
    tarn_generator *other;
    tarn_status status;

    t->state_first = tarn_generator_state_size(t->generator);
    t->grows = tarn_generator_create(&other, t->desc.model, &desc, NULL) != TARN_OK;
    if (t->grows) {
        desc.longest = 1;
        if ((status = tarn_generator_create(&other, t->desc.model, &desc, err)) != TARN_OK)
            return status;
        t->state_first = tarn_generator_state_size(other);
    }
    tarn_generator_free(other);
    return TARN_OK;
}

static tarn_status make_parts(struct image_timing *t, tarn_error *err)
{
    const tarn_generator_desc desc = generator_desc(t, t->steps);
    const tarn_sampling sampling = {0};
    tarn_status status;

    if ((status = tarn_generator_create(&t->generator, t->desc.model, &desc, err)) != TARN_OK ||
        (status = tarn_sampler_create(&t->sampler, t->desc.model, &sampling, &desc.host,
                                      err)) != TARN_OK ||
        (status = find_first_state(t, err)) != TARN_OK)
        return status;
    const size_t bytes = tarn_generator_state_size(t->generator);

    t->state = bytes < hardware_memory() ? bench_block_new(bytes) : NULL;
    t->symbols = malloc(t->desc.batch * sizeof *t->symbols);
    return t->state && t->symbols ? TARN_OK : no_memory(t, err);
}

static bool make_skipped(struct image_timing *t, size_t most)
{
    free(t->skipped);
    t->skipped = malloc((most * t->desc.batch + 1) * sizeof *t->skipped);
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
    free(t->symbols);
    free(t->state);
    tarn_sampler_free(t->sampler);
    tarn_generator_free(t->generator);
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
        flops += tarn_generator_flops(t->generator, i);
    return flops / (double)t->desc.batch;
}
