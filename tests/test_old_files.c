/* SPDX-License-Identifier: MIT */
/* test_old_files.c - files of version 0.1 give what that version gave: an evaluation, the
 * symbols that streams continue with, and the next update of a training. tests/old/README.md
 * says where they and the values come from. */
#include <math.h>
#include <string.h>

#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/training_case.h"
#include "support/streams.h"
#include "tarn/tarn.h"

#define OLD TEST_VECTORS "../old/"

/* What different instruction sets agree on, and a wrong setting does not. */
static void check_close(double got, double expected)
{
    if (fabs(got - expected) > 1e-5 * fabs(expected))
        fail_msg("%.9g instead of %.9g", got, expected);
}

/* A folder as that version left it. */
static struct folder open_run(struct training_case *training)
{
    const struct folder folder = folder_open();
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tn_bytes_read(&bytes, OLD "checkpoint.safetensors", SIZE_MAX / 2, &err), &err);
    file_put(folder_file(&folder, "checkpoint-0000000012.safetensors"), bytes.data, bytes.size);
    tn_bytes_free(&bytes);
    check_ok(tarn_train_settings(&training->config, &training->settings, folder.path, &err),
             &err);
    return folder;
}

/* ---- Settings ----------------------------------------------------------- */

static void settings_are_read_by_their_old_names(void **state)
{
    struct training_case training;
    struct folder folder = open_run(&training);
    const tarn_settings *const s = &training.settings;

    (void)state;
    assert_int_equal(s->steps, 12);
    assert_true(s->lr == 0.02);
    assert_true(s->skip_nonfinite);
    assert_int_equal(s->eval_every, 6);
    assert_int_equal(s->eval_batches, 3);
    assert_int_equal(training.config.width, 8);
    folder_close(&folder);
}

/* ---- A model ------------------------------------------------------------ */

static void a_model_evaluates_as_it_did(void **state)
{
    const tarn_evaluate_desc desc = {.host = {.threads = 1, .cpu = forced_cpu()}};
    struct training_case training;
    struct folder folder = open_run(&training);
    tarn_validation validation;
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_load(&model, OLD "model.safetensors", NULL, &err), &err);
    check_ok(tarn_evaluate(&validation, model, &training.settings, &desc, &err), &err);
    check_close(validation.loss, 2.05485989);
    check_close(validation.metric, 0.191176471);
    tarn_model_free(model);
    folder_close(&folder);
}

/* ---- Streams ------------------------------------------------------------ */

/* The program of that version continued them with these symbols. */
static void streams_continue_as_they_did(void **state)
{
    enum { STREAMS = 2, SYMBOLS = 8 };
    static const int32_t expected[STREAMS][SYMBOLS] = {{3, 5, 5, 3, 1, 1, 1, 0},
                                                       {6, 3, 1, 0, 3, 2, 3, 4}};
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_load(&model, OLD "model.safetensors", NULL, &err), &err);
    struct streams s = streams_open(model, (tarn_engine_desc){.host.threads = 1}, STREAMS);
    int32_t symbols[STREAMS];

    check_ok(tarn_streams_load(s.engine, s.at, STREAMS, OLD "state.safetensors", &err), &err);
    streams_sampling(&s, (tarn_sampling){.seed = 5});
    for (size_t i = 0; i < SYMBOLS; i++) {
        assert_int_equal(tarn_stream_position(s.at[0]), 9 + i);
        check_ok(tarn_engine_step(s.engine, s.at, s.outputs, NULL, STREAMS, &err), &err);
        check_ok(tarn_engine_draw(s.engine, s.at, symbols, s.outputs, STREAMS, &err), &err);
        for (size_t b = 0; b < STREAMS; b++)
            assert_int_equal(symbols[b], expected[b][i]);
    }
    streams_close(&s);
    tarn_model_free(model);
}

/* ---- A checkpoint ------------------------------------------------------- */

enum { UPDATES = 2 };

struct updates {
    tarn_report report[UPDATES];
    size_t count;
};

static void updated(void *context, const tarn_report *report)
{
    struct updates *const updates = context;

    assert_true(updates->count < UPDATES);
    updates->report[updates->count++] = *report;
}

static void check_update(const tarn_report *report, double loss, double lr, double norm)
{
    check_close(report->loss, loss);
    check_close(report->lr, lr);
    check_close(report->norm, norm);
}

static void a_training_goes_on_as_it_would_have(void **state)
{
    struct training_case training;
    struct folder folder = open_run(&training);
    struct updates updates = {0};
    const tarn_train_desc desc = {.out = folder.path,
                                  .resume = true,
                                  .host = {.threads = 1, .cpu = forced_cpu()},
                                  .events = {.context = &updates, .update = updated}};
    tarn_error err;

    (void)state;
    training.settings.steps = 14;
    check_ok(tarn_train(&training.config, &training.settings, &desc, &err), &err);
    assert_int_equal(updates.count, UPDATES);
    check_update(&updates.report[0], 2.05751189, 0.0165279144, 0.350996279);
    check_update(&updates.report[1], 2.08900348, 0.0159225334, 0.376904393);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_read_by_their_old_names),
        cmocka_unit_test(a_model_evaluates_as_it_did),
        cmocka_unit_test(streams_continue_as_they_did),
        cmocka_unit_test(a_training_goes_on_as_it_would_have),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
