/* SPDX-License-Identifier: MIT */
/* trainer.h - `tarn_trainer` is this. */
#ifndef TN_TRAINER_H
#define TN_TRAINER_H

#include "comm/comm_part.h"
#include "file/safetensors.h"
#include "model/slices.h"
#include "tarn/train.h"
#include "train/batch_loss.h"
#include "train/carry.h"
#include "train/clip.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/shard.h"

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
    float *moments[TN_MOMENTS_MOST]; /* the optimizer's, a float per parameter of the shard */
    bool shards;                     /* moments are spread over processes */
    struct tn_shard shard;           /* of this process; all, if they are not */
    struct tn_range *owned;          /* its tensors, ranges of it */

    size_t micro_batches;         /* of a batch, a power of two */
    size_t first, own;            /* those of this process, likewise */
    struct tn_gradient_sums sums; /* of their gradients */
    float *g;                     /* the sum of all */
    double weight; /* of the gradients that wait for tarn_trainer_apply(); 0: none do */
    struct tn_range *tensors; /* as many as the model has */
    float *scales;
    double *scratch;

    const tarn_comm *comm;              /* NULL: one process */
    struct tn_comm_part sequence, data; /* those that share its sequences; and its place in
                                           these, in the others'. Only if they are shared */
    struct tn_gradient_sums slices;     /* of sequences that are cut */
    char *records;                      /* one of each process */
    uint64_t described;                 /* hash of its desc */
    bool compared;                      /* with those of the other processes */
    bool wants_stop; /* this process, at the next update; and whether any did */
    bool stops;

    size_t bytes;
    void *memory;
};

/* ---- trainer_ranks.c: of several processes ------------------------------ */

/* Before anything is done together, once: all have the same. */
tarn_status tn_trainer_compare(tarn_trainer *trainer, tarn_error *err);

/* Losses of the micro-batches of this process, for the next exchange. */
struct tn_loss *tn_trainer_losses(const tarn_trainer *trainer);
size_t tn_trainer_records_size(const tarn_trainer *trainer);

/* After the gradients of this process were computed, or failed to be: all sum them, or none
 * does. *total is the sum of all losses, as a tree. */
tarn_status tn_trainer_exchange(tarn_trainer *trainer, struct tn_loss *total,
                                const tarn_batch *batches, size_t count, tarn_status status,
                                tarn_error *err);

/* To process 0, before it writes a checkpoint: carried states, and in *moments, arrays that are
 * to be freed, what is spread over processes; NULL there: nothing is. */
tarn_status tn_trainer_collect(tarn_trainer *trainer, float **moments, tarn_error *err);

/* Where these exchange states, none may begin that another does not begin, too. */
tarn_status tn_trainer_agree(const tarn_trainer *trainer, tarn_status status, tarn_error *err);

/* Takes part in an update that this process has no batches for. */
tarn_status tn_trainer_fail(tarn_trainer *trainer, tarn_status status, tarn_error *err);

/* ---- checkpoint.c ------------------------------------------------------- */

/* With one more pair of metadata; NULL: none. Moments NULL: the trainer's. */
tarn_status tn_checkpoint_write(const tarn_trainer *trainer, const char *path,
                                const float *moments, const struct tn_safetensors_entry *more,
                                tarn_error *err);
tarn_status tn_checkpoint_read(tarn_trainer *trainer, const struct tn_safetensors *file,
                               const char *path, tarn_error *err);

#endif
