/* SPDX-License-Identifier: MIT */
/* test_copy.c - small models learn the copy task, and then copy: whole sequences at once, and
 * as recurrent networks on the same weights.
 *
 * test_copy [UPDATES]: with fewer than it takes to learn, they need only have begun to. Builds
 * with sanitizers look for wrong accesses and take minutes to learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/batches.h"
#include "support/streams.h"
#include "tarn/train.h"
#include "task/task.h"

enum { B = 32, N = 14, UPDATES = 1000, SYMBOLS = 10 };

static uint64_t updates = UPDATES;

struct pupil {
    tarn_model *model;
    tarn_trainer *trainer;
    tarn_task *task;
    struct tn_batch batch;
    void *memory;
};

static void pupil_open(struct pupil *p, const char *attention)
{
    const tarn_trainer_desc desc = {
        .batch = B,
        .length = N,
        .lr = 0.003,
        .schedule = "cosine:warmup=50,total=1000,final=0.02", /* it ends at rest */
        .host = {.threads = 1, .cpu = forced_cpu()},
    };
    struct tn_arena measure = tn_arena_over(NULL);
    tarn_config config;
    tarn_error err;

    check_ok(tarn_config_preset(&config, "tiny", &err), &err);
    check_ok(tarn_config_set(&config, "attention", attention, &err), &err);
    config.symbols = SYMBOLS + 1;
    check_ok(tarn_model_create(&p->model, &config, NULL, &err), &err);
    check_ok(tarn_trainer_create(&p->trainer, p->model, &desc, &err), &err);
    check_ok(
        tn_task_create(&p->task, "copy", &(struct tn_task_desc){.length = N, .seed = 1}, &err),
        &err);
    tn_batch_lay_out(&p->batch, B, N, &measure);
    p->memory = take(1, tn_arena_bytes(&measure));
    struct tn_arena arena = tn_arena_over(p->memory);

    tn_batch_lay_out(&p->batch, B, N, &arena);
}

static void pupil_close(struct pupil *p)
{
    tarn_task_free(p->task);
    tarn_trainer_free(p->trainer);
    tarn_model_free(p->model);
    free(p->memory);
}

static tarn_batch batch_of(struct pupil *p, enum tn_split split, uint64_t index)
{
    batch_fill(p->task, &p->batch, split, index);
    return (tarn_batch){
        .inputs = p->batch.inputs, .targets = p->batch.targets, .weights = p->batch.weights};
}

/* Loss and accuracy on sequences that were not trained on. */
static tarn_score learn(struct pupil *p)
{
    tarn_score score = {0};
    tarn_report report;
    tarn_error err;

    for (uint64_t i = 0; i < updates; i++) {
        const tarn_batch batch = batch_of(p, TN_TRAINING, i);

        check_ok(tarn_trainer_update(p->trainer, &report, &batch, 1, &err), &err);
    }
    const tarn_batch batch = batch_of(p, TN_VALIDATION, 0);

    check_ok(tarn_trainer_score(p->trainer, &score, &batch, &err), &err);
    return score;
}

static size_t most_likely(const float *outputs, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (outputs[i] > outputs[best])
            best = i;
    return best;
}

/* The model reads the first copy of each sequence and writes the second by itself: what it says
 * last is what it reads next. */
static void check_writes_copies(struct pupil *p, double least)
{
    struct streams s = streams_open(p->model, (tarn_engine_desc){.longest = N}, 1);
    size_t right = 0, counted = 0;

    batch_of(p, TN_VALIDATION, 1);
    for (size_t b = 0; b < B; b++) {
        const int32_t *const inputs = p->batch.inputs + b * N;
        const int32_t *const targets = p->batch.targets + b * N;
        const float *const weights = p->batch.weights + b * N;
        int32_t said = inputs[0];

        streams_restart(&s);
        for (size_t n = 0; n < N; n++) {
            const bool writes = n > 0 && weights[n - 1] != 0.0f;
            const int32_t reads = writes ? said : inputs[n];

            said = (int32_t)most_likely(streams_step(&s, &reads), SYMBOLS + 1);
            counted += weights[n] != 0.0f;
            right += weights[n] != 0.0f && said == targets[n];
        }
    }
    if (!((double)right >= least * (double)counted))
        fail_msg("%zu of %zu written right", right, counted);
    streams_close(&s);
}

/* On trained weights, whose outputs are large and sure. */
static void check_steps_equal_parallel(struct pupil *p)
{
    struct streams s = streams_open(p->model, (tarn_engine_desc){.longest = N}, B);
    const tarn_batch batch = batch_of(p, TN_VALIDATION, 2);
    const size_t O = SYMBOLS + 1;
    const float *all;
    tarn_run *run;
    int32_t now[B];
    tarn_error err;

    check_ok(tarn_run_create(
                 &run, p->model,
                 &(tarn_run_desc){.batch = B, .length = N, .host.cpu = forced_cpu()}, &err),
             &err);
    check_ok(tarn_run_forward(run, &all, batch.inputs, NULL, &err), &err);
    for (size_t n = 0; n < N; n++) {
        for (size_t b = 0; b < B; b++)
            now[b] = batch.inputs[b * N + n];
        const float *const outputs = streams_step(&s, now);

        for (size_t i = 0; i < B * O; i++) {
            const double want = (double)all[(i / O * N + n) * O + i % O];

            if (!(fabs((double)outputs[i] - want) <= 1e-4 * (1.0 + fabs(want))))
                fail_msg("position %zu, output %zu: %g; expected %g", n, i, (double)outputs[i],
                         want);
        }
    }
    streams_close(&s);
    tarn_run_free(run);
}

/* Who knows no more than that there are SYMBOLS has a loss of their logarithm. */
static void check_learned(const char *attention, const tarn_score *score)
{
    const double loss = score->loss / score->weight, accuracy = score->correct / score->weight;

    if (updates < UPDATES ? !(loss < 0.9 * log(SYMBOLS)) : !(loss < 0.05 && accuracy > 0.99))
        fail_msg("%s: loss %g, accuracy %g", attention, loss, accuracy);
}

static void trained_models_copy(void **unused)
{
    static const char *const attentions[] = {"linear", "softmax"};

    (void)unused;
    for (size_t a = 0; a < sizeof attentions / sizeof attentions[0]; a++) {
        struct pupil p;

        pupil_open(&p, attentions[a]);
        const tarn_score score = learn(&p);

        check_learned(attentions[a], &score);
        check_writes_copies(&p, updates < UPDATES ? 0.0 : 0.98);
        check_steps_equal_parallel(&p);
        pupil_close(&p);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trained_models_copy)};

    if (argc > 1)
        updates = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
