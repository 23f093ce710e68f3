/* SPDX-License-Identifier: MIT */
/* test_ranks.c - training by several processes, here threads: the same bits for any number of
 * them, for every model and optimizer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/model_case.h"
#include "support/thread_comm.h"
#include "support/speech_folder.h"
#include "train/trainer.h"

enum { B = 8, N = 11, UPDATES = 3, ACCUMULATED = 2, LABELS = 2 };

/* Batches by number, as training has them. Frames are of less than N positions at times. */
struct lesson {
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N], frames[B * N * MODEL_FRAMES];
    size_t lengths[B], counts[B];
};

static tarn_batch spoken(struct lesson *lesson, uint64_t number)
{
    const size_t length = N - number % 3;

    for (size_t b = 0; b < B; b++) {
        lesson->lengths[b] = length - b % 3;
        lesson->counts[b] = b % (LABELS + 1);
        lesson->weights[b] = b == 3 ? 0.0f : 1.0f;
    }
    for (size_t i = 0; i < B * LABELS; i++)
        lesson->targets[i] = 1 + (int32_t)(i % 3);
    return (tarn_batch){.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = lesson->weights,
                        .frames = lesson->frames,
                        .lengths = lesson->lengths,
                        .counts = lesson->counts};
}

static tarn_batch lesson_of(struct lesson *lesson, const tarn_model *model, uint64_t number,
                            bool carry)
{
    const tarn_config *const config = tarn_model_config(model);
    struct tn_random random;

    tn_random_seed(&random, number);
    draw_symbols(lesson->inputs, B * N, &random);
    for (size_t i = 0; i < B * N * MODEL_FRAMES; i++)
        lesson->frames[i] = (float)tn_random_normal(&random);
    for (size_t i = 0; i < B * N; i++) {
        lesson->targets[i] = (lesson->inputs[i] + 1) % MODEL_SYMBOLS;
        lesson->weights[i] = i % 5 ? 1.0f : 0.0f;
    }
    tarn_batch batch = {.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = lesson->weights,
                        .frames = config->frames > 0 ? lesson->frames : NULL,
                        .position = carry ? number % 5 * N : 0};

    if (strcmp(config->head, "ctc") == 0) {
        batch = spoken(lesson, number);
        if (config->frames == 0)
            batch.frames = NULL;
        else
            batch.length = N - number % 3;
    }
    return batch;
}

/* What is trained, and what came of it. */
struct course {
    const struct model_variant *variant;
    const char *optimizer, *clip;
    bool carry, bf16, shards, drops;
    const char *path;   /* of the checkpoint */
    const char *resume; /* NULL: from the start */

    tarn_status status;
    char text[256];
    double losses[UPDATES];
    float *weights;
    size_t count;
};

static tarn_status train(const struct course *c, tarn_trainer *trainer, const tarn_model *model,
                         double *losses, tarn_error *err)
{
    tarn_status status = TARN_OK;

    while (tarn_trainer_updates(trainer) < UPDATES && status == TARN_OK) {
        static _Thread_local struct lesson lessons[ACCUMULATED];
        const uint64_t update = tarn_trainer_updates(trainer);
        tarn_batch batches[ACCUMULATED];
        tarn_report report = {0};

        for (size_t i = 0; i < ACCUMULATED; i++)
            batches[i] = lesson_of(&lessons[i], model, update * ACCUMULATED + i, c->carry);
        status = tarn_trainer_update(trainer, &report, batches, ACCUMULATED, err);
        losses[update] = report.loss;
    }
    return status;
}

