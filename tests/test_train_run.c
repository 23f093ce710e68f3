/* SPDX-License-Identifier: MIT */
/* test_train_run.c - a whole run of training in its folder: what it leaves there, and that it
 * goes on as if it had never stopped. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "kernel/matmul.h"
#include "model/config.h"
#include "support/folder.h"
#include "support/training_case.h"
#include "task/task.h"

static void check_trains(const struct training_case *training, const struct folder *folder,
                         bool resume)
{
    tarn_error err;

    check_ok(training_run(training, folder->path, resume, &err), &err);
}

static void check_same_file(const struct folder *a, const struct folder *b, const char *name)
{
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tn_bytes_read(&bytes, folder_file(a, name), SIZE_MAX / 2, &err), &err);
    file_check(folder_file(b, name), bytes.data, bytes.size);
    tn_bytes_free(&bytes);
}

/* ---- Going on ----------------------------------------------------------- */

/* 7 and 12 are no multiples of 5, so a run that ends there validates once more than one that
 * does not; a cut of the rate at every validation would tell. */
static void the_validation_at_a_stop_cuts_no_rate(void **state)
{
    struct folder whole = folder_open(), parts = folder_open();
    struct training_case training = training_copy(7);

    (void)state;
    training_set(&training, "eval_every", "5");
    training_set(&training, "schedule", "plateau:factor=0.1,patience=1,threshold=0.5");
    check_trains(&training, &parts, false);
    training.settings.steps = 12;
    check_trains(&training, &parts, true);
    check_trains(&training, &whole, false);
    check_same_file(&whole, &parts, "model.safetensors");
    folder_close(&whole);
    folder_close(&parts);
}

/* As it is after a kill between the two files. */
static void resuming_writes_the_model_of_the_last_checkpoint(void **state)
{
    struct folder folder = folder_open(), other = folder_open();
    struct training_case training = training_copy(3);

    (void)state;
    check_trains(&training, &folder, false);
    check_trains(&training, &other, false);
    assert_int_equal(unlink(folder_file(&folder, "model.safetensors")), 0);
    check_trains(&training, &folder, true); /* no update is left to do */
    check_same_file(&other, &folder, "model.safetensors");
    folder_close(&folder);
    folder_close(&other);
}

/* ---- Numbers that are not finite ---------------------------------------- */

static void skipped_updates_leave_checkpoints_that_resume(void **state)
{
    struct folder folder = folder_open();
    struct training_case training = training_copy(60);

    (void)state;
    training_set(&training, "lr", "10");
    training_set(&training, "clip", "none");
    training_set(&training, "optimizer", "adamw:decay=1");
    training_set(&training, "skip_nonfinite", "true");
    training_set(&training, "eval_every", "60");
    training_set(&training, "save_every", "20");
    check_trains(&training, &folder, false);
    training.settings.steps = 64;
    check_trains(&training, &folder, true);
    folder_close(&folder);
}

/* ---- One run at a time -------------------------------------------------- */

struct inside {
    const struct training_case *training;
    const char *folder;
    tarn_error err;
    tarn_status status;
};

static void train_again(void *context, const tarn_report *report)
{
    struct inside *const inside = context;

    if (report->update == 1)
        inside->status = training_run(inside->training, inside->folder, true, &inside->err);
}

static void a_folder_in_use_is_refused(void **state)
{
    struct folder folder = folder_open();
    struct training_case training = training_copy(2);
    struct inside inside = {.training = &training, .folder = folder.path};
    const tarn_train_desc desc = {.out = folder.path,
                                  .host.threads = 1,
                                  .events = {.context = &inside, .update = train_again}};
    tarn_error err;

    (void)state;
    check_ok(tarn_train(&training.config, &training.settings, &desc, &err), &err);
    assert_int_equal(inside.status, TARN_EIO);
    assert_non_null(strstr(inside.err.text, "is in use by another training run"));
    training.settings.steps = 3; /* and it is free again */
    check_trains(&training, &folder, true);
    folder_close(&folder);
}

