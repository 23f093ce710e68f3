/* SPDX-License-Identifier: MIT */
/* image_timing.h - the time that a model takes to generate a batch of images.
 *
 * An image of n bytes takes n - 1 steps: each reads a byte and draws the next one, which is
 * part of its time. Where all steps fit into the budget all are measured. Otherwise the image
 * is cut into equal pieces, the step in the middle of each is measured and stands for its
 * piece; where no step costs more than the first, the first ones stand for all. To get to a
 * step, those before are fed many at a time, which is not measured. */
#ifndef IMAGE_TIMING_H
#define IMAGE_TIMING_H

#include "stream_block.h"

/* Steps from `at` on that are measured together, and how many of the image they stand for. */
struct image_piece {
    size_t at, count;
    double stands_for;
    double seconds; /* of the best pass */
};

struct image_timing {
    /* what to run */
    const tarn_model *model;
    tarn_engine_desc engine; /* longest is filled in */
    size_t batch;
    size_t length; /* bytes of an image, 2 at least */
    double budget; /* seconds for one pass over it */

    /* how */
    struct stream_block streams;
    int32_t *first, *skipped; /* B zeros; bytes that are fed at a time */
    size_t steps;             /* of an image */
    bool grows;               /* the state does, and with it what a step costs */
    size_t state_first;       /* bytes of all streams at the first step */
    size_t held_first, held;  /* bytes that the engine used then, and at most */
    struct image_piece *pieces;
    size_t count, done; /* of them; in this pass */
};

/* Sets up, and measures a few steps to decide how many will be. */
void image_timing_open(struct image_timing *timing);

/* Starts a new pass over the image; continues it up to the piece `until`. The fastest pass of
 * each piece counts. */
void image_timing_restart(struct image_timing *timing);
void image_timing_advance(struct image_timing *timing, size_t until);

double image_timing_seconds(const struct image_timing *timing);  /* for the batch */
size_t image_timing_measured(const struct image_timing *timing); /* steps */

/* Of one image: dense products, and attention's where a count of it is agreed, which is not so
 * for lsh. */
double image_timing_flops(const struct image_timing *timing);

#endif
