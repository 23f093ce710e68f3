/* SPDX-License-Identifier: MIT */
#include "train/peers.h"

#include <stdlib.h>

#include "comm/fingerprint.h"
#include "file/fields_json.h"
#include "model/config.h"
#include "train/settings.h"

/* Two that compute the same bits: the same program, on processors of the same kind. */
static uint64_t hash_build(void)
{
    uint64_t hash = tn_hash_text(0, tarn_version());

    hash = tn_hash_text(hash, __VERSION__); /* of the compiler */
    hash = tn_hash_text(hash, tarn_cpu_name(0));
    return tn_hash_text(hash, tarn_matmul_backend());
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

tarn_status tn_peers_compare(const tarn_comm *comm, const tarn_model *model,
                             const struct tn_loader *loader, const tarn_settings *settings,
                             tarn_error *err)
{
    uint64_t config, other;
    tarn_status status;

    if (tn_comm_size(comm) == 1)
        return TARN_OK;
    if ((status = hash_fields(&config, tn_config_fields, &model->arch.config,
                              "the configuration", err)) == TARN_OK)
        status = hash_settings(&other, settings, err);
    if ((status = tn_comm_agree(comm, status, TN_SHORT, err)) != TARN_OK)
        return status;
    const struct tn_fingerprint prints[] = {
        {"another build of tarn, or another kind of processor,", hash_build()},
        {"another model configuration", config},
        {"other settings", other},
        {"other data", hash_data(model, loader, settings)},
        {"other weights", hash_weights(model)},
    };

    return tn_fingerprints_compare(comm, prints, sizeof prints / sizeof prints[0], err);
}

tarn_status tn_peers_compare_resumed(const tarn_comm *comm, const tarn_model *model,
                                     tarn_error *err)
{
    const struct tn_fingerprint print = {"another checkpoint of the same number of updates",
                                         hash_weights(model)};

    return tn_fingerprints_compare(comm, &print, 1, err);
}
