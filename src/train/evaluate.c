/* SPDX-License-Identifier: MIT */
#include "train/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "train/pass.h"
#include "train/settings.h"

enum { ENDLESS = 16 }; /* batches of a validation that has no end */

/* ---- Batches ------------------------------------------------------------ */

static void lay_out(struct tn_lesson *lesson, const tarn_settings *settings,
                    struct tn_arena *arena)
{
    lesson->batches = tn_arena_take(arena, settings->accumulate, sizeof *lesson->batches);
    lesson->views = tn_arena_take(arena, settings->accumulate, sizeof *lesson->views);
    for (size_t i = 0; i < settings->accumulate; i++) {
        struct tn_batch batch;

        tn_batch_take(&batch, settings->batch, settings->length, arena);
        if (!lesson->batches)
            continue;
        lesson->batches[i] = batch;
        lesson->views[i] = (tarn_batch){
            .inputs = batch.inputs, .targets = batch.targets, .weights = batch.weights};
    }
}

static tarn_status open_task(struct tn_lesson *lesson, tarn_settings *settings, tarn_error *err)
{
    const struct tn_task_desc desc = {
        .data = *settings->data ? settings->data : NULL,
        .length = settings->length,
        .seed = settings->seed,
        .validation = settings->validation,
    };
    const tarn_status status = tn_task_create(&lesson->task, settings->task, &desc, err);

    if (status != TARN_OK)
        return status;
    memcpy(settings->task, lesson->task->spec, sizeof settings->task);
    settings->length = lesson->task->N;
    return TARN_OK;
}

static tarn_status make_batches(struct tn_lesson *lesson, const tarn_settings *settings,
                                tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);
    size_t floats;

    if (!tn_size_product(
            &floats, (size_t[]){settings->batch, settings->length, settings->accumulate, 64},
            4))
        return tn_fail(err, TARN_EINVAL, "batch, length, accumulate: do not fit in memory");
    lay_out(lesson, settings, &measure);
    lesson->memory = malloc(tn_arena_bytes(&measure));
    if (!lesson->memory)
        return tn_fail(err, TARN_ENOMEM, "no memory for %zu batches of %zu",
                       settings->accumulate, settings->batch);
    struct tn_arena arena = tn_arena_over(lesson->memory);

    lay_out(lesson, settings, &arena);
    return TARN_OK;
}

tarn_status tn_lesson_open(struct tn_lesson *lesson, tarn_settings *settings, tarn_error *err)
{
    tarn_status status;

    *lesson = (struct tn_lesson){0};
    if ((status = open_task(lesson, settings, err)) != TARN_OK ||
        (status = make_batches(lesson, settings, err)) != TARN_OK)
        tn_lesson_close(lesson);
    return status;
}

void tn_lesson_close(struct tn_lesson *lesson)
{
    tn_task_free(lesson->task);
    free(lesson->memory);
    *lesson = (struct tn_lesson){0};
}

/* ---- Validation --------------------------------------------------------- */

static size_t batch_count(const struct tn_lesson *lesson, const tarn_settings *settings)
{
    const size_t all = tn_task_evaluations(lesson->task, settings->batch);
    const size_t asked = settings->score_batches;

    if (asked == 0)
        return all ? all : ENDLESS;
    return all ? tn_min(all, asked) : asked;
}

tarn_status tn_lesson_validate(const struct tn_lesson *lesson, tarn_validation *validation,
                               const tarn_settings *settings, tn_scorer *scorer, void *arg,
                               tarn_error *err)
{
    const struct tn_metric *const metric = tn_task_metric(lesson->task);
    const size_t batches = batch_count(lesson, settings);
    tarn_score score = {0};
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < batches && status == TARN_OK; i++) {
        tn_task_fill(lesson->task, &lesson->batches[0], TN_VALIDATION, i);
        status = scorer(arg, &score, &lesson->views[0], err);
    }
    validation->loss = score.loss / score.weight;
    validation->metric = metric->value(&score);
    validation->name = metric->name;
    validation->positions = score.weight;
    return status;
}

/* ---- A model alone ------------------------------------------------------ */

static tarn_status score_batch(void *arg, tarn_score *score, const tarn_batch *batch,
                               tarn_error *err)
{
    return tn_pass_score(arg, score, batch, err);
}

tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                          const tarn_settings *settings, size_t threads, const char *cpu,
                          tarn_error *err)
{
    struct tn_lesson lesson = {0};
    struct tn_pass pass = {0};
    tarn_status status;

    if (!validation || !model || !settings)
        return tn_fail(err, TARN_EINVAL, "validation, model, settings: one is NULL");
    tarn_settings filled = *settings;

    *validation = (tarn_validation){0};
    if ((status = tn_lesson_open(&lesson, &filled, err)) == TARN_OK) {
        const struct tn_run_desc desc = {
            .B = filled.batch, .N = filled.length, .threads = threads, .cpu = cpu};

        if ((status = tn_pass_create(&pass, model, &desc, 1, 0, err)) == TARN_OK)
            status = tn_lesson_validate(&lesson, validation, &filled, score_batch, &pass, err);
    }
    tn_pass_free(&pass);
    tn_lesson_close(&lesson);
    return status;
}