static void take_course(void *arg, const tarn_comm *comm)
{
    struct course *const c = arg;
    tarn_config config = config_of(c->variant);
    const tarn_trainer_desc desc = {
        .batch = B,
        .length = N,
        .optimizer = c->optimizer,
        .clip = c->clip,
        .lr = 0.01,
        .carry = c->carry,
        .varies = config.frames > 0,
        .seed = 3,
        .micro_batches = 4,
        .bf16_gradients = c->bf16,
        .shard_optimizer = c->shards,
        .comm = comm,
        .host = {.threads = 1 + comm->rank % 2, .cpu = forced_cpu()},
    };
    double losses[UPDATES] = {0};
    tarn_model *model = NULL;
    tarn_trainer *trainer = NULL;
    tarn_error err = {0};
    tarn_status status;

    config.dropout = c->drops ? 0.2 : 0.0;
    if ((status = tarn_model_create(&model, &config, NULL, &err)) == TARN_OK &&
        (status = tarn_trainer_create(&trainer, model, &desc, &err)) == TARN_OK &&
        (!c->resume || (status = tarn_trainer_load(trainer, c->resume, &err)) == TARN_OK) &&
        (status = train(c, trainer, model, losses, &err)) == TARN_OK && c->path)
        status = tarn_trainer_save(trainer, c->path, &err);
    if (comm->rank + 1 == comm->size) { /* not the one that writes */
        c->status = status;
        memcpy(c->text, err.text, sizeof c->text);
        memcpy(c->losses, losses, sizeof losses);
        c->count = model ? model->count : 0;
        c->weights = take(c->count, sizeof *c->weights);
        if (model)
            memcpy(c->weights, model->values, c->count * sizeof *c->weights);
    }
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static struct course attend(struct course course, size_t processes)
{
    run_processes(processes, 0, take_course, &course);
    return course;
}

static void check_same(const struct course *a, const struct course *b)
{
    if (a->status != TARN_OK)
        fail_msg("%s: %s", a->variant->name, a->text);
    assert_int_equal(b->status, TARN_OK);
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->weights, b->weights, a->count * sizeof *a->weights);
}

static void check_file(const char *a, const char *b)
{
    static char bytes[1 << 20];
    FILE *const in = fopen(a, "rb");

    assert_non_null(in);
    const size_t size = fread(bytes, 1, sizeof bytes, in);

    fclose(in);
    assert_true(size < sizeof bytes);
    file_check(b, bytes, size);
}

/* By 2 and 4 processes as by one, and the checkpoint, too. */
static void check_course(struct course course)
{
    struct folder folder = folder_open();
    const char *const first = folder_file(&folder, "1"), *const second =
                                                             folder_file(&folder, "n");

    course.path = first;
    struct course one = attend(course, 1);

    course.path = second;
    for (size_t processes = 2; processes <= 4; processes *= 2) {
        struct course many = attend(course, processes);

        check_same(&one, &many);
        check_file(first, second);
        free(many.weights);
    }
    free(one.weights);
    folder_close(&folder);
}

static void every_model_is_trained_to_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        check_course((struct course){.variant = model_variant_at(i), .drops = true});
    for (size_t i = 0; frame_variant_at(i); i++)
        check_course((struct course){.variant = frame_variant_at(i)});
}

static void every_optimizer_moves_by_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_optimizer(i); i++) {
        struct course course = {.variant = model_variant_at(0),
                                .optimizer = tarn_optimizer(i)->name,
                                .clip = i % 2 ? "global:norm=0.5" : NULL,
                                .drops = true};

        check_course(course);
        course.shards = true;
        check_course(course);
    }
}

static void rounded_gradients_have_the_same_bits(void **state)
{
    struct course course = {.variant = model_variant_at(0)};
    struct course exact = attend(course, 2);

    (void)state;
    course.bf16 = true;
    check_course(course);
    struct course rounded = attend(course, 2);

    assert_memory_not_equal(exact.weights, rounded.weights,
                            exact.count * sizeof *exact.weights);
    free(exact.weights);
    free(rounded.weights);
}

static void carried_states_are_the_same_to_the_bit(void **state)
{
    (void)state;
    check_course((struct course){.variant = model_variant_at(0), .carry = true});
}

/* ---- Micro-batches ------------------------------------------------------ */

/* Weights after an update by this many, from the same start, with an optimizer that only
 * subtracts the gradient. */
static void update_by(float *weights, double *loss, const struct model_variant *variant,
                      size_t micro_batches)
{
    const tarn_trainer_desc desc = {
        .batch = B,
        .length = N,
        .optimizer = "sgd",
        .clip = "none",
        .lr = 1.0,
        .micro_batches = micro_batches,
        .host = {.threads = 1, .cpu = forced_cpu()},
    };
    static struct lesson lesson;
    tarn_model *const model = model_of(variant);
    const tarn_batch batch = lesson_of(&lesson, model, 1, false);
    tarn_trainer *trainer;
    tarn_report report;
    tarn_error err;

    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    memcpy(weights, model->values, model->count * sizeof *weights);
    *loss = report.loss;
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void gradients_of_micro_batches_are_those_of_the_batch(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++) {
        tarn_model *const model = model_of(model_variant_at(i));
        float *const whole = take(model->count, sizeof *whole);
        float *const parts = take(model->count, sizeof *parts);
        double losses[2];

        update_by(whole, &losses[0], model_variant_at(i), 1);
        update_by(parts, &losses[1], model_variant_at(i), B);
        assert_true(fabs(losses[0] - losses[1]) < 1e-5);
        for (size_t k = 0; k < model->count; k++)
            assert_true(fabsf(whole[k] - parts[k]) < 1e-4f);
        free(whole);
        free(parts);
        tarn_model_free(model);
    }
}

