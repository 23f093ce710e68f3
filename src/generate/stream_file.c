/* SPDX-License-Identifier: MIT */
/* stream_file.c - streams in a safetensors file, or in the bytes of one: of each as many bytes
 * as mean something, one stream after the other, and in the metadata whose they are.
 *
 * What is written does not depend on how long an engine's sequences may become, so that another
 * one can continue further.
 *
 * Files of version 0.1 have a batch of streams at one position: each section of all of them in
 * a row, and beside it the symbols that come next. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "generate/stream_origin.h"

/* Of a stream at that position, without its head; it is not beyond the end. */
static size_t packed_bytes(const tarn_engine *e, uint64_t position)
{
    bool common;
    size_t all = 0;

    for (size_t i = 0, bytes; (bytes = e->method->section(e, (size_t)position, i, &common)) > 0;
         i++)
        all += bytes;
    return all;
}

/* ---- Saving ------------------------------------------------------------- */

/* Where streams go: to a file, or to memory. */
struct target {
    const char *path; /* NULL: to memory */
    void *bytes;      /* NULL: only measured */
    size_t *size;
};

static tarn_status write_to(const struct target *target, const struct tn_bytes *packed,
                            const char *origin, tarn_error *err)
{
    const struct tn_safetensor tensor = {.name = TN_STREAMS_TENSOR,
                                         .dtype = TN_DTYPE_U8,
                                         .rank = 1,
                                         .shape = {packed->size},
                                         .data = packed->data};
    const struct tn_safetensors_entry entry = {TN_ORIGIN_KEY, origin};

    if (target->path)
        return tn_safetensors_write(target->path, &tensor, 1, &entry, 1, err);
    return tn_safetensors_pack(target->bytes, target->size, &tensor, 1, &entry, 1, err);
}

static tarn_status pack(const tarn_engine *e, struct tn_bytes *packed,
                        tarn_stream *const *streams, size_t n, tarn_error *err)
{
    const size_t head = sizeof(struct tn_stream_head);
    size_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += head + packed_bytes(e, streams[i]->head.position);
    const tarn_status status = tn_bytes_allocate(packed, all, err);
    unsigned char *to = packed->data;

    for (size_t i = 0; i < n && status == TARN_OK; i++) {
        memcpy(to, &streams[i]->head, head);
        e->method->pack(e, to + head, streams[i]);
        to += head + packed_bytes(e, streams[i]->head.position);
    }
    return status;
}

static tarn_status save(const tarn_engine *e, const struct target *target,
                        tarn_stream *const *streams, size_t n, tarn_error *err)
{
    struct tn_bytes packed = {0};
    tarn_status status;

    if (!e || !streams || n == 0)
        return tn_fail(err, TARN_EINVAL, "engine and streams must not be NULL, nor n 0");
    for (size_t i = 0; i < n; i++)
        if ((status = tn_stream_check(e, streams[i], i, 0, err)) != TARN_OK)
            return status;
    const struct tn_origin origin = tn_origin_of(e, streams, n);
    char *json;

    if ((status = tn_origin_write(&json, &origin, err)) != TARN_OK)
        return status;
    if ((status = pack(e, &packed, streams, n, err)) == TARN_OK)
        status = write_to(target, &packed, json, err);
    tn_bytes_free(&packed);
    free(json);
    return status;
}

tarn_status tarn_streams_save(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                              const char *path, tarn_error *err)
{
    if (!path)
        return tn_fail(err, TARN_EINVAL, "path must not be NULL");
    return save(e, &(struct target){.path = path}, streams, n, err);
}

tarn_status tarn_streams_pack(const tarn_engine *e, void *bytes, size_t *size,
                              tarn_stream *const *streams, size_t n, tarn_error *err)
{
    if (!size)
        return tn_fail(err, TARN_EINVAL, "size must not be NULL");
    return save(e, &(struct target){.bytes = bytes, .size = size}, streams, n, err);
}

/* ---- Loading ------------------------------------------------------------ */

