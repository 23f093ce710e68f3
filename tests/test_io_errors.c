/* SPDX-License-Identifier: MIT */
/* test_io_errors.c [all] - a run of training in which one call of the system fails, whichever
 * it is, or that and all after it: every file is whole, the status says what happened, and the
 * run, resumed, ends as if nothing had happened. Without `all`, a sample of the calls. Unlike
 * tests/faults.py it sees what is wrong with memory on the way, in builds with sanitizers. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "faults.h"
#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/training_case.h"
#include "tarn/file.h"

#if defined(__linux__) && defined(__GLIBC__)

enum { SHORT = 0 }; /* in the place of an errno: half of the bytes */

/* ---- A run -------------------------------------------------------------- */

/* 4 updates, a validation and a checkpoint after every second; the schedule learns of
 * validations. */
static struct training_case training_of(void)
{
    struct training_case training = training_copy(4);

    training_set(&training, "eval_every", "2");
    training_set(&training, "save_every", "2");
    training_set(&training, "schedule", "plateau:factor=0.5,patience=1,threshold=0.5");
    return training;
}

static struct folder memory_folder(void)
{
    return access("/dev/shm", W_OK) == 0 ? folder_open_in("/dev/shm") : folder_open();
}

/* What a run leaves: in the log, all but times. */
struct left {
    struct tn_bytes model, best, checkpoint;
    char log[4096];
};

static void read_log(char text[4096], const char *path)
{
    FILE *const file = fopen(path, "r");
    char line[512];

    assert_non_null(file);
    *text = '\0';
    while (fgets(line, sizeof line, file)) {
        char *const speed = strstr(line, "\"tokens_per_s\""), *const time =
                                                                  strstr(line, "\"sec");

        assert_true(line[strlen(line) - 1] == '\n' && time);
        *(speed ? speed : time) = '\0';
        assert_true(strlen(text) + strlen(line) < 4096);
        strcat(text, line);
    }
    fclose(file);
}

static struct left left_by(const struct folder *folder)
{
    struct left left;
    tarn_error err;

    check_ok(
        tn_bytes_read(&left.model, folder_file(folder, "model.safetensors"), SIZE_MAX, &err),
        &err);
    check_ok(tn_bytes_read(&left.best, folder_file(folder, "best.safetensors"), SIZE_MAX, &err),
             &err);
    check_ok(tn_bytes_read(&left.checkpoint,
                           folder_file(folder, "checkpoint-0000000004.safetensors"), SIZE_MAX,
                           &err),
             &err);
    read_log(left.log, folder_file(folder, "log.jsonl"));
    return left;
}

static void left_free(struct left *left)
{
    tn_bytes_free(&left->model);
    tn_bytes_free(&left->best);
    tn_bytes_free(&left->checkpoint);
}

static bool same(const struct tn_bytes *a, const struct tn_bytes *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static void check_left(const struct folder *folder, const struct left *expected)
{
    struct left found = left_by(folder);

    assert_true(same(&found.model, &expected->model));
    assert_true(same(&found.best, &expected->best));
    assert_true(same(&found.checkpoint, &expected->checkpoint));
    assert_string_equal(found.log, expected->log);
    left_free(&found);
}

/* Whatever has the name of a file is one; whether there is a checkpoint. */
static bool check_whole(const struct folder *folder)
{
    DIR *const directory = opendir(folder->path);
    bool checkpoint = false;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *const end = strrchr(entry->d_name, '.');
        tarn_file *file;
        tarn_error err;

        if (!end || strcmp(end, ".safetensors") != 0)
            continue;
        check_ok(tarn_file_open(&file, folder_file(folder, entry->d_name), &err), &err);
        tarn_file_free(file);
        checkpoint |= strncmp(entry->d_name, "checkpoint", 10) == 0;
    }
    closedir(directory);
    return checkpoint;
}

/* ---- All of it ---------------------------------------------------------- */

/* Whether a call failed. EINTR and short counts are no failures of the run. */
static bool run_once(struct fault fault, const struct training_case *training,
                     const struct left *expected)
{
    struct folder folder = memory_folder();
    const bool must_work = fault.error == SHORT || fault.error == EINTR;
    const char *const name = call_names[fault.call];
    tarn_error err = {0};

    fault_set(fault);
    const tarn_status status = training_run(training, folder.path, false, &err);
    const bool hit = fault_count() > 0;

    fault_set((struct fault){.call = CALLS});
    if (status != TARN_OK && (must_work || !hit || status != TARN_EIO || !*err.text))
        fail_msg("%s %ld: %s: %s", name, fault.from, tarn_status_name(status), err.text);
    const bool resumes = check_whole(&folder);

    if (status != TARN_OK) {
        tarn_error again = {0};

        if (training_run(training, folder.path, resumes, &again) != TARN_OK)
            fail_msg("%s %ld of '%s', then %s", name, fault.from, err.text, again.text);
    }
    check_left(&folder, expected);
    folder_close(&folder);
    return hit;
}

static long stride = 5; /* of the many; 1: all of them */

static void check_fault(enum call call, int error, long length,
                        const struct training_case *training, const struct left *expected)
{
    const long step = call == WRITE || call == CLOSE || call == OPEN ? stride : 1;
    struct fault fault = {call, 0, length, error};
    size_t runs = 0;

    for (; run_once(fault, training, expected); fault.from += step)
        runs++;
    print_message("%-9s %-24s %s: %zu runs\n", call_names[call],
                  error == SHORT ? "short count" : strerror(error),
                  length == 1 ? "once" : "from then on", runs);
}

static void a_run_survives_whichever_call_fails(void **state)
{
    const struct training_case training = training_of();
    struct folder folder = memory_folder();
    tarn_error err;

    (void)state;
    check_ok(training_run(&training, folder.path, false, &err), &err);
    struct left expected = left_by(&folder);

    for (int call = WRITE; call < MKDIR; call++) {
        check_fault((enum call)call, EIO, 1, &training, &expected);
        check_fault((enum call)call, call == WRITE ? ENOSPC : EIO, LONG_MAX, &training,
                    &expected);
    }
    check_fault(WRITE, EINTR, 1, &training, &expected);
    check_fault(WRITE, SHORT, 1, &training, &expected);
    check_fault(READ, EINTR, 1, &training, &expected);
    check_fault(READ, SHORT, 1, &training, &expected);
    left_free(&expected);
    folder_close(&folder);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_survives_whichever_call_fails)};

    if (count > 1 && strcmp(arguments[1], "all") == 0)
        stride = 1;
    return cmocka_run_group_tests_name("I/O errors", tests, NULL, NULL);
}

#else

static void calls_cannot_fail_here(void **state)
{
    (void)state;
    print_message("skipped: calls are made to fail on Linux with glibc\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_cannot_fail_here)};

    return cmocka_run_group_tests_name("I/O errors", tests, NULL, NULL);
}

#endif
