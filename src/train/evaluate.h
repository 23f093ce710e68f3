/* SPDX-License-Identifier: MIT */
/* evaluate.h - a task opened for a run, its batches, and its validation. */
#ifndef TN_EVALUATE_H
#define TN_EVALUATE_H

#include "task/task.h"

/* The task and a place for batches. */
struct tn_lesson {
    struct tn_task *task;
    struct tn_batch *batches; /* settings->accumulate of them */
    tarn_batch *views;        /* the same, as trainers take them */
    void *memory;
};

/* What the data says of itself is filled into the settings. */
tarn_status tn_lesson_open(struct tn_lesson *lesson, tarn_settings *settings, tarn_error *err);
void tn_lesson_close(struct tn_lesson *lesson); /* accepts zeros */

/* Scores one batch into *score. */
typedef tarn_status tn_scorer(void *arg, tarn_score *score, const tarn_batch *batch,
                              tarn_error *err);

/* Over all validation batches, or as many as the settings say. */
tarn_status tn_lesson_validate(const struct tn_lesson *lesson, tarn_validation *validation,
                               const tarn_settings *settings, tn_scorer *scorer, void *arg,
                               tarn_error *err);

#endif
