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

        tn_task_take(lesson->task, &batch, settings->batch, arena);
        if (lesson->batches)
            lesson->batches[i] = batch;
    }
}

static void tell_lost(const struct tn_lesson *lesson, const struct tn_batch *batch,
                      enum tn_split split)
{
    tarn_skipped lost;

    for (size_t b = 0; b < batch->B && lesson->skipped; b++)
        if (tn_task_lost(lesson->task, batch, split, b, &lost))
            lesson->skipped(lesson->context, &lost);
}

tarn_status tn_lesson_fill(const struct tn_lesson *lesson, size_t i, enum tn_split split,
                           uint64_t index, tarn_error *err)
{
    struct tn_batch *const batch = &lesson->batches[i];
    const tarn_status status = tn_task_fill(lesson->task, batch, split, index, err);

    if (status == TARN_OK)
        tell_lost(lesson, batch, split);
    lesson->views[i] = (tarn_batch){
        .inputs = batch->inputs,
        .targets = batch->targets,
        .weights = batch->weights,
        .frames = batch->frames,
        .lengths = batch->lengths,
        .counts = batch->counts,
        .length = batch->length,
    };
    return status;
}

static tarn_status open_task(struct tn_lesson *lesson, tarn_settings *settings,
                             const struct tn_lesson_desc *given, tarn_error *err)
{
    const struct tn_task_desc desc = {
        .data = *settings->data ? settings->data : NULL,
        .length = settings->length,
        .seed = settings->seed,
        .validation = settings->validation,
        .note = given->note,
        .stack = given->stack,
        .cache = *settings->cache ? settings->cache : NULL,
        .strict = settings->strict,
        .threads = given->threads,
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
        return tn_fail(err, TARN_EINVAL,
                       "batch, length and accumulate do not fit in memory; reduce one of them");
    lay_out(lesson, settings, &measure);
    lesson->memory = malloc(tn_arena_bytes(&measure));
    if (!lesson->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu batches of %zu",
                       settings->accumulate, settings->batch);
    struct tn_arena arena = tn_arena_over(lesson->memory);

    lay_out(lesson, settings, &arena);
    return TARN_OK;
}

static void tell_skipped(const struct tn_lesson *lesson)
{
    tarn_skipped skipped;

    for (size_t i = 0; lesson->skipped && tn_task_skipped(lesson->task, i, &skipped); i++)
        lesson->skipped(lesson->context, &skipped);
}

tarn_status tn_lesson_open(struct tn_lesson *lesson, tarn_settings *settings,
                           const struct tn_lesson_desc *desc, tarn_error *err)
{
    tarn_status status;

    *lesson = (struct tn_lesson){
        .skipped = desc->skipped, .scored = desc->scored, .context = desc->context};
    if ((status = open_task(lesson, settings, desc, err)) == TARN_OK)
        tell_skipped(lesson);
    if (status != TARN_OK || (status = make_batches(lesson, settings, err)) != TARN_OK)
        tn_lesson_close(lesson);
    return status;
}

void tn_lesson_close(struct tn_lesson *lesson)
{
    tarn_task_free(lesson->task);
    free(lesson->memory);
    *lesson = (struct tn_lesson){0};
}

/* ---- Validation --------------------------------------------------------- */

static size_t batch_count(const struct tn_lesson *lesson, const tarn_settings *settings)
{
    const size_t all = tn_task_batches(lesson->task, TN_VALIDATION, settings->batch);
    const size_t asked = settings->eval_batches;

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
        status = tn_lesson_fill(lesson, 0, TN_VALIDATION, i, err);
        if (status == TARN_OK)
            status = scorer(arg, &score, &lesson->views[0], err);
        if (status == TARN_OK && lesson->scored)
            lesson->scored(lesson->context, i + 1, batches);
    }
    validation->loss = score.loss / score.weight;
    validation->metric = metric->value(&score);
    validation->name = metric->name;
    validation->positions = score.weight;
    validation->sums = score;
    return status;
}

/* ---- A model alone ------------------------------------------------------ */

static tarn_status score_batch(void *arg, tarn_score *score, const tarn_batch *batch,
                               tarn_error *err)
{
    return tn_pass_score(arg, score, batch, err);
}

static tarn_status evaluate(tarn_validation *validation, const tarn_model *model,
                            const struct tn_lesson *lesson, const tarn_settings *settings,
                            size_t beam, const struct tn_host *host, tarn_error *err)
{
    const struct tn_run_desc run = {.B = settings->batch, .N = settings->length};
    const size_t rungs = model->arch.config.frames > 0 ? TN_RUNGS : 1;
    struct tn_pass pass;
    tarn_status status = tn_pass_create(&pass, model, &run, rungs, beam, host, err);

    if (status != TARN_OK)
        return status;
    status = tn_lesson_validate(lesson, validation, settings, score_batch, &pass, err);
    tn_pass_free(&pass);
    return status;
}

static tarn_status check_beam(const tarn_task *task, const tarn_evaluate_desc *desc,
                              tarn_error *err)
{
    if (desc->beam == 0 || task->row->sequences)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "beam is %zu; it must be 0, because task '%s' has no sequences to decode",
                   desc->beam, task->spec);
}

tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                          const tarn_settings *settings, const tarn_evaluate_desc *desc,
                          tarn_error *err)
{
    struct tn_lesson lesson;
    struct tn_host host;
    tarn_status status;

    if (!validation || !model || !settings || !desc)
        return tn_fail(err, TARN_EINVAL,
                       "validation, model, settings and desc must not be NULL");
    *validation = (tarn_validation){0};
    if ((status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    const struct tn_lesson_desc data = {.note = model->note,
                                        .stack = model->arch.config.stack,
                                        .threads = host.threads,
                                        .skipped = desc->skipped,
                                        .scored = desc->scored,
                                        .context = desc->context};
    struct tn_training state = {.settings = *settings};

    state.settings.accumulate = 1; /* one batch at a time is enough here */
    if ((status = tn_fields_check(tn_training_fields, &state, err)) != TARN_OK ||
        (status = tn_lesson_open(&lesson, &state.settings, &data, err)) != TARN_OK)
        return status;
    if ((status = tn_task_fits(lesson.task, &model->arch.config, err)) == TARN_OK &&
        (status = check_beam(lesson.task, desc, err)) == TARN_OK)
        status = evaluate(validation, model, &lesson, &state.settings, desc->beam, &host, err);
    tn_lesson_close(&lesson);
    return status;
}
