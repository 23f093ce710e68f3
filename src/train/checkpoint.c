/* SPDX-License-Identifier: MIT */
/* checkpoint.c - a trainer in a file: the model's tensors under their names, so that any reader
 * of the model reads it, the moments beside them, and in the metadata the few numbers that are
 * left. One file is renamed at once, so what is there is whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "file/fields_json.h"
#include "model/model_file.h"
#include "train/trainer.h"

static const char progress_key[] = "tarn_progress";
static const char states_name[] = "carry.states"; /* of the streams, if they are carried */

/* Of the names of moment i: "optimizer.m." */
struct prefix {
    char text[16];
};

static struct prefix prefix_of(const tarn_trainer *t, size_t i)
{
    return (struct prefix){
        {'o', 'p', 't', 'i', 'm', 'i', 'z', 'e', 'r', '.', t->optimizer.row->moments[i], '.'}};
}

/* Arrays of a float per parameter: the weights, and the moments. */
static size_t array_count(const tarn_trainer *t)
{
    return 1 + tn_optimizer_moments(&t->optimizer);
}

/* ---- The few numbers ---------------------------------------------------- */

#define FIELD(kind, text, member, least, most, before)                                         \
    {                                                                                          \
        .about = {.name = text, .help = ""}, .type = TN_FIELD_##kind,                          \
        .offset = offsetof(struct tn_progress, member), .minimum = least, .maximum = most,     \
        .absent = before                                                                       \
    }
#define COUNT(text, member, before) FIELD(SEED, text, member, 0, TN_FIELD_MOST, before)

static const struct tn_field fields[] = {
    FIELD(TEXT, "optimizer", optimizer, 0, 0, NULL),
    COUNT("updates", updates, NULL),
    COUNT("skipped", skipped, "0"),
    COUNT("seed", seed, NULL),
    FIELD(NUMBER, "best", schedule.best, -1e300, 1e300, NULL),
    COUNT("improved", schedule.improved, NULL),
    COUNT("stale", schedule.stale, NULL),
    COUNT("cuts", schedule.cuts, NULL),
    COUNT("since", schedule.since, "0"),
    FIELD(NUMBER, "point", schedule.point, 0, 1e300, "0"),
    FIELD(NUMBER, "stretch", schedule.stretch, 0, 1e300, "0"),
    COUNT("position", position, "0"),
    {.about = {.name = NULL}},
};

/* ---- Saving ------------------------------------------------------------- */

/* Memory for writing: as many tensors as there are arrays for each of the model's, and the
 * states. */
struct draft {
    struct tn_safetensor *tensors;
    size_t count;
    struct tn_tensor_text *names;
    char *config, *progress;
};

static void draft_free(struct draft *draft)
{
    free(draft->tensors);
    free(draft->names);
    free(draft->config);
    free(draft->progress);
}

static tarn_status draft_make(struct draft *draft, const tarn_trainer *t, const float *moments,
                              tarn_error *err)
{
    const size_t n = t->model->tensor_count, arrays = array_count(t);
    tarn_status status;

    draft->tensors = calloc(arrays * n + 1, sizeof *draft->tensors);
    draft->names = calloc(arrays * n, sizeof *draft->names);
    if (!draft->tensors || !draft->names)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to write a checkpoint");
    if ((status = tn_fields_write(&draft->config, tn_config_fields, &t->model->arch.config,
                                  "the configuration", err)) != TARN_OK ||
        (status = tn_fields_write(&draft->progress, fields, &t->progress, "the progress",
                                  err)) != TARN_OK)
        return status;
    tn_model_tensors(draft->tensors, draft->names, t->model, "", t->model->values);
    for (size_t i = 1; i < arrays; i++)
        tn_model_tensors(draft->tensors + i * n, draft->names + i * n, t->model,
                         prefix_of(t, i - 1).text,
                         moments ? moments + (i - 1) * t->model->count : t->moments[i - 1]);
    draft->count = arrays * n;
    if (t->carry.bytes > 0)
        draft->tensors[draft->count++] = (struct tn_safetensor){
            .name = states_name,
            .dtype = TN_DTYPE_U8,
            .rank = 1,
            .shape = {t->carry.bytes},
            .data = t->carry.blocks[0],
        };
    return TARN_OK;
}

tarn_status tn_checkpoint_write(const tarn_trainer *t, const char *path, const float *moments,
                                const struct tn_safetensors_entry *more, tarn_error *err)
{
    struct draft draft = {0};
    tarn_status status = draft_make(&draft, t, moments, err);

    if (status == TARN_OK) {
        struct tn_safetensors_entry metadata[4] = {
            {tn_model_key, draft.config},
            {progress_key, draft.progress},
        };
        size_t entries = 2;

        if (t->model->note)
            metadata[entries++] = (struct tn_safetensors_entry){tn_note_key, t->model->note};
        if (more)
            metadata[entries++] = *more;
        status = tn_safetensors_write(path, draft.tensors, draft.count, metadata, entries, err);
    }
    draft_free(&draft);
    return status;
}

tarn_status tarn_trainer_save(tarn_trainer *t, const char *path, tarn_error *err)
{
    float *moments = NULL;
    tarn_status status;

    if (!t || !path)
        return tn_fail(err, TARN_EINVAL, "trainer and path must not be NULL");
    status = tn_trainer_collect(t, &moments, err);
    if (status == TARN_OK && tn_comm_rank(t->comm) == 0)
        status = tn_checkpoint_write(t, path, moments, NULL, err);
    free(moments);
    return tn_comm_agree(t->comm, status, TN_LONG, err);
}

