/* SPDX-License-Identifier: MIT */
/* test_rank_runs.c - runs and evaluations by two processes, here threads, that do not have the
 * same: both end, and say which of them differs. */
#include <stdio.h>
#include <string.h>

#include "support/folder.h"
#include "support/ledger.h"
#include "support/model_case.h"
#include "support/speech_folder.h"
#include "support/thread_comm.h"
#include "tarn/train.h"

enum { N = 11 };

/* What process 1 of two has otherwise. */
enum difference { NO_MEMORY, OTHER_SETTINGS, OTHER_CONFIG };

struct evaluation {
    enum difference difference;
    tarn_status status[2];
    tarn_error err[2];
};

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
    struct ledger empty = {0};
    const tarn_allocator none = ledger_allocator(&empty);
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

        run_processes(2, 0, evaluate_in_two, &e);
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
    run_processes(2, 0, resume_own, &f);
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
        cmocka_unit_test(processes_that_differ_do_not_evaluate),
        cmocka_unit_test(checkpoints_of_two_runs_are_not_resumed_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
