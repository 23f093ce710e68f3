/* SPDX-License-Identifier: MIT */
#include "train/peers.h"

#include <stdlib.h>

#include "comm/fingerprint.h"
#include "file/fields_json.h"
#include "model/config.h"
#include "train/settings.h"

/* With others, the same program rounds differently. */
static uint64_t hash_instructions(const struct tn_host *host)
{
    return tn_hash_text(tn_hash_text(0, tarn_cpu_name(0)), host->kernels->name);
}

static tarn_status hash_fields(uint64_t *hash, const struct tn_field *fields,
                               const void *record, const char *what, tarn_error *err)
{
    char *json;
    const tarn_status status = tn_fields_write(&json, fields, record, what, err);

    *hash = tn_hash_text(0, status == TARN_OK ? json : NULL);
    free(json);
    return status;
}

/* Every process may have the files elsewhere. */
static tarn_status hash_settings(uint64_t *hash, const tarn_settings *settings, tarn_error *err)
{
    struct tn_training state = {.settings = *settings};

    *state.settings.data = *state.settings.cache = '\0';
    return hash_fields(hash, tn_training_fields, &state, "settings", err);
}

/* What of it is in memory; batches are compared at every update. */
static uint64_t hash_data(const tarn_model *model, const struct tn_loader *loader,
                          const tarn_settings *settings)
{
    const tarn_task *const task = loader->task;
    const uint64_t words[] = {
        tn_task_batches(task, TN_TRAINING, settings->batch),
        tn_task_batches(task, TN_VALIDATION, settings->batch),
        task->row->hash ? task->row->hash(task) : 0,
    };

    return tn_hash(tn_hash_text(0, model->note), words, sizeof words);
}

static uint64_t hash_weights(const tarn_model *model)
{
    return tn_hash(0, model->values, model->count * sizeof *model->values);
}

static tarn_status hash_config(uint64_t *hash, const tarn_model *model, tarn_error *err)
{
    return hash_fields(hash, tn_config_fields, &model->arch.config, "the configuration", err);
}

tarn_status tn_peers_compare(const tarn_comm *comm, const struct tn_host *host,
                             const tarn_model *model, const struct tn_loader *loader,
                             const tarn_settings *settings, tarn_error *err)
{
    uint64_t config, other;
    tarn_status status;

    if (tn_comm_size(comm) == 1)
        return TARN_OK;
    if ((status = hash_config(&config, model, err)) == TARN_OK)
        status = hash_settings(&other, settings, err);
    if ((status = tn_comm_agree(comm, status, TN_SHORT, err)) != TARN_OK)
        return status;
    const struct tn_fingerprint prints[] = {
        {"another build of tarn", tn_hash_build(0)},
        {"another kind of processor, or other instructions,", hash_instructions(host)},
        {"another model configuration", config},
        {"other settings", other},
        {"other data", hash_data(model, loader, settings)},
        {"other weights", hash_weights(model)},
    };

    return tn_fingerprints_compare(comm, prints, sizeof prints / sizeof prints[0], err);
}

tarn_status tn_peers_compare_trainers(const tarn_trainer *t, tarn_error *err)
{
    uint64_t config;
    const tarn_status status =
        tn_comm_agree(t->comm, hash_config(&config, t->model, err), TN_SHORT, err);

    if (status != TARN_OK)
        return status;
    const struct tn_fingerprint prints[] = {
        {"another build of tarn", tn_hash_build(0)},
        {"another kind of processor, or other instructions,", hash_instructions(&t->host)},
        {"another model configuration", config},
        {"another description of its trainer", t->described},
        {"other weights", hash_weights(t->model)},
    };

    return tn_fingerprints_compare(t->comm, prints, sizeof prints / sizeof prints[0], err);
}

tarn_status tn_peers_compare_resumed(const tarn_comm *comm, const tarn_model *model,
                                     tarn_error *err)
{
    const struct tn_fingerprint print = {"another checkpoint of the same number of updates",
                                         hash_weights(model)};

    return tn_fingerprints_compare(comm, &print, 1, err);
}
