/* SPDX-License-Identifier: MIT */
/* evaluate.h - a task opened for a run, its batches, and its validation. */
#ifndef TN_EVALUATE_H
#define TN_EVALUATE_H

#include "task/task.h"

/* The task and a place for batches. */
struct tn_lesson {
    tarn_task *task;
    struct tn_batch *batches; /* settings->accumulate of them */
    tarn_batch *views;        /* the same, as trainers take them */
    void (*skipped)(void *context, const tarn_skipped *skipped);
    void (*scored)(void *context, size_t done, size_t batches);
    void *context;
    void *memory;
};

/* For whom the data is. Zero is a valid default for every field. */
struct tn_lesson_desc {
    const char *note; /* as in struct tn_task_desc, as all but the last */
    size_t stack, threads;
    void (*skipped)(void *context, const tarn_skipped *skipped); /* told of each; may be NULL */
    void (*scored)(void *context, size_t done, size_t batches);  /* likewise, of batches */
    void *context;
};

/* What the data says of itself is filled into the settings. */
tarn_status tn_lesson_open(struct tn_lesson *lesson, tarn_settings *settings,
                           const struct tn_lesson_desc *desc, tarn_error *err);
void tn_lesson_close(struct tn_lesson *lesson); /* accepts zeros */

/* Fills batch i, and its view. */
tarn_status tn_lesson_fill(const struct tn_lesson *lesson, size_t i, enum tn_split split,
                           uint64_t index, tarn_error *err);

/* Scores one batch into *score. */
typedef tarn_status tn_scorer(void *arg, tarn_score *score, const tarn_batch *batch,
                              tarn_error *err);

/* Over all validation batches, or as many as the settings say. */
tarn_status tn_lesson_validate(const struct tn_lesson *lesson, tarn_validation *validation,
                               const tarn_settings *settings, tn_scorer *scorer, void *arg,
                               tarn_error *err);

#endif
