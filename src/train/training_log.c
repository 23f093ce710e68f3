/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "train/training_log.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/file_bytes.h"

static tarn_status failed(const struct tn_log *log, tarn_error *err)
{
    return tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(log->path), strerror(errno));
}

/* ---- Opening ------------------------------------------------------------ */

/* Whether a line is of an update that counts. A line that was cut off is not. */
static bool counts(const char *line, size_t length, uint64_t updates)
{
    json_t *const object = json_loadb(line, length, 0, NULL);
    const json_t *const update = json_object_get(object, "update");
    const bool is = json_is_integer(update) && (uint64_t)json_integer_value(update) <= updates;

    json_decref(object);
    return is;
}

/* Bytes of the lines in front that count. */
static size_t kept(const struct tn_bytes *bytes, uint64_t updates)
{
    size_t at = 0;

    while (at < bytes->size) {
        const char *const line = (const char *)bytes->data + at;
        const char *const end = memchr(line, '\n', bytes->size - at);

        if (!end || !counts(line, (size_t)(end - line), updates))
            break;
        at += (size_t)(end - line) + 1;
    }
    return at;
}

static tarn_status cut(const char *path, uint64_t updates, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, SIZE_MAX / 2, err);

    if (status != TARN_OK)
        return status;
    if (truncate(path, (off_t)kept(&bytes, updates)) != 0)
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

/* JSON has no infinity and no NaN. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static tarn_status put(struct tn_log *log, json_t *object, tarn_error *err)
{
    json_object_set_new(object, "seconds", number(tn_seconds() - log->start));
    json_object_set_new(object, "cpu_seconds", number(tn_cpu_seconds() - log->cpu_start));
    const int wrong = json_dumpf(object, log->file, JSON_COMPACT | JSON_REAL_PRECISION(9)) |
                      (fputc('\n', log->file) == EOF) | fflush(log->file);

    json_decref(object);
    return wrong ? failed(log, err) : TARN_OK;
}

tarn_status tn_log_update(struct tn_log *log, const tarn_report *report, double tokens_per_s,
                          tarn_error *err)
{
    json_t *const object = json_object();

    json_object_set_new(object, "update", json_integer((json_int_t)report->update));
    json_object_set_new(object, "loss", number(report->loss));
    json_object_set_new(object, "accuracy", number(report->accuracy));
    json_object_set_new(object, "lr", number(report->lr));
    json_object_set_new(object, "norm", number(report->norm));
    if (report->skipped)
        json_object_set_new(object, "skipped", json_true());
    json_object_set_new(object, "tokens_per_s", number(tokens_per_s));
    return put(log, object, err);
}

tarn_status tn_log_validation(struct tn_log *log, const tarn_validation *validation,
                              tarn_error *err)
{
    json_t *const object = json_object();

    json_object_set_new(object, "update", json_integer((json_int_t)validation->update));
    json_object_set_new(object, "validation_loss", number(validation->loss));
    json_object_set_new(object, validation->name, number(validation->metric));
    return put(log, object, err);
}

tarn_status tn_log_sync(struct tn_log *log, tarn_error *err)
{
    return fsync(fileno(log->file)) == 0 ? TARN_OK : failed(log, err);
}
