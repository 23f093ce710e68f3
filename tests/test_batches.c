/* SPDX-License-Identifier: MIT */
/* test_batches.c - the batches of a task for loops of others: they train as tarn_train() does.
 */
#include <string.h>

#include "support/folder.h"
#include "support/training_case.h"
#include "tarn/data.h"

enum { UPDATES = 5 };

static void check_refused(tarn_status status, tarn_status expected, const tarn_error *err,
                          const char *says)
{
    assert_int_equal(status, expected);
    if (!strstr(err->text, says))
        fail_msg("'%s' does not say '%s'", err->text, says);
}

static struct training_case training_of(const char *task, const char *data)
{
    struct training_case training;
    tarn_error err;

    check_ok(tarn_settings_start(&training.settings, task, &err), &err);
    check_ok(tarn_config_start(&training.config, task, "tiny", &err), &err);
    training.config.layers = 1;
    training.config.width = 16;
    training.config.feed = 16;
    training.config.heads = 2;
    training_set(&training, "length", "9");
    training_set(&training, "batch", "2");
    training_set(&training, "steps", "5");
    training_set(&training, "precision", "f32");
    training_set(&training, "data", data);
    return training;
}

static void train_by_hand(const struct training_case *training, const char *path)
{
    tarn_settings s = training->settings;
    tarn_batches *batches;
    tarn_model *model;
    tarn_trainer *trainer;
    tarn_error err;

    check_ok(tarn_batches_open(&batches, &s, &(tarn_batches_desc){0}, &err), &err);
    check_ok(tarn_model_create(&model, &training->config, NULL, &err), &err);
    const tarn_trainer_desc desc = {.batch = s.batch,
                                    .length = s.length,
                                    .optimizer = s.optimizer,
                                    .schedule = s.schedule,
                                    .clip = s.clip,
                                    .lr = s.lr,
                                    .steps = s.steps,
                                    .seed = s.seed,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};

    check_ok(tarn_trainer_create(&trainer, model, &desc, &err), &err);
    for (uint64_t i = 0; i < UPDATES; i++) {
        tarn_report report;
        tarn_batch batch;

        check_ok(tarn_batches_fill(batches, &batch, false, i, &err), &err);
        check_ok(tarn_trainer_update(trainer, &report, &batch, 1, &err), &err);
    }
    check_ok(tarn_model_save(model, path, &err), &err);
    tarn_trainer_free(trainer);
    tarn_model_free(model);
    tarn_batches_free(batches);
}

static uint64_t fingerprint(const char *path)
{
    tarn_model *model;
    tarn_error err;

    check_ok(tarn_model_load(&model, path, NULL, &err), &err);
    const uint64_t found = tarn_model_fingerprint(model);

    tarn_model_free(model);
    return found;
}

static void check_same_files(const struct training_case *training)
{
    struct folder folder = folder_open(), by_hand = folder_open();
    tarn_error err;

    check_ok(training_run(training, folder.path, false, &err), &err);
    train_by_hand(training, folder_file(&by_hand, "model.safetensors"));
    assert_true(fingerprint(folder_file(&folder, "model.safetensors")) ==
                fingerprint(folder_file(&by_hand, "model.safetensors")));
    folder_close(&folder);
    folder_close(&by_hand);
}

static void a_loop_of_ones_own_trains_as_a_run_does(void **state)
{
    const struct training_case training = training_of("copy:symbols=10", "");

    (void)state;
    check_same_files(&training);
}

static void text_of_a_file_trains_as_in_a_run(void **state)
{
    static const char text[] =
        "it was the best of times, it was the worst of times, it was the "
        "age of wisdom, it was the age of foolishness";
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "text");
    const struct training_case training = training_of("text", path);

    (void)state;
    file_put(path, text, sizeof text - 1);
    check_same_files(&training);
    folder_close(&folder);
}

static void parts_end_where_the_data_does(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "text");
    char text[200];
    tarn_settings s;
    tarn_batches *batches;
    tarn_batch batch;
    tarn_error err;

    (void)state;
    memset(text, 'x', sizeof text);
    file_put(path, text, sizeof text);
    s = training_of("text", path).settings;
    s.validation = 0.5;
    check_ok(tarn_batches_open(&batches, &s, &(tarn_batches_desc){0}, &err), &err);
    /* 100 bytes in windows of 9, two a batch; the first of validation is not predicted. */
    assert_int_equal(tarn_batches_count(batches, false), 6);
    assert_int_equal(tarn_batches_count(batches, true), 6);
    check_ok(tarn_batches_fill(batches, &batch, false, 1000, &err), &err);
    check_ok(tarn_batches_fill(batches, &batch, true, 5, &err), &err);
    assert_int_equal(batch.inputs[0], 'x');
    check_refused(tarn_batches_fill(batches, &batch, true, 6, &err), TARN_EINVAL, &err,
                  "index is 6; it must be less than 6");
    tarn_batches_free(batches);

    s.validation = 1.0;
    check_ok(tarn_batches_open(&batches, &s, &(tarn_batches_desc){0}, &err), &err);
    check_refused(tarn_batches_fill(batches, &batch, false, 0, &err), TARN_EINVAL, &err,
                  "the data has no training part");
    tarn_batches_free(batches);
    folder_close(&folder);
}

static void what_is_missing_is_refused(void **state)
{
    tarn_settings s = training_of("copy", "").settings;
    tarn_batches *batches;
    unsigned char *text;
    size_t size;
    tarn_error err;

    (void)state;
    check_refused(tarn_batches_open(NULL, &s, &(tarn_batches_desc){0}, &err), TARN_EINVAL, &err,
                  "batches must not be NULL");
    check_refused(tarn_batches_open(&batches, NULL, NULL, &err), TARN_EINVAL, &err,
                  "settings and desc must not be NULL");
    s.batch = 0;
    check_refused(tarn_batches_open(&batches, &s, &(tarn_batches_desc){0}, &err), TARN_EINVAL,
                  &err, "batch is 0");
    assert_null(batches);
    check_refused(tarn_batches_fill(NULL, NULL, false, 0, &err), TARN_EINVAL, &err,
                  "batches and batch must not be NULL");
    assert_int_equal(tarn_batches_count(NULL, false), 0);
    tarn_batches_free(NULL);
    check_refused(tarn_text_read(&text, &size, NULL, &err), TARN_EINVAL, &err,
                  "path must not be NULL");
    check_refused(tarn_text_read(&text, &size, "/nowhere/at/all", &err), TARN_EIO, &err,
                  "/nowhere/at/all");
    assert_null(text);
    tarn_text_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_of_ones_own_trains_as_a_run_does),
        cmocka_unit_test(text_of_a_file_trains_as_in_a_run),
        cmocka_unit_test(parts_end_where_the_data_does),
        cmocka_unit_test(what_is_missing_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
