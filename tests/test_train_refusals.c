/* SPDX-License-Identifier: MIT */
/* test_train_refusals.c - runs of training that cannot be, or cannot go on: what they say, and
 * what they leave. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer/head.h"
#include "model/model_file.h"
#include "support/training_case.h"
#include "support/speech_folder.h"
#include "task/task.h"

/* ---- Lessons of every task ---------------------------------------------- */

static void put_data(const struct folder *folder)
{
    static unsigned char images[16 + 20 * 64] = {0, 0, 8, 3, 0, 0, 0, 20,
                                                 0, 0, 0, 8, 0, 0, 0, 8};
    char text[400];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text_put(folder, "text", text);
    file_put(folder_file(folder, "image"), images, sizeof images);
    speech_folder_fill(folder, 6, 2, 2, 0.1);
}

/* On data by put_data(), a model of a few milliseconds. */
static struct training_case training_of(const char *task, const struct folder *data)
{
    const bool speech = strncmp(task, "speech", 6) == 0;
    struct training_case training;
    tarn_error err;

    check_ok(tarn_settings_start(&training.settings, task, &err), &err);
    check_ok(tarn_config_start(&training.config, task, speech ? "speech-tiny" : "tiny", &err),
             &err);
    training.config.layers = 1;
    training_set(&training, "batch", "2");
    training_set(&training, "eval_batches", "1");
    training.settings.steps = 4;
    if (strcmp(task, "text") == 0 || strcmp(task, "copy") == 0)
        training_set(&training, "length", "9");
    if (strcmp(task, "copy") != 0)
        training_set(&training, "data", speech ? data->path : folder_file(data, task));
    return training;
}

static void check_refused(const struct training_case *training, const char *folder,
                          const char *says)
{
    tarn_error err;

    assert_int_not_equal(training_run(training, folder, false, &err), TARN_OK);
    if (!strstr(err.text, says))
        fail_msg("'%s'; expected '%s'", err.text, says);
}

/* ---- Names ------------------------------------------------------------- */

/* Refused where they are set, with those that there are; the old value stays. */
static void unknown_names_of_settings_are_refused(void **state)
{
    static const struct {
        const char *name, *value, *says;
    } wishes[] = {
        {"task", "music", "copy, text"},         {"task", "copy:colour=1", "colour"},
        {"optimizer", "newton", "radam, adam"},  {"optimizer", "adam:decay=x", "decay"},
        {"schedule", "never", "constant, step"}, {"schedule", "step:factor=-1", "factor"},
        {"clip", "hard", "none, tensor"},        {"clip", "global:norm=0", "norm"},
        {"precision", "f64", "f32, bf16"},
    };
    tarn_settings settings, before;
    tarn_error err;

    (void)state;
    check_ok(tarn_settings_start(&settings, "copy", &err), &err);
    before = settings;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        err = (tarn_error){0};
        assert_int_not_equal(
            tarn_settings_set(&settings, wishes[i].name, wishes[i].value, &err), TARN_OK);
        if (strstr(err.text, wishes[i].name) != err.text || !strstr(err.text, wishes[i].says))
            fail_msg("%s = %s: '%s' does not say '%s'", wishes[i].name, wishes[i].value,
                     err.text, wishes[i].says);
        assert_memory_equal(&settings, &before, sizeof settings);
    }
}

/* ---- What does not fit -------------------------------------------------- */

static void a_head_trains_where_targets_are_its_own(void **state)
{
    struct folder data = folder_open();

    (void)state;
    put_data(&data);
    for (size_t i = 0; tarn_task_kind(i); i++)
        for (size_t h = 0; tarn_head_kind(h); h++) {
            const struct tn_task_row *const task =
                (const struct tn_task_row *)tarn_task_kind(i);
            const struct tn_head_row *const head =
                (const struct tn_head_row *)tarn_head_kind(h);
            struct training_case training = training_of(tarn_task_kind(i)->name, &data);
            struct folder out = folder_open();
            const char *const run = folder_file(&out, "run");
            tarn_error err;

            check_ok(tarn_config_set(&training.config, "head", head->about.name, &err), &err);
            if (head->sequence != task->sequences) {
                check_refused(&training, run, "head is ");
                assert_int_equal(folder_count(&out), 0);
            } else {
                check_ok(training_run(&training, run, false, &err), &err);
            }
            tree_close(&out);
        }
    tree_close(&data);
}