/* ---- Loading ------------------------------------------------------------ */

static tarn_status read_progress(struct tn_progress *p, const tarn_trainer *t,
                                 const struct tn_safetensors *file, const char *path,
                                 tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, progress_key);
    tarn_status status;

    if (!json)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: is a model without training state; expected a checkpoint", path);
    status = tn_fields_read(fields, p, json, path, "progress", err);
    if (status == TARN_OK && strcmp(p->optimizer, t->optimizer.row->about.name) != 0)
        status = tn_fail(err, TARN_EINVAL, "%s: was trained with optimizer '%s'; expected '%s'",
                         path, p->optimizer, t->optimizer.row->about.name);
    if (status == TARN_OK && p->schedule.since > p->updates)
        status = tn_fail(err, TARN_EFORMAT,
                         "%s: its schedule was stretched after update %" PRIu64 ", but it has "
                         "only %" PRIu64,
                         path, p->schedule.since, p->updates);
    if (status == TARN_OK && p->skipped > p->updates)
        status = tn_fail(err, TARN_EFORMAT,
                         "%s: is damaged: %" PRIu64 " skipped of %" PRIu64 " updates", path,
                         p->skipped, p->updates);
    return status;
}

static tarn_status check_config(const tarn_trainer *t, const struct tn_safetensors *file,
                                const char *path, tarn_error *err)
{
    tarn_config config;
    const tarn_status status = tn_config_from_file(&config, file, path, err);

    return status == TARN_OK ? tn_fields_agree(tn_config_fields, &t->model->arch.config,
                                               &config, (const char *const[]){NULL}, path, err)
                             : status;
}

/* Other symbols, or features that were normalised otherwise, are another task. */
static tarn_status check_note(const tarn_trainer *t, const struct tn_safetensors *file,
                              const char *path, tarn_error *err)
{
    const char *const found = tn_safetensors_metadata(file, tn_note_key);
    const char *const expected = t->model->note;

    if (expected ? found && strcmp(found, expected) == 0 : !found)
        return TARN_OK;
    return tn_fail(
        err, TARN_EINVAL,
        "%s: was trained on other data: its '%s' metadata differs; use the same data", path,
        tn_note_key);
}

static tarn_status read_arrays(float *arrays, const tarn_trainer *t,
                               const struct tn_safetensors *file, const char *path,
                               tarn_error *err)
{
    tarn_status status = tn_model_read_tensors(arrays, t->model, file, "", path, err);

    for (size_t i = 1; i < array_count(t) && status == TARN_OK; i++)
        status = tn_model_read_tensors(arrays + i * t->model->count, t->model, file,
                                       prefix_of(t, i - 1).text, path, err);
    return status;
}

/* NULL in *states: the trainer carries none. */
static tarn_status find_states(const void **states, const tarn_trainer *t,
                               const struct tn_progress *p, const struct tn_safetensors *file,
                               const char *path, tarn_error *err)
{
    const struct tn_safetensor *const found = tn_safetensors_find(file, states_name);

    *states = NULL;
    if (t->carry.bytes == 0)
        return TARN_OK;
    if (!found)
        return tn_fail(err, TARN_EINVAL, "%s: has no tensor '%s'; it was trained without carry",
                       path, states_name);
    if (found->dtype != TN_DTYPE_U8 || found->bytes != t->carry.bytes)
        return tn_fail(err, TARN_EINVAL,
                       "%s: '%s' has %zu bytes; expected %zu: it was trained with another "
                       "batch size",
                       path, states_name, found->bytes, t->carry.bytes);
    for (size_t i = 0; i < t->micro_batches; i++)
        if (!tn_run_states_fit(t->run, (const char *)found->data + i * t->carry.part_bytes,
                               p->position))
            return tn_fail(err, TARN_EFORMAT, "%s: '%s' is damaged", path, states_name);
    *states = found->data;
    return TARN_OK;
}

static void take_over(tarn_trainer *t, const struct tn_progress *p, const float *arrays,
                      const void *states)
{
    const size_t n = t->model->count;

    memcpy(t->model->values, arrays, n * sizeof *arrays);
    for (size_t i = 1; i < array_count(t); i++)
        memcpy(t->moments[i - 1], arrays + i * n + t->shard.from,
               t->shard.floats * sizeof *arrays);
    t->progress = *p;
    t->weight = 0.0;
    t->carry.position = p->position;
    if (states)
        memcpy(t->carry.blocks[0], states, t->carry.bytes);
}

/* All is read before anything is taken over. */
tarn_status tn_checkpoint_read(tarn_trainer *t, const struct tn_safetensors *file,
                               const char *path, tarn_error *err)
{
    struct tn_progress p = {0};
    float *const arrays = malloc(array_count(t) * t->model->count * sizeof *arrays);
    const void *states = NULL;
    tarn_status status;

    if (!arrays)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory to read it", path);
    if ((status = check_config(t, file, path, err)) == TARN_OK &&
        (status = check_note(t, file, path, err)) == TARN_OK &&
        (status = read_progress(&p, t, file, path, err)) == TARN_OK &&
        (status = find_states(&states, t, &p, file, path, err)) == TARN_OK &&
        (status = read_arrays(arrays, t, file, path, err)) == TARN_OK)
        take_over(t, &p, arrays, states);
    free(arrays);
    return status;
}

tarn_status tarn_trainer_load(tarn_trainer *t, const char *path, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!t || !path)
        return tn_fail(err, TARN_EINVAL, "trainer and path must not be NULL");
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    status = tn_checkpoint_read(t, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}
