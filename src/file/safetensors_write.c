/* SPDX-License-Identifier: MIT */
/* safetensors_write.c - the header is made in memory, the tensors go straight to the file, or
 * to the caller's memory. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "file/file_writer.h"
#include "file/json_write.h"
#include "file/safetensors.h"

enum { LENGTH_BYTES = 8 };

/* One tensor of the caller's and where its data goes. */
struct place {
    const struct tn_safetensor *tensor;
    size_t index, bytes, begin;
};

/* ---- Where data goes ---------------------------------------------------- */

static int wide_first(const void *a, const void *b)
{
    const struct place *const x = a, *const y = b;
    const size_t p = tn_dtype_size(x->tensor->dtype), q = tn_dtype_size(y->tensor->dtype);

    if (p != q)
        return p > q ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static tarn_status check_tensor(const struct tn_safetensor *t, tarn_error *err)
{
    const size_t length = t->name ? strlen(t->name) : 0;
    size_t bytes;

    if (length == 0 || length > TN_SAFETENSOR_NAME || strcmp(t->name, tn_metadata_key) == 0)
        return tn_fail(
            err, TARN_EINVAL,
            "tensor '%.60s': not a valid name; it must have 1 to %d bytes and not be %s",
            t->name ? t->name : "", TN_SAFETENSOR_NAME, tn_metadata_key);
    if ((unsigned)t->dtype >= TN_DTYPE_COUNT || t->rank > TN_SAFETENSOR_RANK ||
        !tn_safetensor_bytes(&bytes, t))
        return tn_fail(err, TARN_EINVAL,
                       "tensor '%.60s': its dtype, rank or shape cannot be written", t->name);
    if (!t->data && bytes > 0)
        return tn_fail(err, TARN_EINVAL, "tensor '%.60s': has no data", t->name);
    return tn_is_utf8(t->name)
               ? TARN_OK
               : tn_fail(err, TARN_EINVAL, "tensor '%.60s': its name is not UTF-8", t->name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Equal names are neighbours once they are sorted. */
static tarn_status check_names(const struct tn_safetensor *tensors, size_t n, tarn_error *err)
{
    const char **const names = malloc((n + 1) * sizeof *names);
    tarn_status status = TARN_OK;

    if (!names)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to write %zu tensors", n);
    for (size_t i = 0; i < n; i++)
        names[i] = tensors[i].name;
    if (n > 0)
        qsort(names, n, sizeof *names, by_text);
    for (size_t i = 1; i < n && status == TARN_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = tn_fail(err, TARN_EINVAL, "tensor '%.60s' is given twice", names[i]);
    free(names);
    return status;
}

static tarn_status place_all(struct place *places, const struct tn_safetensor *tensors,
                             size_t n, tarn_error *err)
{
    size_t end = 0;

    for (size_t i = 0; i < n; i++) {
        const tarn_status status = check_tensor(&tensors[i], err);

        if (status != TARN_OK)
            return status;
        places[i] = (struct place){.tensor = &tensors[i], .index = i};
    }
    const tarn_status status = check_names(tensors, n, err);

    if (status != TARN_OK)
        return status;
    if (n > 0)
        qsort(places, n, sizeof *places, wide_first);
    for (size_t i = 0; i < n; i++) {
        tn_safetensor_bytes(&places[i].bytes, places[i].tensor); /* checked above */
        places[i].begin = end;
        if (places[i].bytes > INT64_MAX - end)
            return tn_fail(err, TARN_EINVAL, "tensors: too large for one file");
        end += places[i].bytes;
    }
    return TARN_OK;
}

/* ---- The header --------------------------------------------------------- */

/* The writer of JSON says only that some text is not UTF-8. */
static tarn_status check_text(const char *what, const char *name, const char *text,
                              tarn_error *err)
{
    return tn_is_utf8(text) ? TARN_OK
                            : tn_fail(err, TARN_EINVAL, "%s '%.60s' is not UTF-8", what, name);
}

static tarn_status put_metadata(struct tn_json_writer *w,
                                const struct tn_safetensors_entry *metadata, size_t entries,
                                tarn_error *err)
{
    tn_json_key(w, tn_metadata_key);
    tn_json_open(w, '{');
    for (size_t i = 0; i < entries; i++) {
        tarn_status status;

        if ((status = check_text("metadata", metadata[i].key, metadata[i].key, err)) !=
                TARN_OK ||
            (status = check_text("metadata", metadata[i].key, metadata[i].value, err)) !=
                TARN_OK)
            return status;
        for (size_t before = 0; before < i; before++)
            if (strcmp(metadata[before].key, metadata[i].key) == 0)
                return tn_fail(err, TARN_EINVAL, "metadata '%.60s' is given twice",
                               metadata[i].key);
        tn_json_key(w, metadata[i].key);
        tn_json_put_text(w, metadata[i].value);
    }
    tn_json_close(w, '}');
    return TARN_OK;
}

static void put_tensor(struct tn_json_writer *w, const struct place *place)
{
    const struct tn_safetensor *const t = place->tensor;

    tn_json_key(w, t->name);
    tn_json_open(w, '{');
    tn_json_key(w, "dtype");
    tn_json_put_text(w, tn_dtype_name(t->dtype));
    tn_json_key(w, "shape");
    tn_json_open(w, '[');
    for (size_t d = 0; d < t->rank; d++)
        tn_json_put_whole(w, (int64_t)t->shape[d]);
    tn_json_close(w, ']');
    tn_json_key(w, "data_offsets");
    tn_json_open(w, '[');
    tn_json_put_whole(w, (int64_t)place->begin);
    tn_json_put_whole(w, (int64_t)(place->begin + place->bytes));
    tn_json_close(w, ']');
    tn_json_close(w, '}');
}

static tarn_status make_header(char **text, const struct place *places, size_t n,
                               const struct tn_safetensors_entry *metadata, size_t entries,
                               tarn_error *err)
{
    struct tn_json_writer w = {0};
    tarn_status status = TARN_OK;

    tn_json_open(&w, '{');
    if (entries > 0)
        status = put_metadata(&w, metadata, entries, err);
    for (size_t i = 0; i < n && status == TARN_OK; i++)
        put_tensor(&w, &places[i]);
    tn_json_close(&w, '}');
    if (status == TARN_OK)
        return tn_json_writer_end(&w, text, "the header of tensors", err);
    tn_json_writer_free(&w);
    return status;
}

/* ---- Writing ------------------------------------------------------------ */

/* Where bytes go: a file, or `memory`, of which nothing is written where it is NULL. */
struct sink {
    struct tn_file_writer *writer;
    unsigned char *memory;
    size_t size; /* bytes so far, of memory */
};

static tarn_status put(struct sink *sink, const void *data, size_t bytes, tarn_error *err)
{
    if (sink->writer)
        return tn_file_writer_put(sink->writer, data, bytes, err);
    if (sink->memory && bytes > 0)
        memcpy(sink->memory + sink->size, data, bytes);
    sink->size += bytes;
    return TARN_OK;
}

/* Of the length, the text and the blanks up to a multiple of 64. */
static size_t header_bytes(const char *text)
{
    return tn_round_up(LENGTH_BYTES + strlen(text), TN_ALIGN);
}

static tarn_status put_header(struct sink *sink, const char *text, tarn_error *err)
{
    static const char blanks[TN_ALIGN] = "                                "
                                         "                                ";
    const size_t length = strlen(text);
    const size_t padded = header_bytes(text) - LENGTH_BYTES;
    unsigned char first[LENGTH_BYTES];
    tarn_status status;

    for (size_t i = 0; i < sizeof first; i++)
        first[i] = (unsigned char)((uint64_t)padded >> (8 * i) & 255);
    if ((status = put(sink, first, sizeof first, err)) != TARN_OK ||
        (status = put(sink, text, length, err)) != TARN_OK)
        return status;
    return put(sink, blanks, padded - length, err);
}

/* What is written, in order. */
struct content {
    const char *name; /* of the file, for messages */
    char *text;       /* the header */
    struct place *places;
    size_t n;
    const struct tn_safetensors_entry *metadata;
    size_t entries;
};

static tarn_status put_all(struct sink *sink, const struct content *content, tarn_error *err)
{
    tarn_status status = put_header(sink, content->text, err);

    for (size_t i = 0; i < content->n && status == TARN_OK; i++)
        status = put(sink, content->places[i].tensor->data, content->places[i].bytes, err);
    return status;
}

static void content_clear(struct content *content)
{
    free(content->text);
    free(content->places);
}

/* `name` stands in messages. */
static tarn_status make_content(struct content *content, const char *name,
                                const struct tn_safetensor *tensors, size_t n,
                                const struct tn_safetensors_entry *metadata, size_t entries,
                                tarn_error *err)
{
    tarn_status status;

    *content = (struct content){
        .name = name,
        .n = n,
        .metadata = metadata,
        .entries = entries,
        .places = calloc(n + 1, sizeof *content->places),
    };
    if (!content->places)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to write %zu tensors", n);
    if ((status = place_all(content->places, tensors, n, err)) != TARN_OK ||
        (status = make_header(&content->text, content->places, n, metadata, entries, err)) !=
            TARN_OK)
        return status;
    if (strlen(content->text) > TN_SAFETENSORS_HEADER - TN_ALIGN)
        return tn_fail(err, TARN_EINVAL,
                       "%s: names and metadata need %zu bytes; a header can have at most %d",
                       name, strlen(content->text), TN_SAFETENSORS_HEADER);
    return TARN_OK;
}

/* ---- Reading again ------------------------------------------------------ */

static bool same_tensor(const struct tn_safetensor *found, const struct place *place)
{
    const struct tn_safetensor *const t = place->tensor;

    return found && found->dtype == t->dtype && found->rank == t->rank &&
           memcmp(found->shape, t->shape, t->rank * sizeof *t->shape) == 0 &&
           found->begin == place->begin && found->bytes == place->bytes;
}

static bool says_the_same(const struct tn_safetensors *found, const struct content *content)
{
    bool same = found->count == content->n && found->entries == content->entries;

    for (size_t i = 0; i < content->n && same; i++) {
        const struct place *const place = &content->places[i];

        same = same_tensor(tn_safetensors_find(found, place->tensor->name), place);
    }
    for (size_t i = 0; i < content->entries && same; i++)
        same = strcmp(found->metadata[i].key, content->metadata[i].key) == 0 &&
               strcmp(found->metadata[i].value, content->metadata[i].value) == 0;
    return same;
}

/* What was written is what a reader will find, or it is not there: a header that is wrong makes
 * all of a file unreadable. `size` bytes were written; `head` are the first of them. */
static tarn_status check_written(const struct content *content, const void *head, size_t size,
                                 tarn_error *err)
{
    const size_t bytes = header_bytes(content->text);
    struct tn_safetensors found;
    tarn_error cause = {0};
    tarn_status status =
        tn_safetensors_parse_header(&found, (const char *)head + LENGTH_BYTES,
                                    bytes - LENGTH_BYTES, size - bytes, content->name, &cause);

    if (status == TARN_OK && !says_the_same(&found, content))
        status = TARN_EFORMAT;
    tn_safetensors_free(&found);
    if (status == TARN_OK)
        return TARN_OK;
    return tn_fail(err, status == TARN_ENOMEM ? TARN_ENOMEM : TARN_EIO,
                   "%s: not written: reading its header again failed: %.80s", content->name,
                   *cause.text ? cause.text : "it differs");
}

static tarn_status check_file(struct tn_file_writer *writer, const struct content *content,
                              tarn_error *err)
{
    const size_t bytes = header_bytes(content->text);
    struct tn_bytes head;
    uint64_t size = 0;
    tarn_status status = tn_bytes_take(&head, bytes, err);

    if (status == TARN_OK)
        status = tn_file_writer_read(writer, head.data, bytes, &size, err);
    if (status == TARN_OK)
        status = check_written(content, head.data, (size_t)size, err);
    tn_bytes_free(&head);
    return status;
}

/* ---- Files and memory --------------------------------------------------- */

tarn_status tn_safetensors_write(const char *path, const struct tn_safetensor *tensors,
                                 size_t n, const struct tn_safetensors_entry *metadata,
                                 size_t entries, tarn_error *err)
{
    struct tn_file_writer writer;
    struct content content;
    tarn_status status =
        make_content(&content, tn_path_shown(path), tensors, n, metadata, entries, err);

    if (status == TARN_OK && (status = tn_file_writer_open(&writer, path, err)) == TARN_OK &&
        (status = put_all(&(struct sink){.writer = &writer}, &content, err)) == TARN_OK) {
        if ((status = check_file(&writer, &content, err)) == TARN_OK)
            status = tn_file_writer_commit(&writer, err);
        else
            tn_file_writer_discard(&writer);
    }
    content_clear(&content);
    return status;
}

tarn_status tn_safetensors_pack(void *memory, size_t *size, const struct tn_safetensor *tensors,
                                size_t n, const struct tn_safetensors_entry *metadata,
                                size_t entries, tarn_error *err)
{
    struct sink measured = {0}, sink = {.memory = memory};
    struct content content;
    tarn_status status =
        make_content(&content, "tensors in memory", tensors, n, metadata, entries, err);

    if (status == TARN_OK)
        status = put_all(&measured, &content, err);
    if (status == TARN_OK && memory && *size < measured.size)
        status = tn_fail(err, TARN_EINVAL, "size is %zu; it must be at least %zu", *size,
                         measured.size);
    if (status == TARN_OK && memory && (status = put_all(&sink, &content, err)) == TARN_OK)
        status = check_written(&content, memory, sink.size, err);
    if (status == TARN_OK)
        *size = measured.size;
    content_clear(&content);
    return status;
}
