/* SPDX-License-Identifier: MIT */
/* test_slices.c - sequences cut into chunks: the same bits for any number of processes that
 * share them, here threads, and the gradients of sequences that are not cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/model_case.h"
#include "support/thread_comm.h"
#include "train/trainer.h"

enum { B = 4, N = 32, CHUNKS = 8, UPDATES = 2, ACCUMULATED = 2, LONG = 4096 };

enum { LAYERS = 8 }; /* of which every third one's inputs are kept */

struct lesson {
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N];
    size_t lengths[B];
};

/* Sequence 1 is whole, the others end within chunks, at the end of one and before the second.
 */
static tarn_batch lesson_of(struct lesson *lesson, uint64_t number, bool lengths)
{
    static const size_t some[B] = {N - 5, N, N / 2, 3};
    struct tn_random random;

    tn_random_seed(&random, number);
    draw_symbols(lesson->inputs, B * N, &random);
    memcpy(lesson->lengths, some, sizeof some);
    for (size_t i = 0; i < B * N; i++) {
        lesson->targets[i] = (lesson->inputs[i] + 1) % MODEL_SYMBOLS;
        lesson->weights[i] = lengths && i % N >= some[i / N] ? 0.0f : i % 5 ? 1.0f : 0.5f;
    }
    return (tarn_batch){.inputs = lesson->inputs,
                        .targets = lesson->targets,
                        .weights = lesson->weights,
                        .lengths = lengths ? lesson->lengths : NULL};
}

/* What is trained, and what came of it. */
struct course {
    const struct model_variant *variant;
    size_t chunks, sharing; /* sharing: of the processes */
    size_t layers;          /* 0: the variant's */
    bool drops, lengths, recompute, bf16, shards;
    const char *optimizer;
    const char *path, *resume; /* checkpoints; NULL: none */
    uint64_t until;

    tarn_status status;
    char text[256];
    double losses[UPDATES], score;
    float *weights;
    size_t count;
};

static tarn_status train(struct course *c, tarn_trainer *trainer, double *losses, double *score,
                         tarn_error *err)
{
    static _Thread_local struct lesson lessons[ACCUMULATED];
    tarn_batch batches[ACCUMULATED];
    tarn_score sums = {0};
    tarn_status status = TARN_OK;

    while (tarn_trainer_updates(trainer) < c->until && status == TARN_OK) {
        const uint64_t update = tarn_trainer_updates(trainer);
        tarn_report report = {0};

        for (size_t i = 0; i < ACCUMULATED; i++)
            batches[i] = lesson_of(&lessons[i], update * ACCUMULATED + i, c->lengths);
        status = tarn_trainer_update(trainer, &report, batches, ACCUMULATED, err);
        losses[update] = report.loss;
    }
    if (status == TARN_OK)
        status = tarn_trainer_score(trainer, &sums, &batches[0], err);
    *score = sums.loss;
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
        .clip = c->optimizer ? "none" : NULL,
        .lr = c->optimizer ? 1.0 : 0.01,
        .seed = 3,
        .micro_batches = 2,
        .recompute = c->recompute,
        .bf16_gradients = c->bf16,
        .shard_optimizer = c->shards,
        .comm = comm,
        .sequence_chunks = c->chunks,
        .sequence_parallel = c->sharing,
        .host = {.threads = 1 + comm->rank % 2, .cpu = forced_cpu()},
    };
    double losses[UPDATES] = {0}, score = 0.0;
    tarn_model *model = NULL;
    tarn_trainer *trainer = NULL;
    tarn_error err = {0};
    tarn_status status;

    config.layers = c->layers ? c->layers : config.layers;
    config.dropout = c->drops ? 0.2 : 0.0;
    if ((status = tarn_model_create(&model, &config, NULL, &err)) == TARN_OK &&
        (status = tarn_trainer_create(&trainer, model, &desc, &err)) == TARN_OK &&
        (!c->resume || (status = tarn_trainer_load(trainer, c->resume, &err)) == TARN_OK) &&
        (status = train(c, trainer, losses, &score, &err)) == TARN_OK && c->path)
        status = tarn_trainer_save(trainer, c->path, &err);
    if (comm->rank + 1 == comm->size) { /* not the one that writes */
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

static struct course attend(struct course course, size_t processes, size_t sharing)
{
    course.sharing = sharing;
    course.until = course.until ? course.until : UPDATES;
    run_processes(processes, 0, take_course, &course);
    if (course.status != TARN_OK)
        fail_msg("%s, %zu of %zu processes: %s", course.variant->name, sharing, processes,
                 course.text);
    return course;
}

static void check_same(const struct course *a, const struct course *b)
{
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_memory_equal(&a->score, &b->score, sizeof a->score);
    assert_memory_equal(a->weights, b->weights, a->count * sizeof *a->weights);
}

static bool can_be_cut(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);

    return config.causal && strcmp(config.head, "ctc") != 0 &&
           strncmp(config.attention, "lsh", 3) != 0 && strcmp(config.attention, "gated") != 0;
}

