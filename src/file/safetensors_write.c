/* SPDX-License-Identifier: MIT */
/* safetensors_write.c - the header is made in memory, the tensors go straight to the file or to
 * the caller's memory. */
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

    if (length == 0 || length > TN_SAFETENSOR_NAME || !tn_is_utf8(t->name) ||
        strcmp(t->name, tn_metadata_key) == 0)
        return tn_fail(err, TARN_EINVAL,
                       "tensor '%.60s': not a valid name; it must have 1 to %d bytes of UTF-8 "
                       "and not be %s",
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

/* ---- Checksums ---------------------------------------------------------- */

/* free() *text. Without data only its length is right: a checksum is always 8 digits. */
static tarn_status make_checksums(char **text, const struct place *places, size_t n,
                                  const struct tn_safetensors_entry *metadata, size_t entries,
                                  bool has_data, tarn_error *err)
{
    struct tn_json_writer w = {0};
    char sum[TN_CHECKSUM_TEXT];

    *text = NULL;
    if (!tn_checksum_metadata(sum, metadata, entries))
        return tn_fail(err, TARN_ENOMEM, "not enough memory for checksums");
    tn_json_open(&w, NULL, '{');
    for (size_t i = 0; i < n; i++) {
        char of_tensor[TN_CHECKSUM_TEXT];

        tn_checksum_tensor(of_tensor, places[i].tensor->data, has_data ? places[i].bytes : 0);
        tn_json_put_text(&w, places[i].tensor->name, of_tensor);
    }
    tn_json_put_text(&w, tn_metadata_key, sum);
    tn_json_close(&w, '}');
    return tn_json_writer_end(&w, text, "checksums of tensors", err);
}

/* ---- The header --------------------------------------------------------- */

static void put_metadata(struct tn_json_writer *w, const struct tn_safetensors_entry *metadata,
                         size_t entries)
{
    tn_json_open(w, tn_metadata_key, '{');
    for (size_t i = 0; i < entries; i++)
        tn_json_put_text(w, metadata[i].key, metadata[i].value);
    tn_json_close(w, '}');
}

static void put_tensor(struct tn_json_writer *w, const struct place *place)
{
    const struct tn_safetensor *const t = place->tensor;

    tn_json_open(w, t->name, '{');
    tn_json_put_text(w, "dtype", tn_dtype_name(t->dtype));
    tn_json_open(w, "shape", '[');
    for (size_t d = 0; d < t->rank; d++)
        tn_json_put_whole(w, NULL, (int64_t)t->shape[d]);
    tn_json_close(w, ']');
    tn_json_open(w, "data_offsets", '[');
    tn_json_put_whole(w, NULL, (int64_t)place->begin);
    tn_json_put_whole(w, NULL, (int64_t)(place->begin + place->bytes));
    tn_json_close(w, ']');
    tn_json_close(w, '}');
}

/* What is written, in order. */
struct content {
    const char *name;     /* of the file, for messages */
    struct tn_bytes head; /* length, JSON and the blanks up to a multiple of 64 bytes */
    struct place *places;
    size_t n;
    size_t size; /* of all */
};

static tarn_status make_head(struct content *content,
                             const struct tn_safetensors_entry *metadata, size_t entries,
                             tarn_error *err)
{
    struct tn_json_writer w = {0};
    char *text;

    tn_json_open(&w, NULL, '{');
    put_metadata(&w, metadata, entries);
    for (size_t i = 0; i < content->n; i++)
        put_tensor(&w, &content->places[i]);
    tn_json_close(&w, '}');
    tarn_status status = tn_json_writer_end(&w, &text, "names and metadata of tensors", err);
    const size_t length = status == TARN_OK ? strlen(text) : 0;
    const size_t padded = tn_round_up(LENGTH_BYTES + length, TN_ALIGN) - LENGTH_BYTES;

    if (padded > TN_SAFETENSORS_HEADER)
        status = tn_fail(err, TARN_EINVAL,
                         "%s: names and metadata need %zu bytes; a header can have at most %d",
                         content->name, length, TN_SAFETENSORS_HEADER);
    if (status == TARN_OK)
        status = tn_bytes_allocate(&content->head, LENGTH_BYTES + padded, err);
    if (status == TARN_OK) {
        memset(content->head.data, ' ', content->head.size);
        for (size_t i = 0; i < LENGTH_BYTES; i++)
            content->head.data[i] = (unsigned char)((uint64_t)padded >> (8 * i) & 255);
        memcpy(content->head.data + LENGTH_BYTES, text, length);
    }
    free(text);
    return status;
}

static bool same_tensor(const struct tn_safetensor *found, const struct place *place)
{
    const struct tn_safetensor *const t = place->tensor;

    return found && found->dtype == t->dtype && found->rank == t->rank &&
           memcmp(found->shape, t->shape, t->rank * sizeof *t->shape) == 0 &&
           found->begin == place->begin && found->bytes == place->bytes;
}

/* A header that is wrong makes all of a file unreadable, so it is parsed before anything is
 * written. This also refuses names that are given twice. */
static tarn_status check_head(const struct content *content,
                              const struct tn_safetensors_entry *metadata, size_t entries,
                              tarn_error *err)
{
    struct tn_safetensors found;
    tarn_error cause = {0};
    tarn_status status =
        tn_safetensors_parse_header(&found, (const char *)content->head.data + LENGTH_BYTES,
                                    content->head.size - LENGTH_BYTES,
                                    content->size - content->head.size, content->name, &cause);
    bool same = status == TARN_OK && found.count == content->n && found.entries == entries;

    for (size_t i = 0; i < content->n && same; i++) {
        const struct place *const place = &content->places[i];

        same = same_tensor(tn_safetensors_find(&found, place->tensor->name), place);
    }
    for (size_t i = 0; i < entries && same; i++)
        same = strcmp(found.metadata[i].key, metadata[i].key) == 0 &&
               strcmp(found.metadata[i].value, metadata[i].value) == 0;
    tn_safetensors_free(&found);
    if (same)
        return TARN_OK;
    return tn_fail(err, status == TARN_ENOMEM ? TARN_ENOMEM : TARN_EINVAL,
                   "not written: its header cannot be read again: %.150s",
                   *cause.text ? cause.text : content->name);
}

static void content_free(struct content *content)
{
    tn_bytes_free(&content->head);
    free(content->places);
}

/* `name` stands in messages. To be freed also after a failure. */
static tarn_status content_make(struct content *content, const char *name,
                                const struct tn_safetensor *tensors, size_t n,
                                const struct tn_safetensors_entry *metadata, size_t entries,
                                bool has_data, tarn_error *err)
{
    struct tn_safetensors_entry *const all = malloc((entries + 1) * sizeof *all);
    char *checksums = NULL;
    tarn_status status;

    *content = (struct content){
        .name = name, .n = n, .places = calloc(n + 1, sizeof *content->places)};
    if (!content->places || !all) {
        free(all);
        return tn_fail(err, TARN_ENOMEM, "not enough memory to write %zu tensors", n);
    }
    if ((status = place_all(content->places, tensors, n, err)) != TARN_OK ||
        (status = make_checksums(&checksums, content->places, n, metadata, entries, has_data,
                                 err)) != TARN_OK)
        goto done;
    size_t count = 0;

    for (size_t i = 0; i < entries; i++) /* of a file that was read: its checksums are old */
        if (strcmp(metadata[i].key, tn_checksums_key) != 0)
            all[count++] = metadata[i];
    all[count++] = (struct tn_safetensors_entry){tn_checksums_key, checksums};
    if ((status = make_head(content, all, count, err)) != TARN_OK)
        goto done;
    content->size = content->head.size;
    for (size_t i = 0; i < n; i++)
        content->size += content->places[i].bytes;
    status = check_head(content, all, count, err);
done:
    free(checksums);
    free(all);
    return status;
}

/* ---- Files -------------------------------------------------------------- */

static tarn_status put_all(struct tn_file_writer *writer, const struct content *content,
                           tarn_error *err)
{
    tarn_status status =
        tn_file_writer_put(writer, content->head.data, content->head.size, err);

    for (size_t i = 0; i < content->n && status == TARN_OK; i++)
        status = tn_file_writer_put(writer, content->places[i].tensor->data,
                                    content->places[i].bytes, err);
    return status;
}

/* What is in the file is what was written, or it does not replace the one that is there. */
static tarn_status check_file(struct tn_file_writer *writer, const struct content *content,
                              tarn_error *err)
{
    struct tn_bytes head;
    uint64_t size = 0;
    tarn_status status = tn_bytes_allocate(&head, content->head.size, err);

    if (status == TARN_OK)
        status = tn_file_writer_read(writer, head.data, head.size, &size, err);
    if (status == TARN_OK && (size != content->size ||
                              memcmp(head.data, content->head.data, content->head.size) != 0))
        status = tn_fail(err, TARN_EIO, "%s: not written: the file contains something else",
                         content->name);
    tn_bytes_free(&head);
    return status;
}

tarn_status tn_safetensors_write(const char *path, const struct tn_safetensor *tensors,
                                 size_t n, const struct tn_safetensors_entry *metadata,
                                 size_t entries, tarn_error *err)
{
    struct tn_file_writer writer;
    struct content content;
    tarn_status status =
        content_make(&content, tn_path_shown(path), tensors, n, metadata, entries, true, err);

    if (status == TARN_OK && (status = tn_file_writer_open(&writer, path, err)) == TARN_OK &&
        (status = put_all(&writer, &content, err)) == TARN_OK) {
        if ((status = check_file(&writer, &content, err)) == TARN_OK)
            status = tn_file_writer_commit(&writer, err);
        else
            tn_file_writer_discard(&writer);
    }
    content_free(&content);
    return status;
}

/* ---- Memory ------------------------------------------------------------- */

static void copy_all(unsigned char *to, const struct content *content)
{
    memcpy(to, content->head.data, content->head.size);
    to += content->head.size;
    for (size_t i = 0; i < content->n; i++) {
        const struct place *const place = &content->places[i];

        if (place->bytes > 0)
            memcpy(to + place->begin, place->tensor->data, place->bytes);
    }
}

tarn_status tn_safetensors_pack(void *memory, size_t *size, const struct tn_safetensor *tensors,
                                size_t n, const struct tn_safetensors_entry *metadata,
                                size_t entries, tarn_error *err)
{
    struct content content;
    tarn_status status = content_make(&content, "tensors in memory", tensors, n, metadata,
                                      entries, memory != NULL, err);

    if (status == TARN_OK && memory && *size < content.size)
        status = tn_fail(err, TARN_EINVAL, "size is %zu; it must be at least %zu", *size,
                         content.size);
    if (status == TARN_OK && memory)
        copy_all(memory, &content);
    if (status == TARN_OK)
        *size = content.size;
    content_free(&content);
    return status;
}
