/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "train/training_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "file/json_read.h"
#include "file/json_write.h"

static tarn_status failed(const struct tn_log *log, tarn_error *err)
{
    return tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(log->path), strerror(errno));
}

/* ---- Opening ------------------------------------------------------------ */

/* Whether a line is of an update that counts. A line that was cut off is not. */
static tarn_status counts(bool *is, const char *line, size_t length, uint64_t updates,
                          tarn_error *err)
{
    struct tn_json json;
    int64_t update = -1;
    const tarn_status status = tn_json_parse(&json, line, length, err);

    *is = status == TARN_OK && tn_json_whole(tn_json_get(json.root, "update"), &update) &&
          update >= 0 && (uint64_t)update <= updates;
    tn_json_free(&json);
    return status == TARN_ENOMEM ? status : TARN_OK;
}

/* Bytes of the lines in front that count. */
static tarn_status measure(size_t *kept, const struct tn_bytes *bytes, uint64_t updates,
                           tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (*kept = 0; *kept < bytes->size;) {
        const char *const line = (const char *)bytes->data + *kept;
        const char *const end = memchr(line, '\n', bytes->size - *kept);
        bool is = false;

        if (end)
            status = counts(&is, line, (size_t)(end - line), updates, err);
        if (!is)
            break;
        *kept += (size_t)(end - line) + 1;
    }
    return status;
}

static tarn_status cut(const char *path, uint64_t updates, tarn_error *err)
{
    struct tn_bytes bytes;
    size_t kept;
    tarn_status status = tn_bytes_read(&bytes, path, SIZE_MAX / 2, err);

    if (status == TARN_OK)
        status = measure(&kept, &bytes, updates, err);
    if (status == TARN_OK && truncate(path, (off_t)kept) != 0)
        status = tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(path), strerror(errno));
    tn_bytes_free(&bytes);
    return status;
}

tarn_status tn_log_open(struct tn_log *log, const char *path, uint64_t updates, tarn_error *err)
{
    tarn_status status;

    *log = (struct tn_log){.start = tn_seconds(), .cpu_start = tn_cpu_seconds()};
    if (access(path, F_OK) == 0 && (status = cut(path, updates, err)) != TARN_OK)
        return status;
    log->path = strdup(path);
    if (!log->path)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for its name", path);
    log->file = fopen(path, "ab");
    if (!log->file) {
        status = failed(log, err);
        tn_log_close(log);
        return status;
    }
    return TARN_OK;
}

void tn_log_close(struct tn_log *log)
{
    if (log->file)
        fclose(log->file);
    free(log->path);
    *log = (struct tn_log){0};
}

/* ---- Writing ------------------------------------------------------------ */

static void put_number(struct tn_json_writer *w, const char *name, double value)
{
    tn_json_key(w, name);
    tn_json_put_number(w, value, 9);
}

static void begin(struct tn_json_writer *w, uint64_t update)
{
    tn_json_open(w, '{');
    tn_json_key(w, "update");
    tn_json_put_whole(w, (int64_t)update);
}

static tarn_status end(struct tn_log *log, struct tn_json_writer *w, tarn_error *err)
{
    char *text;
    tarn_status status;

    put_number(w, "seconds", tn_seconds() - log->start);
    put_number(w, "cpu_seconds", tn_cpu_seconds() - log->cpu_start);
    tn_json_close(w, '}');
    if ((status = tn_json_writer_end(w, &text, "a line of the log", err)) == TARN_OK &&
        (fputs(text, log->file) == EOF || fputc('\n', log->file) == EOF ||
         fflush(log->file) != 0))
        status = failed(log, err);
    free(text);
    return status;
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
    if (report->skipped) {
        tn_json_key(&w, "skipped");
        tn_json_put_bool(&w, true);
    }
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
    return fsync(fileno(log->file)) == 0 ? TARN_OK : failed(log, err);
}
