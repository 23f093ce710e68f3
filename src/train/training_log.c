/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "train/training.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "file/json_read.h"
#include "file/json_write.h"

/* ---- Opening ------------------------------------------------------------ */

/* The update of a line, -1: it is not a line of a log, or was cut off. */
static tarn_status read_line(int64_t *update, const char *line, size_t length, tarn_error *err)
{
    struct tn_json json;
    const tarn_status status = tn_json_parse(&json, line, length, err);

    if (status != TARN_OK || !tn_json_whole(tn_json_get(json.root, "update"), update))
        *update = -1;
    tn_json_free(&json);
    return status == TARN_ENOMEM ? status : TARN_OK;
}

/* Bytes of the lines in front that count. What does not begin with a line of a log is not one.
 */
static tarn_status measure(size_t *kept, const struct tn_bytes *bytes, uint64_t updates,
                           const char *path, tarn_error *err)
{
    for (*kept = 0; *kept < bytes->size;) {
        const char *const line = (const char *)bytes->data + *kept;
        const char *const end = memchr(line, '\n', bytes->size - *kept);
        int64_t update = -1;
        const tarn_status status =
            end ? read_line(&update, line, (size_t)(end - line), err) : TARN_OK;

        if (status != TARN_OK)
            return status;
        if (end && update < 0 && *kept == 0)
            return tn_fail_path(err, TARN_EFORMAT, path,
                                "is not the log of a training run; move it away to resume");
        if (!end || update < 0 || (uint64_t)update > updates)
            break;
        *kept += (size_t)(end - line) + 1;
    }
    return TARN_OK;
}

/* What is written to, or cut, has no other name. */
static tarn_status check_file(const struct tn_log *log, tarn_error *err)
{
    struct stat about;

    if (fstat(log->file, &about) != 0)
        return tn_fail_errno(err, log->path);
    if (!S_ISREG(about.st_mode) || about.st_nlink != 1)
        return tn_fail_path(err, TARN_EIO, log->path,
                            "is a link or not a file; move it away to resume");
    return TARN_OK;
}

static tarn_status cut(const struct tn_log *log, uint64_t updates, tarn_error *err)
{
    struct tn_bytes bytes = {0};
    size_t kept = 0;
    tarn_status status = check_file(log, err);

    if (status == TARN_OK &&
        (status = tn_bytes_read(&bytes, log->path, SIZE_MAX / 2, err)) == TARN_OK &&
        (status = measure(&kept, &bytes, updates, log->path, err)) == TARN_OK &&
        ftruncate(log->file, (off_t)kept) != 0)
        status = tn_fail_errno(err, log->path);
    tn_bytes_free(&bytes);
    return status;
}

tarn_status tn_log_open(struct tn_log *log, const char *path, bool resumes, uint64_t updates,
                        tarn_error *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    tarn_status status = TARN_OK;

    *log = (struct tn_log){
        .file = -1,
        .path = strdup(path),
        .start = tn_seconds(),
        .cpu_start = tn_cpu_seconds(),
    };
    if (!log->path)
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory for its name");
    log->file = open(path, resumes ? flags : flags | O_EXCL, 0666);
    if (log->file < 0)
        status = tn_fail_errno(err, log->path);
    else if (resumes)
        status = cut(log, updates, err);
    if (status != TARN_OK)
        tn_log_close(log);
    return status;
}

void tn_log_close(struct tn_log *log)
{
    if (log->file >= 0)
        close(log->file);
    free(log->waiting);
    free(log->path);
    *log = (struct tn_log){.file = -1};
}

/* ---- Writing ------------------------------------------------------------ */

static void put_number(struct tn_json_writer *w, const char *name, double value)
{
    tn_json_put_number(w, name, value, 9);
}

static void begin(struct tn_json_writer *w, uint64_t update)
{
    tn_json_open(w, NULL, '{');
    tn_json_put_whole(w, "update", (int64_t)update);
}

/* What waits, as far as it can be written. */
static tarn_status flush(struct tn_log *log, tarn_error *err)
{
    while (log->waits > 0) {
        const ssize_t put = write(log->file, log->waiting, log->waits);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return tn_fail_errno(err, log->path);
        log->waits -= (size_t)put;
        memmove(log->waiting, log->waiting + put, log->waits);
    }
    return TARN_OK;
}

/* Takes `line`. */
static bool add(struct tn_log *log, char *line)
{
    const size_t length = strlen(line);
    char *const longer = realloc(log->waiting, log->waits + length + 1);

    if (longer) {
        memcpy(longer + log->waits, line, length);
        longer[log->waits + length] = '\n';
        log->waiting = longer;
        log->waits += length + 1;
    }
    free(line);
    return longer != NULL;
}

static tarn_status end(struct tn_log *log, struct tn_json_writer *w, tarn_error *err)
{
    char *line;

    put_number(w, "seconds", tn_seconds() - log->start);
    put_number(w, "cpu_seconds", tn_cpu_seconds() - log->cpu_start);
    tn_json_close(w, '}');
    if (tn_json_writer_end(w, &line, "a line of the log", NULL) == TARN_OK && add(log, line))
        return flush(log, err);
    log->lost = true;
    return tn_fail_path(err, TARN_ENOMEM, log->path, "not enough memory for a line");
}

tarn_status tn_log_update(struct tn_log *log, const tarn_report *report, double tokens_per_s,
                          tarn_error *err)
{
    struct tn_json_writer w = {0};

    begin(&w, report->update);
    put_number(&w, "loss", report->loss);
    put_number(&w, "accuracy", report->accuracy);
    put_number(&w, "lr", report->lr);
    put_number(&w, "norm", report->norm);
    if (report->skipped)
        tn_json_put_bool(&w, "skipped", true);
    put_number(&w, "tokens_per_s", tokens_per_s);
    return end(log, &w, err);
}

tarn_status tn_log_validation(struct tn_log *log, const tarn_validation *validation,
                              tarn_error *err)
{
    struct tn_json_writer w = {0};

    begin(&w, validation->update);
    put_number(&w, "validation_loss", validation->loss);
    put_number(&w, validation->name, validation->metric);
    return end(log, &w, err);
}

tarn_status tn_log_sync(struct tn_log *log, tarn_error *err)
{
    const tarn_status status = flush(log, err);

    if (status != TARN_OK)
        return status;
    if (log->lost)
        return tn_fail_path(err, TARN_ENOMEM, log->path,
                            "a line is missing: there was no memory for it");
    return fsync(log->file) == 0 ? TARN_OK : tn_fail_errno(err, log->path);
}
