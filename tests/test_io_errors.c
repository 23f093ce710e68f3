/* SPDX-License-Identifier: MIT */
/* test_io_errors.c [all] - a run of training in which one call of the system fails, whichever
 * it is, or that and all after it: every file is whole, the status says what happened, and the
 * run, resumed, ends as if nothing had happened. Without `all`, a sample of the calls.
 *
 * The program has its own write() and its kin, which the library's calls go to. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/training_case.h"
#include "tarn/file.h"

#if defined(__linux__) && defined(__GLIBC__)

#include <sys/syscall.h>

long syscall(long number, ...);

/* ---- Calls that fail ---------------------------------------------------- */

enum call { WRITE, READ, FSYNC, RENAME, OPEN, CLOSE, FTRUNCATE, UNLINK, MKDIR, CALLS };

static const char *const names[CALLS] = {"write", "read",      "fsync",  "rename", "open",
                                         "close", "ftruncate", "unlink", "mkdir"};

enum { SHORT = -1 }; /* in the place of an errno: half of the bytes */

static struct {
    enum call call; /* CALLS: none fails */
    size_t made, from, length;
    int error;
} fault = {.call = CALLS};

static bool fails(enum call call)
{
    if (call != fault.call)
        return false;
    const size_t n = fault.made++;
    const bool hit = n >= fault.from && n - fault.from < fault.length;

    if (hit && fault.error != SHORT)
        errno = fault.error;
    return hit;
}

/* Bytes to transfer in the place of `count`; -1: fails. */
static ssize_t transfer(enum call call, size_t count)
{
    if (!fails(call))
        return (ssize_t)count;
    return fault.error == SHORT ? (ssize_t)(count + 1) / 2 : -1;
}

ssize_t write(int file, const void *data, size_t count)
{
    const ssize_t most = transfer(WRITE, count);

    return most < 0 ? -1 : syscall(SYS_write, file, data, (size_t)most);
}

ssize_t read(int file, void *data, size_t count)
{
    const ssize_t most = transfer(READ, count);

    return most < 0 ? -1 : syscall(SYS_read, file, data, (size_t)most);
}

ssize_t pread(int file, void *data, size_t count, off_t at)
{
    const ssize_t most = transfer(READ, count);

    return most < 0 ? -1 : syscall(SYS_pread64, file, data, (size_t)most, at);
}

int fsync(int file)
{
    return fails(FSYNC) ? -1 : (int)syscall(SYS_fsync, file);
}

int rename(const char *from, const char *to)
{
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;

    va_end(arguments);
    return fails(OPEN) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int file)
{
    const bool failed = fails(CLOSE);
    const int number = errno, status = (int)syscall(SYS_close, file);

    errno = failed ? number : errno;
    return failed ? -1 : status;
}

int ftruncate(int file, off_t size)
{
    return fails(FTRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int unlink(const char *path)
{
    return fails(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(MKDIR) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

/* Their names with offsets of 64 bits. */
ssize_t pread64(int file, void *data, size_t count, off_t at);
int open64(const char *path, int flags, ...);
int ftruncate64(int file, off_t size);

ssize_t pread64(int file, void *data, size_t count, off_t at)
{
    return pread(file, data, count, at);
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;

    va_end(arguments);
    return open(path, flags, mode);
}

int ftruncate64(int file, off_t size)
{
    return ftruncate(file, size);
}

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
static bool run_once(const struct training_case *training, const struct left *expected)
{
    struct folder folder = memory_folder();
    const bool must_work = fault.error == SHORT || fault.error == EINTR;
    tarn_error err = {0};

    fault.made = 0;
    const enum call call = fault.call;
    const tarn_status status = training_run(training, folder.path, false, &err);
    const bool hit = fault.made > fault.from;

    fault.call = CALLS;
    if (status != TARN_OK && (must_work || !hit || status != TARN_EIO || !*err.text))
        fail_msg("%s %zu: %s: %s", names[call], fault.from, tarn_status_name(status), err.text);
    const bool resumes = check_whole(&folder);

    if (status != TARN_OK) {
        tarn_error again = {0};

        if (training_run(training, folder.path, resumes, &again) != TARN_OK)
            fail_msg("%s %zu of '%s', then %s", names[call], fault.from, err.text, again.text);
    }
    check_left(&folder, expected);
    folder_close(&folder);
    fault.call = call;
    return hit;
}

static size_t stride = 5; /* of the many; 1: all of them */

static void check_fault(enum call call, int error, size_t length,
                        const struct training_case *training, const struct left *expected)
{
    const size_t step = call == WRITE || call == CLOSE || call == OPEN ? stride : 1;
    size_t runs = 0;

    fault.call = call;
    fault.error = error;
    fault.length = length;
    for (fault.from = 0; run_once(training, expected); fault.from += step)
        runs++;
    fault.call = CALLS;
    print_message("%-9s %-24s %s: %zu runs\n", names[call],
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

    for (int call = 0; call < MKDIR; call++) {
        check_fault((enum call)call, EIO, 1, &training, &expected);
        check_fault((enum call)call, call == WRITE ? ENOSPC : EIO, SIZE_MAX, &training,
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
