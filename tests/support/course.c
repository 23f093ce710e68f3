/* SPDX-License-Identifier: MIT */
#include "support/course.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model_data.h"

static tarn_status train(const struct course *c, tarn_trainer *trainer, double *losses,
                         double *score, tarn_error *err)
{
    tarn_batch batches[COURSE_BATCHES];
    tarn_score sums = {0};
    tarn_status status = TARN_OK;

    while (tarn_trainer_updates(trainer) < c->updates && status == TARN_OK) {
        const uint64_t update = tarn_trainer_updates(trainer);
        tarn_report report = {0};

        for (size_t i = 0; i < COURSE_BATCHES; i++)
            batches[i] = c->batch(c, i, update * COURSE_BATCHES + i);
        status = tarn_trainer_update(trainer, &report, batches, COURSE_BATCHES, err);
        losses[update] = report.loss;
    }
    batches[0] = c->batch(c, 0, 0);
    if (status == TARN_OK)
        status = tarn_trainer_score(trainer, &sums, &batches[0], err);
    *score = sums.loss;
    return status;
}

static void take_part(void *arg, const tarn_comm *comm)
{
    struct course *const c = arg;
    tarn_config config = config_of(c->variant);
    tarn_trainer_desc desc = c->desc;
    double losses[COURSE_UPDATES] = {0}, score = 0.0;
    tarn_model *model = NULL;
    tarn_trainer *trainer = NULL;
    tarn_error err = {0};
    tarn_status status;

    config.layers = c->layers ? c->layers : config.layers;
    config.dropout = c->drops ? 0.2 : 0.0;
    desc.comm = comm;
    desc.host = (tarn_host){.threads = 1 + comm->rank % 2, .cpu = forced_cpu()};
    if ((status = tarn_model_create(&model, &config, NULL, &err)) == TARN_OK &&
        (status = tarn_trainer_create(&trainer, model, &desc, &err)) == TARN_OK &&
        (!c->resume || (status = tarn_trainer_load(trainer, c->resume, &err)) == TARN_OK) &&
        (status = train(c, trainer, losses, &score, &err)) == TARN_OK && c->path)
        status = tarn_trainer_save(trainer, c->path, &err);
    if (comm->rank + 1 == comm->size) {
        c->status = status;
        memcpy(c->text, err.text, sizeof c->text);
        memcpy(c->losses, losses, sizeof losses);
        c->score = score;
        c->count = model ? model->count : 0;
        c->weights = take(c->count, sizeof *c->weights);
        if (model)
            memcpy(c->weights, model->values, c->count * sizeof *c->weights);
    }
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

struct course course_take(struct course course, size_t processes)
{
    run_processes(processes, 0, take_part, &course);
    if (course.status != TARN_OK)
        fail_msg("%s, %zu processes: %s", course.variant->name, processes, course.text);
    return course;
}

static struct course gradients_of(struct course course)
{
    course.desc.optimizer = "sgd";
    course.desc.clip = "none";
    course.desc.lr = 1.0;
    course.updates = 1;
    return course_take(course, 1);
}

void course_check_same(const struct course *a, const struct course *b)
{
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weights, b->weights, a->count * sizeof *a->weights);
}

static void check_close(const struct course *a, const struct course *b)
{
    assert_true(fabs(a->losses[0] - b->losses[0]) < 1e-5);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        if (!(fabsf(a->weights[i] - b->weights[i]) < 1e-4f))
            fail_msg("%s: weight %zu is %g and %g", a->variant->name, i, (double)a->weights[i],
                     (double)b->weights[i]);
}

void course_check_gradients(struct course a, struct course b)
{
    struct course one = gradients_of(a), other = gradients_of(b);

    check_close(&one, &other);
    free(one.weights);
    free(other.weights);
}

void check_trainer_refused(const struct model_variant *variant, const tarn_trainer_desc *desc,
                           const char *why)
{
    tarn_model *const model = model_of(variant);
    tarn_trainer *trainer;
    tarn_error err;

    assert_int_equal(tarn_trainer_create(&trainer, model, desc, &err), TARN_EINVAL);
    assert_string_equal(err.text, why);
    tarn_model_free(model);
}

static void take_part_in_pair(void *arg, const tarn_comm *comm)
{
    struct pair *const pair = arg;
    tarn_trainer_desc desc = pair->course->desc;
    tarn_model *const model = model_of(pair->course->variant);
    tarn_error *const err = &pair->err[comm->rank];
    tarn_trainer *trainer;

    desc.comm = comm;
    desc.host = (tarn_host){.threads = 1, .cpu = forced_cpu()};
    tarn_status status = tarn_trainer_create(&trainer, model, &desc, err);

    if (status == TARN_OK && comm->rank == 1) {
        status = pair->second(trainer, pair->course, err);
    } else if (status == TARN_OK) {
        const tarn_batch batch = pair->course->batch(pair->course, 0, 1);
        tarn_report report;

        status = tarn_trainer_update(trainer, &report, &batch, 1, err);
    }
    pair->status[comm->rank] = status;
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

struct pair pair_run(const struct course *course, second_process *second, double timeout)
{
    struct pair pair = {.course = course, .second = second};

    run_processes(2, timeout, take_part_in_pair, &pair);
    return pair;
}
