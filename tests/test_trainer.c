/* SPDX-License-Identifier: MIT */
/* test_trainer.c - updates: what they depend on, and what interrupts them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/train.h"

enum { B = 3, N = 11, UPDATES = 8 };

/* Batches by number, as training has them. */
struct lesson {
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N], frames[B * N * MODEL_FRAMES];
    size_t lengths[B], counts[B];
};

static tarn_batch lesson_of(struct lesson *lesson, uint64_t number)
{
    struct tn_random random;

    tn_random_seed(&random, number);
    draw_symbols(lesson->inputs, B * N, &random);
    for (size_t i = 0; i < B * N; i++) {
        lesson->targets[i] = (lesson->inputs[i] + 1) % MODEL_SYMBOLS;
        lesson->weights[i] = i % 4 ? 1.0f : 0.0f;
    }
    return (tarn_batch){
        .inputs = lesson->inputs, .targets = lesson->targets, .weights = lesson->weights};
}

/* Frames that say where one of two labels is; the last sequence is shorter. */
static tarn_batch spoken_lesson(struct lesson *lesson, uint64_t number)
{
    struct tn_random random;

    tn_random_seed(&random, number);
    for (size_t i = 0; i < B * N * MODEL_FRAMES; i++)
        lesson->frames[i] = (float)(0.1 * tn_random_normal(&random));
    for (size_t b = 0; b < B; b++) {
        lesson->lengths[b] = b + 1 < B ? N : N - 3;
        lesson->counts[b] = 2;
        lesson->weights[b] = 1.0f;
        for (size_t i = 0; i < 2; i++) {
            const size_t label = 1 + (b + i) % 3;

            lesson->targets[2 * b + i] = (int32_t)label;
            lesson->frames[(b * N + 2 + 4 * i) * MODEL_FRAMES + label] += 3.0f;
        }
    }
    return (tarn_batch){.targets = lesson->targets,
                        .weights = lesson->weights,
                        .frames = lesson->frames,
                        .lengths = lesson->lengths,
                        .counts = lesson->counts};
}

/* What suits the model. */
static tarn_batch batch_of(struct lesson *lesson, const tarn_model *model)
{
    tarn_batch batch = lesson_of(lesson, 5);
    const tarn_config *const config = tarn_model_config(model);

    if (strcmp(config->head, "ctc") == 0) {
        const int32_t *const inputs = batch.inputs;

        batch = spoken_lesson(lesson, 5);
        batch.inputs = inputs;
    }
    return batch;
}

static const struct model_variant *variant_at(size_t index)
{
    size_t models = 0;

    while (model_variant_at(models))
        models++;
    return index < models ? model_variant_at(index) : frame_variant_at(index - models);
}

static tarn_model *dropping_model(const struct model_variant *variant)
{
    tarn_config config = config_of(variant);
    tarn_model *model;
    tarn_error err;

    config.dropout = 0.2;
    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    return model;
}

static tarn_trainer *trainer_of(tarn_model *model, const char *optimizer, size_t threads)
{
    const tarn_trainer_desc desc = {
        .batch = B,
        .length = N,
        .optimizer = optimizer,
        .schedule = "plateau:patience=1",
        .lr = 0.01,
        .host = {.threads = threads, .cpu = forced_cpu()},
    };
    tarn_trainer *trainer;
    tarn_error err;

    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    return trainer;
}

/* Updates from..to, each after a word to the schedule. */
static void train(tarn_trainer *trainer, size_t to)
{
    while (tarn_trainer_updates(trainer) < to) {
        struct lesson lesson;
        const tarn_batch batch = lesson_of(&lesson, tarn_trainer_updates(trainer));
        tarn_report report;
        tarn_error err;

        tarn_trainer_observe(trainer, 1.0);
        check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    }
}

