/* SPDX-License-Identifier: MIT */
/* test_train_timed.c - a run that is fitted to a time: what the clock decided is in its
 * checkpoints, and all the rest follows from these. */
#include <math.h>
#include <string.h>

#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/training_case.h"
#include "train/training.h"

enum { VALIDATIONS = 6, ATTEMPTS = 10 };

/* What a run told. */
struct heard {
    uint64_t updates,
        planned_at; /* done, and when the last plan was made that others followed */
    size_t plans, validations;
    uint64_t validated_at;
    double rate;
};

static void updated(void *context, const tarn_report *report)
{
    struct heard *const h = context;

    h->updates = report->update;
    h->rate = report->lr;
}

static void planned(void *context, const tarn_settings *settings)
{
    struct heard *const h = context;

    if (settings->steps == h->updates) /* the end */
        return;
    h->plans++;
    h->planned_at = h->updates;
}

static void validated(void *context, const tarn_validation *validation)
{
    struct heard *const h = context;

    h->validations++;
    h->validated_at = validation->update;
}

static struct training_case training_of(void)
{
    struct training_case training = training_copy(1000);

    training_set(&training, "schedule", "cosine:warmup=0.01,final=0.25");
    training_set(&training, "lr", "0.01");
    training_set(&training, "keep", "100000");
    return training;
}

static const double rate = 0.01, final = 0.25; /* as the training has them */

/* On a machine that is busy elsewhere all of a short time may pass before there are plans, or
 * after the last one: more time is given then. */
static bool is_complete(const struct heard *heard)
{
    return heard->plans >= 2 && heard->rate < 1.1 * final * rate;
}

static struct heard train(const struct training_case *training, struct folder *folder)
{
    struct heard heard = {0};
    double minutes = 0.005;
    tarn_error err;

    for (size_t i = 0; i < ATTEMPTS && !is_complete(&heard); i++) {
        *folder = folder_open();
        heard = (struct heard){0};
        const tarn_train_desc desc = {.out = folder->path,
                                      .host = {.threads = 1, .cpu = forced_cpu()},
                                      .minutes = minutes,
                                      .validations = VALIDATIONS,
                                      .events = {.context = &heard,
                                                 .update = updated,
                                                 .validation = validated,
                                                 .planned = planned}};

        check_ok(tarn_train(&training->config, &training->settings, &desc, &err), &err);
        if (!is_complete(&heard))
            folder_close(folder);
        minutes = fmin(4.0 * minutes, 0.1);
    }
    assert_true(is_complete(&heard));
    return heard;
}

static void copy_file(const char *from, const char *to)
{
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tn_bytes_read(&bytes, from, SIZE_MAX / 2, &err), &err);
    file_put(to, bytes.data, bytes.size);
    tn_bytes_free(&bytes);
}

static void check_same_model(const struct folder *a, const struct folder *b)
{
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tn_bytes_read(&bytes, folder_file(a, "model.safetensors"), SIZE_MAX / 2, &err),
             &err);
    file_check(folder_file(b, "model.safetensors"), bytes.data, bytes.size);
    tn_bytes_free(&bytes);
}

/* As if the run had been killed at any time after its last plan. */
static void resuming_makes_the_updates_that_were_planned(void **state)
{
    const struct training_case training = training_of();
    struct folder whole, part = folder_open();
    const struct heard heard = train(&training, &whole);
    char from[TN_FOLDER_PATH], to[TN_FOLDER_PATH];
    struct training_case again;
    tarn_error err;

    (void)state;
    tn_folder_checkpoint(from, whole.path, heard.planned_at);
    tn_folder_checkpoint(to, part.path, heard.planned_at);
    copy_file(from, to);
    check_ok(tarn_train_settings(&again.config, &again.settings, part.path, &err), &err);
    assert_true(again.settings.steps >= heard.updates); /* or the time was over before */
    again.settings.steps = heard.updates;
    check_ok(training_run(&again, part.path, true, &err), &err);
    check_same_model(&whole, &part);
    folder_close(&whole);
    folder_close(&part);
}

static void the_schedule_and_the_validations_end_with_the_time(void **state)
{
    const struct training_case training = training_of();
    struct folder folder;
    const struct heard heard = train(&training, &folder);

    (void)state;
    assert_in_range(heard.validations, 1, VALIDATIONS);
    assert_true(heard.validated_at == heard.updates);
    folder_close(&folder);
}

/* A run without `minutes` keeps to its number, whatever time it is given later. */
static void a_number_of_updates_is_kept(void **state)
{
    struct training_case training = training_of();
    struct folder folder = folder_open();
    struct heard heard = {0};
    const tarn_train_desc desc = {
        .out = folder.path,
        .resume = true,
        .host = {.threads = 1, .cpu = forced_cpu()},
        .minutes = 1.0,
        .events = {.context = &heard, .update = updated, .planned = planned}};
    tarn_error err;

    (void)state;
    training_set(&training, "steps", "5");
    check_ok(training_run(&training, folder.path, false, &err), &err);
    training_set(&training, "steps", "20");
    check_ok(tarn_train(&training.config, &training.settings, &desc, &err), &err);
    assert_true(heard.updates == 20 && heard.plans == 0);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resuming_makes_the_updates_that_were_planned),
        cmocka_unit_test(the_schedule_and_the_validations_end_with_the_time),
        cmocka_unit_test(a_number_of_updates_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
