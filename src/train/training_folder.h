/* SPDX-License-Identifier: MIT */
/* training_folder.h - what a run of training leaves on the disk, by name. */
#ifndef TN_TRAINING_FOLDER_H
#define TN_TRAINING_FOLDER_H

#include "base/base.h"
#include "tarn/model.h"

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

#endif