static void resumed_training_is_the_same_to_the_bit(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    tarn_error err;

    (void)state;
    for (size_t o = 0; tarn_optimizer(o); o++) {
        const char *const optimizer = tarn_optimizer(o)->name;
        tarn_model *const whole = dropping_model(model_variant_at(0));
        tarn_model *const half = dropping_model(model_variant_at(0));
        tarn_model *const rest = dropping_model(model_variant_at(0));
        tarn_trainer *const a = trainer_of(whole, optimizer, 1);
        tarn_trainer *const b = trainer_of(half, optimizer, 2);
        tarn_trainer *const c = trainer_of(rest, optimizer, 3);

        train(a, 2 * UPDATES);
        train(b, UPDATES);
        check_ok(tarn_trainer_save(b, path, &err), &err);
        check_ok(tarn_trainer_load(c, path, &err), &err);
        train(c, 2 * UPDATES);
        check_same_weights(whole, rest);
        tarn_trainer_free(a);
        tarn_trainer_free(b);
        tarn_trainer_free(c);
        tarn_model_free(whole);
        tarn_model_free(half);
        tarn_model_free(rest);
    }
    folder_close(&folder);
}

/* Two batches in one update are their mean, not two updates. */
static void accumulated_gradients_are_those_of_one_batch(void **state)
{
    struct lesson twice[2];
    const tarn_batch same[] = {lesson_of(&twice[0], 3), lesson_of(&twice[1], 3)};
    tarn_model *const one = model_of(model_variant_at(0));
    tarn_model *const two = model_of(model_variant_at(0));
    tarn_trainer *const a = trainer_of(one, "adam", 1), *const b = trainer_of(two, "adam", 1);
    tarn_report report, doubled;
    tarn_error err;

    (void)state;
    check_ok(tarn_trainer_update(a, &report, same, 1, &err), &err);
    check_ok(tarn_trainer_update(b, &doubled, same, 2, &err), &err);
    assert_true(fabs(report.loss - doubled.loss) <= 1e-9);
    assert_true(fabs(report.norm - doubled.norm) <= 1e-5 * report.norm);
    assert_int_equal(tarn_trainer_updates(b), 1);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_model_free(one);
    tarn_model_free(two);
}

/* The two halves of an update, and gradients that were changed between them. */
static void an_update_is_two_calls(void **state)
{
    tarn_model *const whole = dropping_model(model_variant_at(0));
    tarn_model *const halves = dropping_model(model_variant_at(0));
    tarn_model *const changed = dropping_model(model_variant_at(0));
    tarn_trainer *const a = trainer_of(whole, "sgd", 1),
                        *const b = trainer_of(halves, "sgd", 2),
                        *const c = trainer_of(changed, "sgd", 1);
    tarn_gradients gradients = {0};
    tarn_report report, other;
    struct lesson lesson;
    const tarn_batch batch = lesson_of(&lesson, 3);
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_trainer_apply(b, &other, &gradients, &err), TARN_EINVAL);
    check_ok(tarn_trainer_update(a, &report, &batch, 1, &err), &err);
    check_ok(tarn_trainer_gradients(b, &gradients, &batch, 1, &err), &err);
    assert_int_equal(tarn_trainer_updates(b), 0);
    assert_int_equal(tarn_trainer_apply(c, &other, &gradients, &err), TARN_EINVAL);
    check_ok(tarn_trainer_apply(b, &other, &gradients, &err), &err);
    assert_true(report.loss == other.loss && report.norm == other.norm &&
                report.tokens == other.tokens && report.update == other.update);
    check_same_weights(whole, halves);
    assert_int_equal(tarn_trainer_apply(b, &other, &gradients, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "only once"));

    check_ok(tarn_trainer_gradients(c, &gradients, &batch, 1, &err), &err);
    for (size_t i = 0; i < gradients.count; i++)
        gradients.values[i] = 0.0f;
    check_ok(tarn_trainer_apply(c, &other, &gradients, &err), &err);
    assert_true(other.norm == 0.0 && other.loss == report.loss);
    tarn_model *const fresh = dropping_model(model_variant_at(0));

    check_same_weights(changed, fresh);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_trainer_free(c);
    tarn_model_free(whole);
    tarn_model_free(halves);
    tarn_model_free(changed);
    tarn_model_free(fresh);
}

