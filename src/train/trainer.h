/* SPDX-License-Identifier: MIT */
/* trainer.h - `tarn_trainer` is this. */
#ifndef TN_TRAINER_H
#define TN_TRAINER_H

#include "file/safetensors.h"
#include "tarn/train.h"
#include "train/batch_loss.h"
#include "train/carry.h"
#include "train/clip.h"
#include "train/optimizer.h"
#include "train/schedule.h"

/* What the next update depends on, besides weights, moments and carried states. Checkpoints
 * keep it. */
struct tn_progress {
    char optimizer[TARN_NAME_SIZE]; /* whose moments these are */
    uint64_t updates;               /* done, skipped ones too */
    uint64_t skipped;               /* of these: the moments have not seen them */
    uint64_t seed;
    uint64_t position; /* of carried streams */
    struct tn_schedule_state schedule;
};

struct tarn_trainer {
    tarn_model *model;
    tarn_run *run; /* the longest */
    struct tn_sequence_score sequences;
    struct tn_optimizer optimizer;
    struct tn_schedule schedule;
    struct tn_clip clip;
    bool skip;
    struct tn_host host;

    struct tn_progress progress;
    struct tn_carry carry;
    float *moments[TN_MOMENTS_MOST]; /* the optimizer's, a float per parameter */

    float *g;      /* gradients, likewise */
    double weight; /* of the gradients that wait for tarn_trainer_apply(); 0: none do */
    struct tn_weights gradients;
    struct tn_range *tensors; /* as many as the model has */
    float *scales;
    double *scratch;

    size_t bytes;
    void *memory;
};

/* ---- checkpoint.c ------------------------------------------------------- */

/* With one more pair of metadata; NULL: none. */
tarn_status tn_checkpoint_write(const tarn_trainer *trainer, const char *path,
                                const struct tn_safetensors_entry *more, tarn_error *err);
tarn_status tn_checkpoint_read(tarn_trainer *trainer, const struct tn_safetensors *file,
                               const char *path, tarn_error *err);

#endif
