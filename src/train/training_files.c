/* SPDX-License-Identifier: MIT */
/* training_files.c - checkpoints, models and the log of a run of training. */
#include <inttypes.h>
#include <stdlib.h>

#include "file/fields_json.h"
#include "model/model_file.h"
#include "train/peers.h"
#include "train/training.h"

static const char settings_key[] = "tarn_training";

/* ---- Saving ------------------------------------------------------------- */

tarn_status tn_training_save_model(const struct tn_training_run *t, const char *name,
                                   tarn_error *err)
{
    char path[TN_FOLDER_PATH];

    tn_folder_path(path, t->desc->out, name);
    return tarn_model_save(t->model, path, err);
}

/* The trainer, and how far the run is. */
static tarn_status write_checkpoint(struct tn_training_run *t, const float *moments,
                                    tarn_error *err)
{
    char *json, path[TN_FOLDER_PATH];
    tarn_status status = tn_fields_write(&json, tn_training_fields, &t->state, "settings", err);

    tn_folder_checkpoint(path, t->desc->out, tarn_trainer_updates(t->trainer));
    if (status == TARN_OK)
        status = tn_checkpoint_write(t->trainer, path, moments,
                                     &(struct tn_safetensors_entry){settings_key, json}, err);
    free(json);
    return status;
}

static void report_saved(const struct tn_training_run *t)
{
    char path[TN_FOLDER_PATH];

    tn_folder_checkpoint(path, t->desc->out, tarn_trainer_updates(t->trainer));
    if (t->desc->events.saved)
        t->desc->events.saved(t->desc->events.context, path);
}

/* The log first: a checkpoint never knows more than the log does. */
static tarn_status write_files(struct tn_training_run *t, const float *moments, tarn_error *err)
{
    const double begin = tn_seconds();
    tarn_status status;

    if ((status = tn_log_sync(&t->log, err)) != TARN_OK ||
        (status = write_checkpoint(t, moments, err)) != TARN_OK ||
        (status = tn_training_save_model(t, "model.safetensors", err)) != TARN_OK)
        return status;
    tn_folder_prune(t->desc->out, t->state.settings.keep);
    report_saved(t);
    tn_pace_saved(&t->pace, tn_seconds() - begin);
    return TARN_OK;
}

typedef tarn_status write_fn(struct tn_training_run *t, const float *moments, tarn_error *err);

/* By one process, with the moments of all. */
static tarn_status collect_and_write(struct tn_training_run *t, write_fn *write,
                                     tarn_error *err)
{
    float *moments = NULL;
    tarn_status status = tn_trainer_collect(t->trainer, &moments, err);

    if (status == TARN_OK && tn_training_writes(t))
        status = write(t, moments, err);
    free(moments);
    return status;
}

tarn_status tn_training_save(struct tn_training_run *t, tarn_error *err)
{
    const tarn_status status =
        tn_training_agree(t, collect_and_write(t, write_files, err), err);

    if (status == TARN_OK)
        t->saved = tarn_trainer_updates(t->trainer);
    return status;
}

/* Process 0 may have all of it without the others, one of which does not answer. */
void tn_training_save_rest(struct tn_training_run *t, tarn_status why)
{
    if (why != TARN_ERANK)
        tn_training_save(t, NULL);
    else if (tn_training_writes(t) && t->trainer->carry.bytes == 0 && !t->trainer->shards)
        write_files(t, NULL, NULL);
}

/* ---- Reading ------------------------------------------------------------ */

static tarn_status read_state(struct tn_training *state, const struct tn_safetensors *file,
                              const char *path, tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, settings_key);

    if (!json)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: is not a training checkpoint: it has no '%s' metadata", path,
                       settings_key);
    *state = (struct tn_training){0};
    return tn_fields_read(tn_training_fields, state, json, path, "settings", err);
}

/* The last checkpoint that is not damaged; *cause is what is wrong with the first one that is.
 */
static tarn_status open_whole(struct tn_safetensors *file, char path[TN_FOLDER_PATH],
                              uint64_t *update, const char *folder, tarn_error *cause,
                              tarn_error *err)
{
    uint64_t below = UINT64_MAX;
    bool found;
    tarn_status status;

    *cause = (tarn_error){0};
    while ((status = tn_folder_last(folder, below, &found, update, err)) == TARN_OK && found) {
        tarn_error wrong;

        tn_folder_checkpoint(path, folder, *update);
        status = tn_safetensors_read(file, path, &wrong);
        if (status == TARN_OK)
            return TARN_OK;
        if (status != TARN_EFORMAT)
            return tn_fail(err, status, "%s", wrong.text);
        if (below == UINT64_MAX)
            *cause = wrong;
        below = *update;
    }
    if (status != TARN_OK)
        return status;
    if (cause->status != TARN_OK)
        return tn_fail(err, TARN_EFORMAT, "%.200s; no other checkpoint is whole", cause->text);
    return tn_fail(err, TARN_EUNKNOWN, "%s: has no checkpoint to resume from", folder);
}