static void check_refused(size_t micro_batches, size_t ranks, const char *why)
{
    const tarn_comm comm = {.size = ranks};
    const tarn_trainer_desc desc = {.batch = B,
                                    .length = N,
                                    .micro_batches = micro_batches,
                                    .comm = &comm,
                                    .host = {.threads = 1}};
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_trainer *trainer;
    tarn_error err;

    assert_int_equal(tarn_trainer_create(&trainer, model, &desc, &err), TARN_EINVAL);
    assert_string_equal(err.text, why);
    tarn_model_free(model);
}

static void micro_batches_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    check_refused(3, 1, "micro_batches is 3; it must be a power of two");
    check_refused(16, 1, "micro_batches is 16; it must divide batch, which is 8");
    check_refused(4, 3,
                  "3 ranks cannot share 4 micro-batches evenly; run a number of ranks that "
                  "divides micro_batches, or set that to a power of two that divides batch and "
                  "is a multiple of the ranks");
}

/* ---- Failures ----------------------------------------------------------- */

/* What process 1 of two makes of its batch. */
enum fault { SYMBOL_UNKNOWN, OTHER_SYMBOLS, NO_BATCH };

struct failing {
    enum fault fault;
    tarn_status status[2];
    tarn_error err[2];
};

static void fail_in_one(void *arg, const tarn_comm *comm)
{
    struct failing *const f = arg;
    const tarn_trainer_desc desc = {.batch = B,
                                    .length = N,
                                    .micro_batches = 2,
                                    .comm = comm,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};
    static _Thread_local struct lesson lesson;
    tarn_model *const model = model_of(model_variant_at(0));
    const tarn_batch batch = lesson_of(&lesson, model, 1, false);
    tarn_trainer *trainer;
    tarn_report report;
    tarn_error *const err = &f->err[comm->rank];
    tarn_status status = tarn_trainer_create(&trainer, model, &desc, err);

    if (comm->rank == 1 && f->fault != NO_BATCH)
        lesson.inputs[3] = f->fault == SYMBOL_UNKNOWN ? -1 : (lesson.inputs[3] + 1) % 3;
    if (status == TARN_OK && comm->rank == 1 && f->fault == NO_BATCH)
        status = tn_trainer_fail(trainer, tn_fail(err, TARN_EIO, "a.wav: is damaged"), err);
    else if (status == TARN_OK)
        status = tarn_trainer_update(trainer, &report, &batch, 1, err);
    f->status[comm->rank] = status;
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void what_one_process_cannot_learn_from_none_does(void **state)
{
    static const struct {
        enum fault fault;
        tarn_status status;
        const char *text;
    } rows[] = {
        {SYMBOL_UNKNOWN, TARN_EINVAL, "rank 1: inputs[3] is -1; it must be from 0 to 6"},
        {OTHER_SYMBOLS, TARN_EINVAL,
         "rank 1 read other data than rank 0 for update 1; all must have the same files"},
        {NO_BATCH, TARN_EIO, "rank 1: a.wav: is damaged"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failing f = {.fault = rows[i].fault};

        run_processes(2, 0, fail_in_one, &f);
        for (size_t rank = 0; rank < 2; rank++) {
            assert_int_equal(f.status[rank], rows[i].status);
            assert_string_equal(f.err[rank].text, rows[i].text);
        }
    }
}

/* ---- Runs --------------------------------------------------------------- */

/* What process 1 of two has otherwise. */
enum difference { NO_MEMORY, OTHER_SETTINGS, OTHER_CONFIG };

struct evaluation {
    enum difference difference;
    tarn_status status[2];
    tarn_error err[2];
};

static void *no_memory(void *context, size_t bytes)
{
    (void)context;
    (void)bytes;
    return NULL;
}

static void nothing_to_release(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

static tarn_config copy_config(void)
{
    tarn_config config = config_of(model_variant_at(0));

    config.symbols = 11;
    return config;
}

static tarn_status copy_settings(tarn_settings *settings, tarn_error *err)
{
    const tarn_status status = tarn_settings_start(settings, "copy", err);

    settings->batch = 2;
    settings->length = N;
    settings->steps = 1;
    settings->eval_batches = 2;
    return status;
}

/* Data is opened without the caller's allocator; only to compute there is no memory. */
static void evaluate_in_two(void *arg, const tarn_comm *comm)
{
    static const tarn_allocator none = {no_memory, nothing_to_release, NULL};
    struct evaluation *const e = arg;
    const bool differs = comm->rank == 1;
    const tarn_evaluate_desc desc = {
        .host = {.threads = 1,
                 .cpu = forced_cpu(),
                 .allocator = differs && e->difference == NO_MEMORY ? &none : NULL},
        .comm = comm};
    tarn_error *const err = &e->err[comm->rank];
    tarn_config config = copy_config();
    tarn_settings settings;
    tarn_validation validation;
    tarn_model *model = NULL;
    tarn_status status = copy_settings(&settings, err);

    if (differs && e->difference == OTHER_SETTINGS)
        settings.eval_batches++;
    if (differs && e->difference == OTHER_CONFIG)
        config.dropout = 0.1;
    if (status == TARN_OK &&
        (status = tarn_model_create(&model, &config, NULL, err)) == TARN_OK)
        status = tarn_evaluate(&validation, model, &settings, &desc, err);
    e->status[comm->rank] = status;
    tarn_model_free(model);
}

static void processes_that_differ_do_not_evaluate(void **state)
{
    static const struct {
        enum difference difference;
        tarn_status status;
        const char *text;
    } rows[] = {
        {NO_MEMORY, TARN_ENOMEM, "rank 1: not enough memory"},
        {OTHER_SETTINGS, TARN_EINVAL, "rank 1 has other settings than rank 0"},
        {OTHER_CONFIG, TARN_EINVAL, "rank 1 has another model configuration than rank 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct evaluation e = {.difference = rows[i].difference};

        run_processes(2, 10.0, evaluate_in_two, &e);
        for (size_t rank = 0; rank < 2; rank++) {
            assert_int_equal(e.status[rank], rows[i].status);
            assert_ptr_equal(strstr(e.err[rank].text, rows[i].text), e.err[rank].text);
        }
    }
}

/* A folder for each of two processes, as on disks that they do not share. */
struct folders {
    char runs[2][FOLDER_PATH];
    tarn_status status[2];
    tarn_error err[2];
};

static tarn_status train_copy(const char *run, const char *start, const tarn_comm *comm,
                              tarn_error *err)
{
    const tarn_config config = copy_config();
    const tarn_train_desc desc = {.out = run,
                                  .start = start,
                                  .resume = comm != NULL,
                                  .host = {.threads = 1, .cpu = forced_cpu()},
                                  .comm = comm};
    tarn_settings settings;
    const tarn_status status = copy_settings(&settings, err);

    settings.micro_batches = 2;
    return status == TARN_OK ? tarn_train(&config, &settings, &desc, err) : status;
}

static void resume_own(void *arg, const tarn_comm *comm)
{
    struct folders *const f = arg;

    f->status[comm->rank] = train_copy(f->runs[comm->rank], NULL, comm, &f->err[comm->rank]);
}

static void checkpoints_of_two_runs_are_not_resumed_as_one(void **state)
{
    struct folder folder = folder_open();
    struct folders f;
    char first[FOLDER_PATH + 32];
    tarn_error err;

    (void)state;
    strcpy(f.runs[0], folder_file(&folder, "a"));
    strcpy(f.runs[1], folder_file(&folder, "b"));
    snprintf(first, sizeof first, "%s/model.safetensors", f.runs[0]);
    check_ok(train_copy(f.runs[0], NULL, NULL, &err), &err);
    check_ok(train_copy(f.runs[1], first, NULL, &err), &err);
    run_processes(2, 10.0, resume_own, &f);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(f.status[rank], TARN_EINVAL);
        assert_string_equal(f.err[rank].text, "rank 1 has another checkpoint of the same "
                                              "number of updates than rank 0");
    }
    tree_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_is_trained_to_the_same_bits),
        cmocka_unit_test(every_optimizer_moves_by_the_same_bits),
        cmocka_unit_test(rounded_gradients_have_the_same_bits),
        cmocka_unit_test(carried_states_are_the_same_to_the_bit),
        cmocka_unit_test(gradients_of_micro_batches_are_those_of_the_batch),
        cmocka_unit_test(micro_batches_that_do_not_fit_are_refused),
        cmocka_unit_test(what_one_process_cannot_learn_from_none_does),
        cmocka_unit_test(processes_that_differ_do_not_evaluate),
        cmocka_unit_test(checkpoints_of_two_runs_are_not_resumed_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