/* Processes, and those of them that share a sequence. */
static const size_t shares[][2] = {{2, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 8}};

static void check_course(struct course course)
{
    struct course one = attend(course, 1, 1);

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct course many = attend(course, shares[i][0], shares[i][1]);

        check_same(&one, &many);
        free(many.weights);
    }
    free(one.weights);
}

static void every_model_is_trained_to_the_same_bits(void **state)
{
    size_t tried = 0;

    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        if (can_be_cut(model_variant_at(i))) {
            check_course((struct course){.variant = model_variant_at(i),
                                         .chunks = CHUNKS,
                                         .drops = true,
                                         .lengths = i % 2 == 1,
                                         .bf16 = i % 3 == 2,
                                         .shards = i % 3 == 1});
            tried++;
        }
    assert_true(tried >= 8);
}

/* Forming activations again changes no bit. */
static void recomputing_gives_the_same_bits(void **state)
{
    static const size_t variants[] = {0, 1, 3}; /* linear, pre-norm, softmax */

    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        struct course course = {.variant = model_variant_at(variants[i]),
                                .chunks = CHUNKS,
                                .layers = LAYERS,
                                .drops = true};
        struct course kept = attend(course, 1, 1);

        course.recompute = true;
        struct course again = attend(course, 1, 1), shared = attend(course, 4, 4);
        struct course each = attend(course, 8, 8); /* has one chunk */

        check_same(&kept, &again);
        check_same(&kept, &shared);
        check_same(&kept, &each);
        free(each.weights);
        free(kept.weights);
        free(again.weights);
        free(shared.weights);
    }
}

/* With an optimizer that only subtracts the gradient. */
static void gradients_are_those_of_whole_sequences(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++) {
        struct course course = {.variant = model_variant_at(i),
                                .optimizer = "sgd",
                                .until = 1,
                                .lengths = i % 2 == 0};

        if (!can_be_cut(course.variant))
            continue;
        struct course whole = attend(course, 1, 1);

        course.chunks = CHUNKS;
        struct course cut = attend(course, 1, 1);

        assert_true(fabs(whole.losses[0] - cut.losses[0]) < 1e-5);
        for (size_t k = 0; k < whole.count; k++)
            if (!(fabsf(whole.weights[k] - cut.weights[k]) < 1e-4f))
                fail_msg("%s: weight %zu is %g; %g of whole sequences", course.variant->name, k,
                         (double)cut.weights[k], (double)whole.weights[k]);
        free(whole.weights);
        free(cut.weights);
    }
}

static void a_run_is_resumed_by_other_processes(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "half");
    struct course course = {.variant = model_variant_at(0), .chunks = CHUNKS, .drops = true};
    struct course whole = attend(course, 1, 1);

    (void)state;
    course.until = 1;
    course.path = path;
    struct course half = attend(course, 4, 4);

    course.until = UPDATES;
    course.path = NULL;
    course.resume = path;
    struct course rest = attend(course, 2, 2);

    rest.losses[0] = half.losses[0];
    check_same(&whole, &rest);
    free(whole.weights);
    free(half.weights);
    free(rest.weights);
    folder_close(&folder);
}

/* ---- Long sequences ----------------------------------------------------- */

/* Over the blocks in which linear attention sums: 4096 positions in chunks of 512, and chunks
 * of other lengths beside blocks. */
static void update_long(float *weights, double *loss, size_t length, size_t chunks)
{
    static int32_t inputs[LONG], targets[LONG];
    const tarn_trainer_desc desc = {.batch = 1,
                                    .length = length,
                                    .optimizer = "sgd",
                                    .clip = "none",
                                    .lr = 1.0,
                                    .sequence_chunks = chunks,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};
    const tarn_batch batch = {.inputs = inputs, .targets = targets};
    tarn_model *const model = model_of(model_variant_at(0));
    struct tn_random random;
    tarn_trainer *trainer;
    tarn_report report;
    tarn_error err;

    tn_random_seed(&random, 5);
    draw_symbols(inputs, length, &random);
    for (size_t i = 0; i < length; i++)
        targets[i] = inputs[i / 3];
    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    memcpy(weights, model->values, model->count * sizeof *weights);
    *loss = report.loss;
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void long_sequences_have_the_same_gradients(void **state)
{
    static const size_t cuts[][2] = {{LONG, 8}, {LONG, 2}, {3 * 1000, 4}};
    tarn_model *const model = model_of(model_variant_at(0));
    float *const whole = take(model->count, sizeof *whole);
    float *const cut = take(model->count, sizeof *cut);

    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        double losses[2];

        update_long(whole, &losses[0], cuts[i][0], 0);
        update_long(cut, &losses[1], cuts[i][0], cuts[i][1]);
        assert_true(fabs(losses[0] - losses[1]) < 1e-5);
        for (size_t k = 0; k < model->count; k++)
            assert_true(fabsf(whole[k] - cut[k]) < 1e-4f);
    }
    free(whole);
    free(cut);
    tarn_model_free(model);
}

