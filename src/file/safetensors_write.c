/* SPDX-License-Identifier: MIT */
/* safetensors_write.c - the header is made in memory, the tensors go straight to the file, or
 * to the caller's memory. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_writer.h"
#include "file/safetensors.h"

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
    return TARN_OK;
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

/* jansson takes UTF-8 only and says no more than that something failed. */
static tarn_status set_new(json_t *object, const char *what, const char *key, json_t *value,
                           tarn_error *err)
{
    if (json_object_get(object, key)) {
        json_decref(value);
        return tn_fail(err, TARN_EINVAL, "%s '%.60s' is given twice", what, key);
    }
    if (json_object_set_new(object, key, value) != 0)
        return tn_fail(err, TARN_EINVAL,
                       "%s '%.60s' is not UTF-8, or there is not enough memory", what, key);
    return TARN_OK;
}

static tarn_status add_metadata(json_t *header, const struct tn_safetensors_entry *metadata,
                                size_t entries, tarn_error *err)
{
    json_t *const object = json_object();
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < entries && status == TARN_OK; i++)
        status =
            set_new(object, "metadata", metadata[i].key, json_string(metadata[i].value), err);
    if (status != TARN_OK || entries == 0)
        json_decref(object);
    else
        status = set_new(header, "header", tn_metadata_key, object, err);
    return status;
}

static json_t *describe(const struct place *place)
{
    const struct tn_safetensor *const t = place->tensor;
    json_t *const shape = json_array();

    for (size_t d = 0; d < t->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)t->shape[d]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tn_dtype_name(t->dtype), "shape", shape,
                     "data_offsets", (json_int_t)place->begin,
                     (json_int_t)(place->begin + place->bytes));
}

static tarn_status make_header(json_t **header, const struct place *places, size_t n,
                               const struct tn_safetensors_entry *metadata, size_t entries,
                               tarn_error *err)
{
    *header = json_object();
    tarn_status status = add_metadata(*header, metadata, entries, err);

    for (size_t i = 0; i < n && status == TARN_OK; i++)
        status = set_new(*header, "tensor", places[i].tensor->name, describe(&places[i]), err);
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

/* Length, text, and blanks up to a multiple of 64. */
static tarn_status put_header(struct sink *sink, const char *text, tarn_error *err)
{
    static const char blanks[TN_ALIGN] = "                                "
                                         "                                ";
    const size_t length = strlen(text);
    const size_t padded = tn_round_up(8 + length, TN_ALIGN) - 8;
    unsigned char first[8];
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
    char *text; /* the header */
    struct place *places;
    size_t n;
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
    json_t *header = NULL;
    tarn_status status;

    *content = (struct content){.n = n, .places = calloc(n + 1, sizeof *content->places)};
    if (!content->places)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to write %zu tensors", n);
    if ((status = place_all(content->places, tensors, n, err)) != TARN_OK ||
        (status = make_header(&header, content->places, n, metadata, entries, err)) != TARN_OK)
        goto done;
    content->text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
    if (!content->text)
        status =
            tn_fail(err, TARN_ENOMEM, "not enough memory for the header of %zu tensors", n);
    else if (strlen(content->text) > TN_SAFETENSORS_HEADER - TN_ALIGN)
        status = tn_fail(err, TARN_EINVAL,
                         "%s: names and metadata need %zu bytes; a header can have at most %d",
                         name, strlen(content->text), TN_SAFETENSORS_HEADER);
done:
    json_decref(header);
    return status;
}

tarn_status tn_safetensors_write(const char *path, const struct tn_safetensor *tensors,
                                 size_t n, const struct tn_safetensors_entry *metadata,
                                 size_t entries, tarn_error *err)
{
    struct tn_file_writer writer;
    struct content content;
    tarn_status status =
        make_content(&content, tn_path_shown(path), tensors, n, metadata, entries, err);

    if (status == TARN_OK && (status = tn_file_writer_open(&writer, path, err)) == TARN_OK &&
        (status = put_all(&(struct sink){.writer = &writer}, &content, err)) == TARN_OK)
        status = tn_file_writer_commit(&writer, err);
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
    if (status == TARN_OK && memory)
        status = put_all(&sink, &content, err);
    if (status == TARN_OK)
        *size = measured.size;
    content_clear(&content);
    return status;
}
