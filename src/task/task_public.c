/* SPDX-License-Identifier: MIT */
/* task_public.c - the part of tasks that programs see: names, symbols, text, what suits
 * them. */
#include "task/task.h"

#include <math.h>

#include "model/config.h"

static const struct tn_task_row *find(const char *task)
{
    return task ? tn_table_find(&tn_tasks, NULL, task, NULL, NULL) : NULL;
}

const char *tarn_task_preset(const char *task)
{
    const struct tn_task_row *const row = find(task);

    return row ? row->preset : NULL;
}

const char *tarn_task_metric(const char *task)
{
    const struct tn_task_row *const row = find(task);

    return row ? row->metric.name : NULL;
}

double tarn_task_measure(const char *task, const tarn_score *sums)
{
    const struct tn_task_row *const row = find(task);

    return row && sums ? row->metric.value(sums) : (double)NAN;
}

tarn_status tarn_task_open(tarn_task **task, const char *spec, tarn_error *err)
{
    if (!task)
        return tn_fail(err, TARN_EINVAL, "task must not be NULL");
    *task = NULL;
    if (!spec)
        return tn_fail(err, TARN_EINVAL, "spec must not be NULL");
    return tn_task_create(task, spec, &(struct tn_task_desc){.bare = true}, err);
}

tarn_status tn_task_symbols_of(size_t *symbols, const char *spec, tarn_error *err)
{
    tarn_task *task;
    const tarn_status status = tarn_task_open(&task, spec, err);

    if (status == TARN_OK)
        *symbols = tarn_task_symbols(task);
    tarn_task_free(task);
    return status;
}

bool tarn_task_image(tarn_image_size *size, const char *name)
{
    tarn_task bare = {0}; /* needs no memory: there is no way to say that there is none */

    *size = (tarn_image_size){0};
    bare.row = name ? tn_table_find(&tn_tasks, &bare.options, name, NULL, NULL) : NULL;
    if (!bare.row || !bare.row->image)
        return false;
    *size = bare.row->image(&bare);
    return true;
}

tarn_status tarn_config_start(tarn_config *config, const char *task, const char *preset,
                              tarn_error *err)
{
    size_t symbols;
    tarn_status status = tn_task_symbols_of(&symbols, task, err);

    if (status != TARN_OK)
        return status;
    const struct tn_task_row *const row = find(task);

    if (!preset)
        preset = row->preset;
    if (tarn_preset_task(preset) && find(tarn_preset_task(preset)) != row)
        return tn_fail(err, TARN_EINVAL, "preset: '%s' is made for task '%s', not for '%s'",
                       preset, tarn_preset_task(preset), task);
    if ((status = tarn_config_preset(config, preset, err)) != TARN_OK ||
        (status = tarn_config_set(config, "task", task, err)) != TARN_OK)
        return status;
    config->symbols = symbols;
    config->frames = row->frames;
    config->stack = row->frames ? tn_preset_stack(preset) : 1;
    return row->head && !tn_preset_has(preset, "head")
               ? tarn_config_set(config, "head", row->head, err)
               : TARN_OK;
}