static tarn_status evaluate(const tarn_model *model, const struct training_case *training,
                            tarn_error *err)
{
    const tarn_evaluate_desc desc = {.host = {.threads = 1, .cpu = forced_cpu()}};
    tarn_validation validation;

    return tarn_evaluate(&validation, model, &training->settings, &desc, err);
}

static void a_model_of_other_data_is_not_evaluated(void **state)
{
    struct folder data = folder_open();
    struct training_case training = training_of("text", &data);
    tarn_model *model;
    tarn_error err;

    (void)state;
    put_data(&data);
    check_ok(tarn_model_create(&model, &training.config, NULL, &err), &err);
    training.settings.accumulate = 0; /* which an evaluation has no use for */
    check_ok(evaluate(model, &training, &err), &err);
    training.settings.batch = 0;
    assert_int_equal(evaluate(model, &training, &err), TARN_EINVAL);
    training = training_of("speech", &data);
    assert_int_equal(evaluate(model, &training, &err), TARN_EINVAL);
    training = training_of("copy", &data);
    assert_int_equal(evaluate(model, &training, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "symbols is 256; it must be 11"));
    tarn_model_free(model);
    tree_close(&data);
}

/* Not a loss of -nan with exit code 0. */
static void weights_that_overflow_are_not_evaluated(void **state)
{
    struct training_case training = training_of("copy", NULL);
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_create(&model, &training.config, NULL, &err), &err);
    for (size_t i = 0; i < model->count; i++)
        model->values[i] = 3e38f;
    assert_int_equal(evaluate(model, &training, &err), TARN_ENUMBER);
    assert_non_null(strstr(err.text, "not finite"));
    tarn_model_free(model);
}

/* Weights that grow ninefold with each update: the validation after it is the first to show
 * it. */
static void a_validation_that_is_not_finite_stops_the_run(void **state)
{
    struct folder out = folder_open();
    struct training_case training = training_of("copy", NULL);

    (void)state;
    training.settings.steps = 200;
    training_set(&training, "lr", "10");
    training_set(&training, "clip", "none");
    training_set(&training, "optimizer", "sgd:decay=1");
    training_set(&training, "eval_every", "1");
    check_refused(&training, out.path, "validation after update ");
    assert_int_equal(access(folder_file(&out, "checkpoint-0000000000.safetensors"), F_OK), 0);
    folder_close(&out);
}

static void a_schedule_that_watches_validations_needs_some(void **state)
{
    struct folder out = folder_open();
    struct training_case training = training_of("copy", NULL);
    tarn_error err;

    (void)state;
    training_set(&training, "schedule", "plateau");
    training_set(&training, "eval_every", "0");
    check_refused(&training, folder_file(&out, "run"), "eval_every is 0");
    assert_int_equal(folder_count(&out), 0);
    training_set(&training, "eval_every", "2");
    check_ok(training_run(&training, folder_file(&out, "run"), false, &err), &err);
    tree_close(&out);
}

/* A checkpoint keeps all settings as JSON. */
static void text_that_no_checkpoint_can_hold_is_refused_at_once(void **state)
{
    struct folder data = folder_open(), out = folder_open();
    struct training_case training = training_of("text", &data);

    (void)state;
    file_put(folder_file(&data, "caf\xe9"), "abcdefghijklmnopqrstuvwxyz0123456789", 36);
    training_set(&training, "data", folder_file(&data, "caf\xe9"));
    check_refused(&training, folder_file(&out, "run"), "not UTF-8");
    assert_int_equal(folder_count(&out), 0);
    folder_close(&data);
    folder_close(&out);
}

/* ---- Nothing is lost ---------------------------------------------------- */

static void models_without_checkpoints_are_not_written_over(void **state)
{
    struct folder out = folder_open();
    struct training_case training = training_of("copy", NULL);
    tarn_error err;

    (void)state;
    check_ok(training_run(&training, out.path, false, &err), &err);
    check_refused(&training, out.path, "already contains a run of 4 updates");
    assert_int_equal(unlink(folder_file(&out, "checkpoint-0000000004.safetensors")), 0);
    check_refused(&training, out.path, "model.safetensors: already exists");
    assert_int_equal(unlink(folder_file(&out, "model.safetensors")), 0);
    check_refused(&training, out.path, "best.safetensors: already exists");
    assert_int_equal(unlink(folder_file(&out, "best.safetensors")), 0);
    check_refused(&training, out.path, "log.jsonl: already exists");
    assert_int_equal(unlink(folder_file(&out, "log.jsonl")), 0);
    check_ok(training_run(&training, out.path, false, &err), &err);
    folder_close(&out);
}