static tarn_status check_position(const tarn_engine *e, uint64_t position, const char *path,
                                  tarn_error *err)
{
    if (position > tn_engine_end(e))
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has a stream at position %llu; expected at most %zu", path,
                       (unsigned long long)position, tn_engine_end(e));
    return TARN_OK;
}

static tarn_status refuse_bytes(const char *path, size_t found, size_t expected,
                                tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: has %zu bytes of streams; expected %zu", path, found,
                   expected);
}

/* Everything in a stream that something else depends on. */
static tarn_status check_stream(const tarn_engine *e, const tarn_stream *stream,
                                const char *path, tarn_error *err)
{
    const int32_t drawn = stream->head.drawn, next = drawn > 0 ? drawn - 1 : drawn;
    size_t count;
    const int32_t *const kept = e->method->kept(e, stream, &count);
    tarn_status status;

    if ((status = tn_sampling_refuse(&stream->head, err)) != TARN_OK ||
        (status = tn_symbols_check(e->model, kept, count, path, err)) != TARN_OK)
        return status;
    return drawn == 0 ? TARN_OK : tn_symbols_check(e->model, &next, 1, path, err);
}

/* What is not finite in a state stays so. Symbols, which are small, are finite as floats; what
 * is common to all streams is not floats. */
static bool is_finite(const tarn_engine *e, uint64_t position, const char *packed)
{
    bool common, finite = true;

    for (size_t i = 0, bytes; (bytes = e->method->section(e, (size_t)position, i, &common)) > 0;
         i++, packed += bytes)
        finite = finite && (common || tn_all_finite(packed, bytes / sizeof(float)));
    return finite;
}

/* A stream from its head and what was packed of it. */
static tarn_status unpack_stream(const tarn_engine *e, tarn_stream *stream,
                                 const struct tn_stream_head *head, const void *packed,
                                 const char *path, tarn_error *err)
{
    if (!is_finite(e, head->position, packed))
        return tn_fail(err, TARN_EFORMAT, "%s: a stream has a state that is not finite", path);
    memset(stream, 0, tarn_stream_size(e));
    stream->head = *head;
    stream->form = e->form;
    e->method->unpack(e, stream, packed);
    return check_stream(e, stream, path, err);
}

static tarn_stream *stream_in(const tarn_engine *e, const struct tn_bytes *all, size_t i)
{
    return (tarn_stream *)(void *)(all->data + i * tarn_stream_size(e));
}

static tarn_status load_new(const tarn_engine *e, const struct tn_bytes *all, size_t n,
                            const struct tn_safetensors *file, const char *path,
                            tarn_error *err)
{
    const struct tn_safetensor *const tensor = tn_safetensors_find(file, TN_STREAMS_TENSOR);
    const char *from = tensor->data;
    size_t left = tensor->bytes;
    struct tn_stream_head head;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < n && status == TARN_OK; i++) {
        if (left < sizeof head)
            return refuse_bytes(path, tensor->bytes, tensor->bytes - left + sizeof head, err);
        memcpy(&head, from, sizeof head);
        if ((status = check_position(e, head.position, path, err)) != TARN_OK)
            return status;
        const size_t bytes = sizeof head + packed_bytes(e, head.position);

        if (left < bytes)
            return refuse_bytes(path, tensor->bytes, tensor->bytes - left + bytes, err);
        status = unpack_stream(e, stream_in(e, all, i), &head, from + sizeof head, path, err);
        from += bytes;
        left -= bytes;
    }
    return status == TARN_OK && left > 0
               ? refuse_bytes(path, tensor->bytes, tensor->bytes - left, err)
               : status;
}

/* ---- Version 0.1 -------------------------------------------------------- */