/* ---- Nothing to train on ------------------------------------------------ */

/* Tasks that make their data keep none of it; of the others no file is opened. */
static void all_of_the_data_for_validation_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const inside = folder_file(&folder, "run");

    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        const struct tn_task_row *const row = (const struct tn_task_row *)tarn_task_kind(i);
        struct training_case training;
        tarn_error err;

        check_ok(tarn_settings_start(&training.settings, tarn_task_kind(i)->name, &err), &err);
        check_ok(tarn_config_start(&training.config, tarn_task_kind(i)->name, NULL, &err),
                 &err);
        if (!row->reads_data)
            continue;
        training_set(&training, "data", "/nowhere/at/all");
        training_set(&training, "validation", "1");
        assert_int_equal(training_run(&training, inside, false, &err), TARN_EINVAL);
        assert_non_null(strstr(err.text, "validation is 1, which leaves no training data"));
        training_set(&training, "validation", "0.5");
        assert_int_not_equal(training_run(&training, inside, false, &err), TARN_OK);
        assert_null(strstr(err.text, "validation"));
    }
    assert_int_equal(folder_count(&folder), 0);
    folder_close(&folder);
}

/* ---- Text --------------------------------------------------------------- */

static void fields_come_back_as_the_text_that_sets_them(void **state)
{
    const struct training_case training = training_copy(7);
    char text[TARN_PATH_SIZE];
    tarn_error err;

    (void)state;
    for (size_t i = 0; tarn_settings_field(i); i++) {
        const char *const name = tarn_settings_field(i)->name;
        tarn_settings again = training.settings;

        check_ok(tarn_settings_text(&training.settings, text, sizeof text, name, &err), &err);
        check_ok(tarn_settings_set(&again, name, text, &err), &err);
        assert_memory_equal(&again, &training.settings, sizeof again);
    }
    check_ok(tarn_settings_text(&training.settings, text, sizeof text, "validation", &err),
             &err);
    assert_string_equal(text, "0.1");
    check_ok(tarn_config_text(&training.config, text, sizeof text, "attention", &err), &err);
    assert_string_equal(text, "linear");
    assert_int_equal(tarn_config_text(&training.config, text, 6, "attention", &err),
                     TARN_EINVAL);
    assert_int_equal(tarn_config_text(&training.config, text, 9, "none", &err), TARN_EUNKNOWN);
    assert_int_equal(tarn_settings_text(&training.settings, text, 9, "best", &err),
                     TARN_EUNKNOWN);
}

static void tasks_name_a_preset_and_a_metric(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        tarn_config config;
        tarn_error err;

        check_ok(tarn_config_preset(&config, tarn_task_preset(tarn_task_kind(i)->name), &err),
                 &err);
        assert_non_null(tarn_task_metric(tarn_task_kind(i)->name));
        check_ok(tarn_config_start(&config, tarn_task_kind(i)->name, NULL, &err), &err);
        check_ok(tarn_config_check(&config, &err), &err);
        assert_string_equal(config.task, tarn_task_kind(i)->name);
        check_ok(tarn_config_start(&config, tarn_task_kind(i)->name, "mnist-paper", &err),
                 &err);
        assert_int_equal(config.layers, 8);
        assert_int_equal(tarn_config_start(&config, tarn_task_kind(i)->name, "none", &err),
                         TARN_EUNKNOWN);
    }
    assert_true(tarn_task_measure("copy", &(tarn_score){.correct = 3.0, .weight = 4.0}) ==
                0.75);
    assert_true(isnan(tarn_task_measure("none", &(tarn_score){.correct = 3.0, .weight = 4.0})));
    assert_string_equal(tarn_task_metric("copy:symbols=3"), "accuracy");
    assert_null(tarn_task_preset("none"));
    assert_null(tarn_task_metric(NULL));
}

