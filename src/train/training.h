/* SPDX-License-Identifier: MIT */
/* training.h - a run of training: its model, data, trainer and folder. */
#ifndef TN_TRAINING_H
#define TN_TRAINING_H

#include "comm/transfer.h"
#include "train/loader.h"
#include "train/pace.h"
#include "train/settings.h"
#include "train/trainer.h"

/* One JSON object per line: every update and every validation. */
struct tn_log {
    int file; /* -1: closed */
    char *path;
    char *waiting;           /* lines that could not be written yet */
    size_t waits;            /* bytes of them */
    bool lost;               /* a line that there was no memory for */
    double start, cpu_start; /* seconds of the clock and of the processors when it was opened */
};

struct tn_training_run {
    struct tn_training state;
    const tarn_train_desc *desc;
    struct tn_host host;
    tarn_model *model;
    tarn_trainer *trainer;
    struct tn_loader loader;
    struct tn_log log;
    int lock;       /* of the folder */
    uint64_t saved; /* updates that the last checkpoint has */
    struct tn_pace pace;
    double begin; /* of the loop, by the clock */

    tarn_status pending; /* of several processes: what failed here and the others do not know */
    tarn_error pending_err;
};

/* Files are written by one process. */
static inline bool tn_training_writes(const struct tn_training_run *t)
{
    return tn_comm_rank(t->desc->comm) == 0;
}

/* What failed in one process, now or before, fails in all. */
tarn_status tn_training_agree(struct tn_training_run *t, tarn_status status, tarn_error *err);

/* ---- training_open.c ---------------------------------------------------- */

/* Model, data and trainer, by every process for itself. */
tarn_status tn_training_open(struct tn_training_run *t, const tarn_config *config,
                             tarn_error *err);

/* ---- training_files.c --------------------------------------------------- */

/* Makes the folder and locks it, or resumes the run that is in it. */
tarn_status tn_training_open_folder(struct tn_training_run *t, tarn_error *err);

/* The log; a run that begins has a checkpoint before. */
tarn_status tn_training_open_log(struct tn_training_run *t, tarn_error *err);

tarn_status tn_training_save(struct tn_training_run *t, tarn_error *err);
tarn_status tn_training_save_model(const struct tn_training_run *t, const char *name,
                                   tarn_error *err);

/* What can be saved of a run that failed. */
void tn_training_save_rest(struct tn_training_run *t, tarn_status why);

/* Settings and progress of the last checkpoint that is whole, and its configuration unless that
 * is NULL. */
tarn_status tn_training_read_last(struct tn_training *state, tarn_config *config,
                                  const char *folder, tarn_error *err);

/* ---- training_plan.c: a run that is fitted to a time -------------------- */

void tn_training_start_plan(struct tn_training_run *t);

/* After an update. *planned: there is something to save. */
tarn_status tn_training_plan(struct tn_training_run *t, bool *planned, uint64_t update,
                             tarn_error *err);

/* Whether a validation follows update number `update`, fitted to a time or not. */
bool tn_training_validates(const struct tn_training_run *t, uint64_t update);

/* ---- training_folder.c: what a run leaves on the disk, by name ----------- */

enum { TN_FOLDER_PATH = TARN_PATH_SIZE + 64 };

/* `folder`/`name`. */
void tn_folder_path(char path[TN_FOLDER_PATH], const char *folder, const char *name);

/* The checkpoint after `update` updates. */
void tn_folder_checkpoint(char path[TN_FOLDER_PATH], const char *folder, uint64_t update);

/* Makes it if it is not there; its parent must be. */
tarn_status tn_folder_make(const char *folder, tarn_error *err);

/* Refuses a folder with a checkpoint, a model or a log. */
tarn_status tn_folder_check_new(const char *folder, tarn_error *err);

/* Keeps others out until tn_folder_unlock(), or until this process ends, however it does.
 * Refuses a folder that someone else has. */
tarn_status tn_folder_lock(int *lock, const char *folder, tarn_error *err);
void tn_folder_unlock(int lock); /* accepts -1 */

/* The last checkpoint before update `below`: *found, and of which update. UINT64_MAX: the last
 * of all. */
tarn_status tn_folder_last(const char *folder, uint64_t below, bool *found, uint64_t *update,
                           tarn_error *err);

/* Renames a checkpoint to NAME.damaged, so that it is not counted any more. */
tarn_status tn_folder_set_aside(const char *folder, uint64_t update, tarn_error *err);

/* Removes all checkpoints but the last `keep`; that of update 0 if there is any other. */
void tn_folder_prune(const char *folder, size_t keep);

/* ---- training_log.c ------------------------------------------------------ */

/* A new file, or for a run that is resumed the one that is there: it continues after the last
 * line of an update up to `updates`, and what follows, from updates after the checkpoint, is
 * removed. What is not a log of a run, or a link, is refused and stays as it is. */
tarn_status tn_log_open(struct tn_log *log, const char *path, bool resumes, uint64_t updates,
                        tarn_error *err);

/* A line that cannot be written waits for the next call: a failure is reported, and nothing is
 * lost if it does not last. */
tarn_status tn_log_update(struct tn_log *log, const tarn_report *report, double tokens_per_s,
                          tarn_error *err);
tarn_status tn_log_validation(struct tn_log *log, const tarn_validation *validation,
                              tarn_error *err);

/* All lines are on the disk. */
tarn_status tn_log_sync(struct tn_log *log, tarn_error *err);

void tn_log_close(struct tn_log *log); /* accepts one that is closed */

#endif