/* Bytes of a batch of n streams; false: does not fit. */
static bool batch_bytes(const tarn_engine *e, uint64_t position, size_t n, size_t *all)
{
    bool common;

    *all = 0;
    for (size_t i = 0, bytes; (bytes = e->method->section(e, (size_t)position, i, &common)) > 0;
         i++) {
        if (!common && !tn_size_product(&bytes, (size_t[]){n, bytes}, 2))
            return false;
        if (bytes > SIZE_MAX - *all)
            return false;
        *all += bytes;
    }
    return true;
}

/* The sections of stream b of a batch of n, one after the other. */
static void gather(const tarn_engine *e, unsigned char *to, const unsigned char *batch,
                   uint64_t position, size_t b, size_t n)
{
    bool common;

    for (size_t i = 0, bytes; (bytes = e->method->section(e, (size_t)position, i, &common)) > 0;
         i++) {
        memcpy(to, common ? batch : batch + b * bytes, bytes);
        to += bytes;
        batch += common ? bytes : n * bytes;
    }
}

static tarn_status check_old(const tarn_engine *e, const struct tn_origin *origin,
                             const struct tn_safetensors *file, const char *path,
                             tarn_error *err)
{
    const struct tn_safetensor *const tensor = tn_safetensors_find(file, TN_OLD_STREAMS_TENSOR);
    const struct tn_safetensor *const next = tn_safetensors_find(file, TN_OLD_NEXT_TENSOR);
    const tarn_status status = check_position(e, origin->position, path, err);
    size_t bytes;

    if (status != TARN_OK)
        return status;
    if (!batch_bytes(e, origin->position, origin->streams, &bytes) || tensor->bytes != bytes)
        return refuse_bytes(path, tensor->bytes, bytes, err);
    if (next &&
        (next->dtype != TN_DTYPE_I32 || next->bytes / sizeof(int32_t) != origin->streams))
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has %zu bytes of %s as next symbols of %zu "
                       "streams; expected I32",
                       path, next->bytes, tn_dtype_name(next->dtype), origin->streams);
    return TARN_OK;
}

static tarn_status load_old(const tarn_engine *e, const struct tn_bytes *all,
                            const struct tn_origin *origin, const struct tn_safetensors *file,
                            const char *path, tarn_error *err)
{
    const struct tn_safetensor *const tensor = tn_safetensors_find(file, TN_OLD_STREAMS_TENSOR);
    const struct tn_safetensor *const next = tn_safetensors_find(file, TN_OLD_NEXT_TENSOR);
    struct tn_bytes one = {0};
    tarn_status status = check_old(e, origin, file, path, err);

    if (status != TARN_OK ||
        (status = tn_bytes_allocate(&one, packed_bytes(e, origin->position), err)) != TARN_OK)
        return status;
    for (size_t b = 0; b < origin->streams && status == TARN_OK; b++) {
        struct tn_stream_head head = {.position = origin->position, .number = b};
        int32_t symbol = -1;

        if (next)
            memcpy(&symbol, (const char *)next->data + b * sizeof symbol, sizeof symbol);
        if (next && (status = tn_symbols_check(e->model, &symbol, 1, path, err)) != TARN_OK)
            break;
        head.drawn = symbol + 1;
        gather(e, one.data, tensor->data, origin->position, b, origin->streams);
        status = unpack_stream(e, stream_in(e, all, b), &head, one.data, path, err);
    }
    tn_bytes_free(&one);
    return status;
}

/* ---- Files and bytes ---------------------------------------------------- */

/* Where streams come from: a file, or bytes of the caller's. */
struct source {
    const char *path; /* NULL: bytes */
    const void *bytes;
    size_t size;
};

static const char *shown(const struct source *source)
{
    return source->path ? tn_path_shown(source->path) : "bytes";
}

static tarn_status read_source(struct tn_safetensors *file, const struct source *source,
                               tarn_error *err)
{
    struct tn_bytes copy;
    tarn_status status;

    if (source->path)
        return tn_safetensors_read(file, source->path, err);
    if ((status = tn_bytes_allocate(&copy, source->size, err)) != TARN_OK)
        return status;
    memcpy(copy.data, source->bytes, source->size);
    status = tn_safetensors_parse(file, &copy, shown(source), err);
    tn_bytes_free(&copy);
    return status;
}

