/* SPDX-License-Identifier: MIT */
/* loader.h - a task opened for a run of training or an evaluation, and its batches. */
#ifndef TN_LOADER_H
#define TN_LOADER_H

#include "task/task.h"
#include "train/sequence_score.h"

/* For whom the data is. Zero is a valid default for every field. */
struct tn_loader_desc {
    const char *note; /* as in struct tn_task_desc, as all but the last */
    size_t stack, threads;
    void (*skipped)(void *context, const tarn_skipped *skipped); /* told of each; may be NULL */
    void (*scored)(void *context, size_t done, size_t batches);  /* likewise, of batches */
    void *context;
};

/* The task and a place for batches. */
struct tn_loader {
    struct tn_loader_desc desc;
    tarn_task *task;
    struct tn_batch *batches; /* settings->accumulate of them */
    tarn_batch *views;        /* the same, as trainers take them */
    void *memory;
};

/* What the data says of itself is filled into the settings. */
tarn_status tn_loader_open(struct tn_loader *loader, tarn_settings *settings,
                           const struct tn_loader_desc *desc, tarn_error *err);
void tn_loader_close(struct tn_loader *loader); /* accepts zeros */

/* Fills batch i, and its view. */
tarn_status tn_loader_fill(const struct tn_loader *loader, size_t i, enum tn_split split,
                           uint64_t index, tarn_error *err);

/* ---- evaluate.c --------------------------------------------------------- */

/* Over all validation batches, or as many as the settings say. Processes take turns with the
 * batches, whose scores are added in their order. */
tarn_status tn_validate(const struct tn_loader *loader, tarn_validation *validation,
                        const tarn_settings *settings, tarn_run *longest,
                        const struct tn_sequence_score *sequences, const tarn_comm *comm,
                        tarn_error *err);

#endif