static void every_model_learns(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        tarn_model *const model = model_of(variant);
        tarn_trainer *const trainer = trainer_of(model, "adam", 2);
        struct lesson lesson;
        const tarn_batch batch = batch_of(&lesson, model);
        tarn_score before = {0}, after = {0};
        tarn_error err;

        check_ok(tarn_trainer_score(trainer, &before, &batch, &err), &err);
        /* Few gates that start half open need longer. */
        const size_t updates = strstr(variant->name, "lstm") ? 120 : 40;

        for (size_t u = 0; u < updates; u++) {
            tarn_report report;

            check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
        }
        check_ok(tarn_trainer_score(trainer, &after, &batch, &err), &err);
        if (!(after.loss < 0.3 * before.loss))
            fail_msg("%s: from %g to %g", variant->name, before.loss, after.loss);
        tarn_trainer_free(trainer);
        tarn_model_free(model);
    }
}

/* A weight that is not a number spoils the loss: nothing may change, or, if asked, no more than
 * the number of updates. */
static void numbers_that_are_not_finite_change_nothing(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_trainer *const trainer = trainer_of(model, "adam", 1);
    struct lesson lesson;
    const tarn_batch batch = lesson_of(&lesson, 1);
    tarn_report report;
    tarn_tensor tensor;
    tarn_error err;

    (void)state;
    train(trainer, 2);
    assert_true(tarn_model_tensor(model, 2, &tensor));
    const float before = tensor.values[0], other = tensor.values[1];

    tensor.values[0] = NAN;
    assert_int_equal(tarn_trainer_update(trainer, &report, &batch, 1, &err), TARN_ENUMBER);
    assert_non_null(strstr(err.text, "update 3"));
    assert_int_equal(tarn_trainer_updates(trainer), 2);
    assert_true(tensor.values[1] == other);
    tensor.values[0] = before;
    check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static void skipped_updates_count_but_change_nothing(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    const tarn_trainer_desc desc = {.batch = B, .length = N, .skip_nonfinite = true};
    struct lesson lesson;
    const tarn_batch batch = lesson_of(&lesson, 1);
    tarn_trainer *trainer;
    tarn_report report;
    tarn_tensor tensor;
    tarn_error err;

    (void)state;
    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    assert_true(tarn_model_tensor(model, 2, &tensor));
    const float other = tensor.values[1];

    tensor.values[0] = NAN;
    check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    assert_true(report.skipped);
    assert_int_equal(report.update, 1);
    assert_int_equal(tarn_trainer_updates(trainer), 1);
    assert_true(tensor.values[1] == other);
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

/* The moments correct for the gradients that they have seen, also after a resumption. */
static void skipped_updates_are_nothing_to_the_moments(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    struct lesson lesson;
    const tarn_batch batch = lesson_of(&lesson, 1);
    tarn_tensor tensor;
    tarn_report report;
    tarn_error err;

    (void)state;
    for (size_t o = 0; tarn_optimizer(o); o++) {
        const tarn_trainer_desc desc = {.batch = B,
                                        .length = N,
                                        .skip_nonfinite = true,
                                        .lr = 0.01,
                                        .optimizer = tarn_optimizer(o)->name};
        tarn_model *models[3];
        tarn_trainer *trainers[3];

        for (size_t i = 0; i < 3; i++) {
            models[i] = model_of(model_variant_at(0));
            check_ok(tarn_trainer_create(&trainers[i], models[i], &desc, &err), &err);
        }
        assert_true(tarn_model_tensor(models[1], 2, &tensor));
        const float whole = tensor.values[0];

        tensor.values[0] = NAN;
        for (size_t i = 0; i < 6; i++)
            check_ok(tarn_trainer_update(trainers[1], &report, &batch, 1, &err), &err);
        tensor.values[0] = whole;
        check_ok(tarn_trainer_save(trainers[1], path, &err), &err);
        check_ok(tarn_trainer_load(trainers[2], path, &err), &err);
        for (size_t i = 0; i < 3; i++)
            check_ok(tarn_trainer_update(trainers[i], &report, &batch, 1, &err), &err);
        check_same_weights(models[0], models[1]);
        check_same_weights(models[0], models[2]);
        for (size_t i = 0; i < 3; i++) {
            tarn_trainer_free(trainers[i]);
            tarn_model_free(models[i]);
        }
    }
    folder_close(&folder);
}

static void what_cannot_be_learnt_from_is_refused(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_trainer *const trainer = trainer_of(model, "adam", 1);
    struct lesson lesson;
    tarn_batch batch = lesson_of(&lesson, 1);
    tarn_report report;
    tarn_error err;

    (void)state;
    lesson.targets[4] = MODEL_SYMBOLS;
    assert_int_equal(tarn_trainer_update(trainer, &report, &batch, 1, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "targets[4] is 7"));
    lesson.targets[4] = 0;
    lesson.weights[2] = -1.0f;
    assert_int_equal(tarn_trainer_update(trainer, &report, &batch, 1, &err), TARN_EINVAL);
    memset(lesson.weights, 0, sizeof lesson.weights);
    assert_int_equal(tarn_trainer_update(trainer, &report, &batch, 1, &err), TARN_EINVAL);
    batch.inputs = NULL;
    assert_int_equal(tarn_trainer_update(trainer, &report, &batch, 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_trainer_updates(trainer), 0);
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

/* Every wish that no trainer can fulfil, with the name of the field in the sentence. */
static void impossible_trainers_are_refused(void **state)
{
    static const struct {
        tarn_trainer_desc desc;
        const char *says;
    } wishes[] = {
        {{.batch = 0, .length = 4}, "batch"},
        {{.batch = 1, .length = 0}, "length"},
        {{.batch = SIZE_MAX / 8, .length = 8}, "fit"},
        {{.batch = 1, .length = 4, .optimizer = "newton"}, "optimizer"},
        {{.batch = 1, .length = 4, .schedule = "sometimes"}, "schedule"},
        {{.batch = 1, .length = 4, .clip = "tensor:norm=-1"}, "clip"},
        {{.batch = 1, .length = 4, .lr = (double)NAN}, "lr"},
        {{.batch = 1, .length = 4, .precision = "f8"}, "precision"},
        {{.batch = 1, .length = 4, .host.cpu = "z80"}, "cpu"},
        {{.batch = 1, .length = 4, .micro_batches = 3}, "micro_batches"},
        {{.batch = 1, .length = 12, .sequence_chunks = 3}, "sequence_chunks"},
        {{.batch = 1, .length = 1 << 21, .sequence_chunks = 1 << 21}, "sequence_chunks"},
    };
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        tarn_trainer *trainer = (tarn_trainer *)&trainer;
        tarn_error err = {0};

        assert_int_not_equal(tarn_trainer_create(&trainer, model, &wishes[i].desc, &err),
                             TARN_OK);
        assert_null(trainer);
        if (!strstr(err.text, wishes[i].says))
            fail_msg("'%s' does not say '%s'", err.text, wishes[i].says);
    }
    tarn_model_free(model);
}

static void a_checkpoint_of_another_training_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "checkpoint");
    tarn_model *const one = model_of(model_variant_at(0));
    tarn_model *const other = model_of(model_variant_at(1));
    tarn_trainer *const a = trainer_of(one, "adam", 1), *const b = trainer_of(other, "adam", 1);
    tarn_trainer *const c = trainer_of(one, "radam", 1);
    tarn_error err;

    (void)state;
    check_ok(tarn_trainer_save(a, path, &err), &err);
    assert_int_equal(tarn_trainer_load(b, path, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "norm"));
    assert_int_equal(tarn_trainer_load(c, path, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "optimizer 'adam'"));
    check_ok(tarn_model_save(one, path, &err), &err);
    assert_int_equal(tarn_trainer_load(a, path, &err), TARN_EFORMAT);
    tarn_trainer_free(a);
    tarn_trainer_free(b);
    tarn_trainer_free(c);
    tarn_model_free(one);
    tarn_model_free(other);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_training_is_the_same_to_the_bit),
        cmocka_unit_test(accumulated_gradients_are_those_of_one_batch),
        cmocka_unit_test(an_update_is_two_calls),
        cmocka_unit_test(every_model_learns),
        cmocka_unit_test(numbers_that_are_not_finite_change_nothing),
        cmocka_unit_test(skipped_updates_count_but_change_nothing),
        cmocka_unit_test(skipped_updates_are_nothing_to_the_moments),
        cmocka_unit_test(what_cannot_be_learnt_from_is_refused),
        cmocka_unit_test(impossible_trainers_are_refused),
        cmocka_unit_test(a_checkpoint_of_another_training_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