tarn_status tn_training_read_last(struct tn_training *state, tarn_config *config,
                                  const char *folder, tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    uint64_t update = 0;
    tarn_error cause;
    tarn_status status = open_whole(&file, path, &update, folder, &cause, err);

    if (status != TARN_OK)
        return status;
    if ((status = read_state(state, &file, tn_path_shown(path), err)) == TARN_OK && config)
        status = tn_config_from_file(config, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}

tarn_status tarn_train_settings(tarn_config *config, tarn_settings *settings,
                                const char *folder, tarn_error *err)
{
    struct tn_training state;

    if (!config || !settings || !folder)
        return tn_fail(err, TARN_EINVAL, "config, settings and folder must not be NULL");
    const tarn_status status = tn_training_read_last(&state, config, folder, err);

    if (status == TARN_OK)
        *settings = state.settings;
    return status;
}

/* ---- Resuming ----------------------------------------------------------- */

/* The last checkpoint; if it is damaged, one before it is used only if the caller allows that,
 * and then the damaged ones are set aside: they must not count as those that are kept. */
static tarn_status open_last(struct tn_safetensors *file, char path[TN_FOLDER_PATH],
                             const tarn_train_desc *desc, tarn_error *err)
{
    uint64_t update = 0, later = 0;
    bool found = true;
    tarn_error cause;
    tarn_status status = open_whole(file, path, &update, desc->out, &cause, err);

    if (status == TARN_OK && cause.status != TARN_OK && !desc->any) {
        tn_safetensors_free(file);
        return tn_fail(err, TARN_EFORMAT,
                       "%.170s; the checkpoint of update %" PRIu64
                       " is whole: add --any to resume from it",
                       cause.text, update);
    }
    while (status == TARN_OK &&
           (status = tn_folder_last(desc->out, UINT64_MAX, &found, &later, err)) == TARN_OK &&
           found && later > update)
        status = tn_folder_set_aside(desc->out, later, err);
    return status;
}

/* Closes the file. */
static tarn_status read_checkpoint(struct tn_training_run *t, struct tn_safetensors *file,
                                   const char *path, tarn_error *err)
{
    const char *const shown = tn_path_shown(path);
    const tarn_settings settings = t->state.settings;
    struct tn_training before;
    tarn_status status;

    if ((status = read_state(&before, file, shown, err)) == TARN_OK &&
        (status = tn_settings_agree(&t->state, &before, shown, err)) == TARN_OK)
        status = tn_checkpoint_read(t->trainer, file, shown, err);
    tn_safetensors_free(file);
    if (status != TARN_OK)
        return status;
    t->state = before;
    t->state.settings = settings;
    t->saved = tarn_trainer_updates(t->trainer);
    return TARN_OK;
}

/* The model is written again: who was killed between a checkpoint and its model left an older
 * one, and there may be no update left to do. */
static tarn_status resume(struct tn_training_run *t, tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    tarn_status status = open_last(&file, path, t->desc, err);

    if (status == TARN_OK && (status = read_checkpoint(t, &file, path, err)) == TARN_OK)
        status = tn_training_save_model(t, "model.safetensors", err);
    return status;
}

/* The checkpoint that process 0 has found; it may be that the others would find another. */
static tarn_status read_too(struct tn_training_run *t, uint64_t updates, tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    tarn_status status;

    tn_folder_checkpoint(path, t->desc->out, updates);
    if ((status = tn_safetensors_read(&file, path, err)) == TARN_OK &&
        (status = read_checkpoint(t, &file, path, err)) == TARN_OK &&
        tarn_trainer_updates(t->trainer) != updates)
        status = tn_fail_path(err, TARN_EFORMAT, path,
                              "has another number of updates than its name");
    return status;
}

/* The run as process 0 has resumed it. */
static tarn_status resume_too(struct tn_training_run *t, tarn_error *err)
{
    const tarn_comm *const comm = t->desc->comm;
    uint64_t updates = tarn_trainer_updates(t->trainer);
    tarn_status status = tn_comm_broadcast(comm, &updates, sizeof updates, err);

    if (status == TARN_OK && !tn_training_writes(t))
        status = read_too(t, updates, err);
    if ((status = tn_comm_agree(comm, status, TN_LONG, err)) != TARN_OK)
        return status;
    return tn_peers_compare_resumed(comm, t->model, err);
}

/* ---- Opening ------------------------------------------------------------ */

static tarn_status open_here(struct tn_training_run *t, tarn_error *err)
{
    tarn_status status;

    if ((status = tn_folder_make(t->desc->out, err)) != TARN_OK ||
        (status = tn_folder_lock(&t->lock, t->desc->out, err)) != TARN_OK)
        return status;
    return t->desc->resume ? resume(t, err) : tn_folder_check_new(t->desc->out, err);
}

tarn_status tn_training_open_folder(struct tn_training_run *t, tarn_error *err)
{
    const tarn_status status =
        tn_training_agree(t, tn_training_writes(t) ? open_here(t, err) : TARN_OK, err);

    return status == TARN_OK && t->desc->resume && tn_comm_size(t->desc->comm) > 1
               ? resume_too(t, err)
               : status;
}

/* A run that begins has a checkpoint before anything else is in its folder: whenever it is
 * interrupted, it can be resumed. */
tarn_status tn_training_open_log(struct tn_training_run *t, tarn_error *err)
{
    char path[TN_FOLDER_PATH];
    tarn_status status =
        t->desc->resume ? TARN_OK : collect_and_write(t, write_checkpoint, err);

    if (status == TARN_OK && tn_training_writes(t)) {
        tn_folder_path(path, t->desc->out, "log.jsonl");
        status =
            tn_log_open(&t->log, path, t->desc->resume, tarn_trainer_updates(t->trainer), err);
    }
    return tn_training_agree(t, status, err);
}