/* ---- Recipes ------------------------------------------------------------ */

static bool is_in(const tarn_field *(*field)(size_t), const char *name)
{
    for (size_t i = 0; field(i); i++)
        if (strcmp(field(i)->name, name) == 0)
            return true;
    return false;
}

/* A word that nothing reads would be a recipe that is not followed. */
static size_t check_words(const char *recipe)
{
    char field[64], value[128];
    size_t words = 0;

    for (int used; *recipe; recipe += used, words++) {
        assert_int_equal(sscanf(recipe, "%63[^=]=%127s%n", field, value, &used), 2);
        assert_true(is_in(tarn_config_field, field) != is_in(tarn_settings_field, field));
        used += recipe[used] == ' ';
    }
    return words;
}

static void every_word_of_a_recipe_is_a_field_or_a_setting(void **state)
{
    size_t recipes = 0;

    (void)state;
    for (size_t i = 0; tarn_preset(i); i++) {
        const char *const preset = tarn_preset(i)->name, *const task = tarn_preset_task(preset);
        struct training_case training;
        tarn_error err;

        assert_true((check_words(tn_preset_recipe(preset)) > 0) == (task != NULL));
        if (!task)
            continue;
        recipes++;
        check_ok(tarn_settings_start(&training.settings, task, &err), &err);
        check_ok(tarn_settings_preset(&training.settings, preset, &err), &err);
        check_ok(tarn_config_start(&training.config, task, preset, &err), &err);
        check_ok(tarn_config_check(&training.config, &err), &err);
        assert_string_equal(training.config.norm, "pre");
        assert_string_equal(training.settings.optimizer, "adamw:beta2=0.99");
        assert_int_equal(tarn_config_start(&training.config, "copy", preset, &err),
                         TARN_EINVAL);
        assert_non_null(strstr(err.text, "is made for task"));
    }
    assert_true(recipes >= 3);
}

/* The task's own head, logistics, is not that of the recipe. */
static void a_recipe_has_its_own_head(void **state)
{
    tarn_config config;
    tarn_error err;

    (void)state;
    check_ok(tarn_config_start(&config, "image", "digits-fast", &err), &err);
    assert_string_equal(config.head, "categorical");
    check_ok(tarn_config_start(&config, "image", "small", &err), &err);
    assert_string_equal(config.head, "logistic");
}

/* What a run chose for itself, for the loops it was given, is what its folder says. */
static void a_precision_is_chosen_once(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_cpu_name(i); i++) {
        struct folder folder = folder_open();
        struct training_case training = training_copy(2);
        const tarn_host host = {.threads = 1, .cpu = tarn_cpu_name(i)};
        const bool narrow = tn_host_has_bf16(host_of(tn_kernels_row(i), 1));
        tarn_error err;

        training_set(&training, "precision", "auto");
        check_ok(tarn_train(&training.config, &training.settings,
                            &(tarn_train_desc){.out = folder.path, .host = host}, &err),
                 &err);
        check_ok(tarn_train_settings(&training.config, &training.settings, folder.path, &err),
                 &err);
        assert_string_equal(training.settings.precision, narrow ? "bf16" : "f32");
        folder_close(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_validation_at_a_stop_cuts_no_rate),
        cmocka_unit_test(resuming_writes_the_model_of_the_last_checkpoint),
        cmocka_unit_test(skipped_updates_leave_checkpoints_that_resume),
        cmocka_unit_test(a_folder_in_use_is_refused),
        cmocka_unit_test(all_of_the_data_for_validation_is_refused),
        cmocka_unit_test(fields_come_back_as_the_text_that_sets_them),
        cmocka_unit_test(tasks_name_a_preset_and_a_metric),
        cmocka_unit_test(every_word_of_a_recipe_is_a_field_or_a_setting),
        cmocka_unit_test(a_recipe_has_its_own_head),
        cmocka_unit_test(a_precision_is_chosen_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