static tarn_status check_claims(const tarn_engine *e, const struct tn_bytes *all,
                                const struct tn_origin *origin, const char *path,
                                tarn_error *err)
{
    struct tn_origin found = {.next = true};

    for (size_t i = 0; i < origin->streams; i++)
        tn_origin_note(&found, &stream_in(e, all, i)->head);
    return tn_origin_compare(origin, &found, path, err);
}

/* All is read before anything changes. */
static tarn_status load_file(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                             const struct tn_safetensors *file, const char *path,
                             tarn_error *err)
{
    const size_t size = tarn_stream_size(e);
    struct tn_bytes all = {0};
    struct tn_origin origin;
    size_t bytes;
    tarn_status status;

    if ((status = tn_origin_read(&origin, file, path, err)) != TARN_OK ||
        (status = tn_origin_check(e, &origin, n, path, err)) != TARN_OK)
        return status;
    if (!tn_size_product(&bytes, (size_t[]){n, size}, 2))
        return tn_fail(err, TARN_ENOMEM, "%s: %zu streams do not fit in memory", path, n);
    if ((status = tn_bytes_allocate(&all, bytes, err)) != TARN_OK)
        return status;
    status = tn_safetensors_find(file, TN_STREAMS_TENSOR)
                 ? load_new(e, &all, n, file, path, err)
                 : load_old(e, &all, &origin, file, path, err);
    if (status == TARN_OK)
        status = check_claims(e, &all, &origin, path, err);
    for (size_t i = 0; i < n && status == TARN_OK; i++)
        memcpy(streams[i], stream_in(e, &all, i), size);
    tn_bytes_free(&all);
    return status;
}

static tarn_status load(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                        const struct source *source, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    for (size_t i = 0; i < n; i++)
        if (!streams[i])
            return tn_fail(err, TARN_EINVAL, "streams[%zu] must not be NULL", i);
    if ((status = read_source(&file, source, err)) != TARN_OK)
        return status;
    status = load_file(e, streams, n, &file, shown(source), err);
    tn_safetensors_free(&file);
    return status;
}

tarn_status tarn_streams_load(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                              const char *path, tarn_error *err)
{
    if (!e || !streams || !path)
        return tn_fail(err, TARN_EINVAL, "engine, streams and path must not be NULL");
    return load(e, streams, n, &(struct source){.path = path}, err);
}

tarn_status tarn_streams_unpack(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                                const void *bytes, size_t size, tarn_error *err)
{
    if (!e || !streams || !bytes)
        return tn_fail(err, TARN_EINVAL, "engine, streams and bytes must not be NULL");
    return load(e, streams, n, &(struct source){.bytes = bytes, .size = size}, err);
}

/* ---- Without an engine -------------------------------------------------- */

static tarn_status inspect(tarn_streams_about *about, const struct source *source,
                           tarn_error *err)
{
    struct tn_safetensors file;
    struct tn_origin origin;
    tarn_status status = read_source(&file, source, err);

    if (status != TARN_OK)
        return status;
    status = tn_origin_read(&origin, &file, shown(source), err);
    tn_safetensors_free(&file);
    return status == TARN_OK ? tn_origin_tell(about, &origin, shown(source), err) : status;
}

tarn_status tarn_streams_inspect(tarn_streams_about *about, const char *path, tarn_error *err)
{
    if (!about || !path)
        return tn_fail(err, TARN_EINVAL, "about and path must not be NULL");
    return inspect(about, &(struct source){.path = path}, err);
}

tarn_status tarn_streams_inspect_packed(tarn_streams_about *about, const void *bytes,
                                        size_t size, tarn_error *err)
{
    if (!about || !bytes)
        return tn_fail(err, TARN_EINVAL, "about and bytes must not be NULL");
    return inspect(about, &(struct source){.bytes = bytes, .size = size}, err);
}