/* ---- Refusals ----------------------------------------------------------- */

static const struct model_variant *variant_named(const char *name)
{
    for (size_t i = 0; model_variant_at(i); i++)
        if (strcmp(model_variant_at(i)->name, name) == 0)
            return model_variant_at(i);
    fail_msg("no variant %s", name);
    return NULL;
}

static void check_refused(const char *variant, size_t chunks, size_t sharing, size_t ranks,
                          bool carry, const char *why)
{
    const tarn_comm comm = {.size = ranks};
    const tarn_trainer_desc desc = {.batch = B,
                                    .length = N,
                                    .sequence_chunks = chunks,
                                    .sequence_parallel = sharing,
                                    .carry = carry,
                                    .comm = &comm,
                                    .host = {.threads = 1}};
    tarn_model *const model = model_of(variant_named(variant));
    tarn_trainer *trainer;
    tarn_error err;

    assert_int_equal(tarn_trainer_create(&trainer, model, &desc, &err), TARN_EINVAL);
    assert_string_equal(err.text, why);
    tarn_model_free(model);
}

static void what_cannot_be_cut_is_refused(void **state)
{
    (void)state;
    check_refused("linear", 3, 1, 1, false,
                  "sequence_chunks is 3; it must be a power of two that divides length, which "
                  "is 32");
    check_refused("linear", 64, 1, 1, false,
                  "sequence_chunks is 64; it must be a power of two that divides length, which "
                  "is 32");
    check_refused("linear", 8, 4, 1, false,
                  "sequence_parallel is 4; it must be a power of two that divides the number "
                  "of ranks, which is 1");
    check_refused("linear", 8, 1, 1, true, "carry and sequence_chunks cannot be combined");
    check_refused("linear, not causal, gelu", 8, 1, 1, false,
                  "sequence_chunks needs a causal model");
    check_refused("lsh", 8, 1, 1, false,
                  "sequence_chunks must be 0 with 'lsh' attention: it has no state that one "
                  "chunk of a sequence could leave to the next");
    check_refused("gated", 8, 1, 1, false,
                  "sequence_chunks must be 0 with 'gated' attention: it has no state that one "
                  "chunk of a sequence could leave to the next");
    check_refused("ctc", 8, 1, 1, false,
                  "sequence_chunks needs a model that predicts a symbol at each position");
}

/* ---- Failures ----------------------------------------------------------- */

struct failing {
    bool silent; /* process 1 makes no update at all; else it has no batch */
    tarn_status status[2];
    tarn_error err[2];
};

static void fail_in_one(void *arg, const tarn_comm *comm)
{
    struct failing *const f = arg;
    const tarn_trainer_desc desc = {.batch = B,
                                    .length = N,
                                    .sequence_parallel = 2,
                                    .comm = comm,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};
    static _Thread_local struct lesson lesson;
    tarn_model *const model = model_of(model_variant_at(0));
    const tarn_batch batch = lesson_of(&lesson, 1, false);
    tarn_trainer *trainer;
    tarn_report report;
    tarn_error *const err = &f->err[comm->rank];
    tarn_status status = tarn_trainer_create(&trainer, model, &desc, err);

    if (status == TARN_OK && comm->rank == 1)
        status = f->silent ? TARN_OK
                           : tn_trainer_fail(trainer,
                                             tn_fail(err, TARN_EIO, "a.txt: is damaged"), err);
    else if (status == TARN_OK)
        status = tarn_trainer_update(trainer, &report, &batch, 1, err);
    f->status[comm->rank] = status;
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void no_process_waits_for_one_that_failed(void **state)
{
    struct failing f = {0};

    (void)state;
    run_processes(2, 0, fail_in_one, &f);
    for (size_t rank = 0; rank < 2; rank++) {
        assert_int_equal(f.status[rank], TARN_EIO);
        assert_string_equal(f.err[rank].text, "rank 1: a.txt: is damaged");
    }
    f = (struct failing){.silent = true};
    run_processes(2, 0.2, fail_in_one, &f);
    assert_int_equal(f.status[0], TARN_ERANK);
    assert_non_null(strstr(f.err[0].text, "rank 1 has not answered for 0.2 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_is_trained_to_the_same_bits),
        cmocka_unit_test(recomputing_gives_the_same_bits),
        cmocka_unit_test(gradients_are_those_of_whole_sequences),
        cmocka_unit_test(a_run_is_resumed_by_other_processes),
        cmocka_unit_test(long_sequences_have_the_same_gradients),
        cmocka_unit_test(what_cannot_be_cut_is_refused),
        cmocka_unit_test(no_process_waits_for_one_that_failed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
