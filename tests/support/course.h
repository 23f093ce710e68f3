/* SPDX-License-Identifier: MIT */
/* course.h - a model that several processes train, here threads, and what came of it. */
#ifndef COURSE_H
#define COURSE_H

#include "support/model_case.h"
#include "support/thread_comm.h"
#include "tarn/train.h"

enum { COURSE_UPDATES = 3, COURSE_BATCHES = 2 }; /* at most; accumulated by each update */

struct course;

/* The batch of this number, in the memory of the calling thread for this place of
 * COURSE_BATCHES. */
typedef tarn_batch course_batch(const struct course *course, size_t place, uint64_t number);

struct course {
    const struct model_variant *variant;
    size_t layers; /* 0: the variant's */
    bool drops;
    tarn_trainer_desc desc; /* without communicator and host */
    course_batch *batch;
    uint64_t updates;
    const char *path, *resume; /* checkpoints; NULL: none */

    /* What came of it in the last process, which is not the one that writes. */
    double losses[COURSE_UPDATES], score;
    float *weights; /* to be freed */
    size_t count;
    tarn_status status;
    char text[256];
};

/* By this many processes; fails unless they succeed. */
struct course course_take(struct course course, size_t processes);

/* To the bit. */
void course_check_same(const struct course *a, const struct course *b);

/* Gradients of both in one process, up to rounding. */
void course_check_gradients(struct course a, struct course b);

/* No trainer is made of `desc`. */
void check_trainer_refused(const struct model_variant *variant, const tarn_trainer_desc *desc,
                           const char *why);

/* What process 1 of two does where process 0 makes an update. */
typedef tarn_status second_process(tarn_trainer *trainer, const struct course *course,
                                   tarn_error *err);

struct pair {
    const struct course *course;
    second_process *second;
    tarn_status status[2];
    tarn_error err[2];
};

/* Transfers time out after so many seconds; 0: the default. */
struct pair pair_run(const struct course *course, second_process *second, double timeout);

#endif
