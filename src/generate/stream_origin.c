/* SPDX-License-Identifier: MIT */
/* stream_origin.c - whose the streams of a file are, in its metadata. */
#include "generate/stream_origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/fields_json.h"

static const struct tn_field fields[] = {
    TN_FIELD(struct tn_origin, TEXT, model, 0, 0, ""),
    TN_FIELD(struct tn_origin, TEXT, method, 0, 0, ""),
    TN_FIELD_RENAMED(struct tn_origin, COUNT, streams, 1, TN_FIELD_MOST, "batch", ""),
    TN_FIELD(struct tn_origin, SEED, position, 0, TN_FIELD_MOST, ""),
    TN_FIELD_SINCE(struct tn_origin, FLAG, next, 0, 0, "false", ""),
    {.about = {.name = NULL}},
};

void tn_origin_note(struct tn_origin *origin, const struct tn_stream_head *head)
{
    origin->position = head->position > origin->position ? head->position : origin->position;
    origin->next = origin->next && head->drawn > 0;
}

struct tn_origin tn_origin_of(const tarn_engine *e, tarn_stream *const *streams, size_t n)
{
    struct tn_origin origin = {.streams = n, .next = true};

    snprintf(origin.model, sizeof origin.model, "%016" PRIx64, e->fingerprint);
    snprintf(origin.method, sizeof origin.method, "%s", e->method->about.name);
    for (size_t i = 0; i < n && streams; i++)
        tn_origin_note(&origin, &streams[i]->head);
    return origin;
}

tarn_status tn_origin_write(char **json, const struct tn_origin *origin, tarn_error *err)
{
    return tn_fields_write(json, fields, origin, "the streams' origin", err);
}

tarn_status tn_origin_read(struct tn_origin *origin, const struct tn_safetensors *file,
                           const char *path, tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, TN_ORIGIN_KEY);
    const bool old = tn_safetensors_find(file, TN_OLD_STREAMS_TENSOR) != NULL;

    if (!json || (!old && !tn_safetensors_find(file, TN_STREAMS_TENSOR)))
        return tn_fail(err, TARN_EFORMAT, "%s: does not contain saved streams", path);
    *origin = (struct tn_origin){0};
    const tarn_status status = tn_fields_read(fields, origin, json, path, "state", err);

    if (status == TARN_OK && old)
        origin->next = tn_safetensors_find(file, TN_OLD_NEXT_TENSOR) != NULL;
    return status;
}

tarn_status tn_origin_check(const tarn_engine *e, const struct tn_origin *found, size_t n,
                            const char *path, tarn_error *err)
{
    const struct tn_origin own = tn_origin_of(e, NULL, n);
    const bool other = strcmp(found->model, own.model) != 0;

    if (other || strcmp(found->method, own.method) != 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: its streams are of the %s '%.40s'; expected '%.40s'", path,
                       other ? "model" : "method", other ? found->model : found->method,
                       other ? own.model : own.method);
    if (found->streams != n)
        return tn_fail(err, TARN_EFORMAT, "%s: has %zu streams; expected %zu", path,
                       found->streams, n);
    return TARN_OK;
}

/* Files that do not have `next` say less. */
tarn_status tn_origin_compare(const struct tn_origin *origin, const struct tn_origin *found,
                              const char *path, tarn_error *err)
{
    if (found->position != origin->position)
        return tn_fail(
            err, TARN_EFORMAT, "%s: its metadata says position %llu; its streams are at %llu",
            path, (unsigned long long)origin->position, (unsigned long long)found->position);
    if (origin->next && !found->next)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: its metadata says that all streams have a next symbol; one has not",
                       path);
    return TARN_OK;
}

tarn_status tn_origin_tell(tarn_streams_about *about, const struct tn_origin *origin,
                           const char *path, tarn_error *err)
{
    char again[TARN_NAME_SIZE];
    const uint64_t fingerprint = strtoull(origin->model, NULL, 16);

    snprintf(again, sizeof again, "%016" PRIx64, fingerprint);
    if (strcmp(again, origin->model) != 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: model is '%.40s'; expected 16 hexadecimal digits", path,
                       origin->model);
    *about = (tarn_streams_about){
        .model = fingerprint,
        .count = origin->streams,
        .position = origin->position,
        .has_next = origin->next,
    };
    memcpy(about->method, origin->method, sizeof about->method);
    return TARN_OK;
}