/* Neither a new run nor one that is resumed writes to what is not its own log. */
static void logs_of_others_stay_as_they_are(void **state)
{
    struct folder out = folder_open();
    const char *const log = folder_file(&out, "log.jsonl");
    const char *const other = folder_file(&out, "other");
    struct training_case training = training_of("copy", NULL);
    tarn_error err = {0};

    (void)state;
    file_put(other, "precious\n", 9);
    assert_int_equal(symlink(other, log), 0);
    check_refused(&training, out.path, "log.jsonl: already exists");
    assert_int_equal(unlink(log), 0);
    check_ok(training_run(&training, out.path, false, &err), &err);
    training.settings.steps = 5;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unlink(log), 0);
        assert_int_equal(i == 0 ? symlink(other, log) : i == 1 ? link(other, log) : 0, 0);
        if (i == 2)
            file_put(log, "precious\n", 9);
        assert_int_not_equal(training_run(&training, out.path, true, &err), TARN_OK);
        assert_non_null(strstr(err.text, "log.jsonl: "));
        file_check(other, "precious\n", 9);
        file_check(log, "precious\n", 9);
    }
    folder_close(&out);
}

struct spoken {
    struct folder data;
    size_t left, told; /* files that take_away() leaves; utterances that were told of */
};

static void take_away(void *context, const tarn_report *report)
{
    const struct spoken *const spoken = context;

    for (size_t i = spoken->left; i < 6 && report->update == 2; i++) {
        char name[32];

        snprintf(name, sizeof name, "train/%zu.wav", i);
        assert_int_equal(unlink(folder_file(&spoken->data, name)), 0);
    }
}

static void count_skipped(void *context, const tarn_skipped *skipped)
{
    struct spoken *const spoken = context;

    assert_non_null(strstr(skipped->file, "train.tsv"));
    assert_non_null(strstr(skipped->reason, ".wav: "));
    spoken->told++;
}

/* Other speeds are made from the files, of which some are gone after two updates. */
static tarn_status train_on_what_is_left(struct spoken *spoken, const struct folder *out,
                                         bool strict, tarn_error *err)
{
    const tarn_train_desc desc = {
        .out = out->path,
        .host = {.threads = 1, .cpu = forced_cpu()},
        .events = {.context = spoken, .update = take_away, .skipped = count_skipped},
    };

    put_data(&spoken->data);
    struct training_case training = training_of("speech:speed=0.1", &spoken->data);

    training.settings.steps = 8;
    training_set(&training, "strict", strict ? "true" : "false");
    return tarn_train(&training.config, &training.settings, &desc, err);
}

static void what_was_learnt_before_the_data_went_away_is_kept(void **state)
{
    struct folder out = folder_open();
    struct spoken spoken = {.data = folder_open()};
    tarn_error err;

    (void)state;
    assert_int_not_equal(train_on_what_is_left(&spoken, &out, true, &err), TARN_OK);
    assert_non_null(strstr(err.text, "train/"));
    assert_int_equal(access(folder_file(&out, "checkpoint-0000000002.safetensors"), F_OK), 0);
    folder_close(&out);
    tree_close(&spoken.data);
}

static void utterances_that_went_away_are_told_of(void **state)
{
    struct folder out = folder_open();
    struct spoken spoken = {.data = folder_open(), .left = 5};
    tarn_error err;

    (void)state;
    check_ok(train_on_what_is_left(&spoken, &out, false, &err), &err);
    assert_true(spoken.told > 0);
    folder_close(&out);
    tree_close(&spoken.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names_of_settings_are_refused),
        cmocka_unit_test(a_head_trains_where_targets_are_its_own),
        cmocka_unit_test(a_model_of_other_data_is_not_evaluated),
        cmocka_unit_test(weights_that_overflow_are_not_evaluated),
        cmocka_unit_test(a_validation_that_is_not_finite_stops_the_run),
        cmocka_unit_test(a_schedule_that_watches_validations_needs_some),
        cmocka_unit_test(text_that_no_checkpoint_can_hold_is_refused_at_once),
        cmocka_unit_test(models_without_checkpoints_are_not_written_over),
        cmocka_unit_test(logs_of_others_stay_as_they_are),
        cmocka_unit_test(what_was_learnt_before_the_data_went_away_is_kept),
        cmocka_unit_test(utterances_that_went_away_are_told_of),
    };

    return cmocka_run_group_tests_name("train_refusals", tests, NULL, NULL);
}
