/* SPDX-License-Identifier: MIT */
/* safetensors.c - reading. The header is JSON, see json_read.h; here is what JSON does not
 * know. */
#include "file/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "file/cursor.h"

const char tn_metadata_key[] = "__metadata__";

enum { LENGTH_BYTES = 8 };

/* What is being read, for messages. */
struct reading {
    const char *path;
    size_t data_bytes; /* after the header */
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *tensor, const char *found)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "tensor '%.60s': %s", tensor, found);
}

static tarn_status no_memory(const struct reading *r, size_t count)
{
    return tn_fail_path(r->err, TARN_ENOMEM, r->path, "not enough memory for %zu tensors",
                        count);
}

/* ---- The header as text ------------------------------------------------- */

/* Its bytes, which follow those of the length. */
static tarn_status find_header(size_t *header, const struct tn_bytes *bytes, const char *path,
                               tarn_error *err)
{
    if (bytes->size < LENGTH_BYTES)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "has only %zu bytes; not a safetensors, PyTorch or NumPy file",
                            bytes->size);
    const uint64_t length = tn_little_endian(bytes->data, LENGTH_BYTES);

    if (length > TN_SAFETENSORS_HEADER)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "not a safetensors, PyTorch or NumPy file");
    if (length > bytes->size - LENGTH_BYTES)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "not a safetensors file, or truncated: a header of %ju bytes needs "
                            "more than the %zu that follow",
                            (uintmax_t)length, bytes->size - LENGTH_BYTES);
    *header = (size_t)length;
    return TARN_OK;
}

static tarn_status parse_json(struct tn_json *header, const char *text, size_t length,
                              const struct reading *r)
{
    tarn_error cause;

    if (length == 0 || *text != '{')
        return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                            "not a safetensors file: no JSON header at byte %d", LENGTH_BYTES);
    const tarn_status status = tn_json_parse(header, text, length, &cause);

    return status == TARN_OK
               ? TARN_OK
               : tn_fail_path(r->err, status, r->path, "header, %.100s", cause.text);
}

static tarn_status read_metadata(struct tn_safetensors *s, const struct reading *r)
{
    const struct tn_json_value *const object = tn_json_get(s->header.root, tn_metadata_key);

    if (!object)
        return TARN_OK;
    const struct tn_json_value *key = object + 1;

    if (object->kind != TN_JSON_OBJECT)
        return tn_fail_path(r->err, TARN_EFORMAT, r->path, "%s is not a JSON object",
                            tn_metadata_key);
    s->metadata = calloc(object->size + 1, sizeof *s->metadata);
    if (!s->metadata)
        return no_memory(r, object->size);
    for (; s->entries < object->size; key = tn_json_next(key + 1)) {
        if (key[1].kind != TN_JSON_TEXT)
            return tn_fail_path(r->err, TARN_EFORMAT, r->path, "%s: '%.60s' is not a string",
                                tn_metadata_key, key->text);
        s->metadata[s->entries++] = (struct tn_safetensors_entry){key->text, key[1].text};
    }
    return TARN_OK;
}

/* ---- One tensor --------------------------------------------------------- */

static tarn_status read_dtype(struct tn_safetensor *t, const char *word,
                              const struct reading *r)
{
    for (int i = 0; i < TN_DTYPE_COUNT; i++)
        if (strcmp(word, tn_dtype_name((enum tn_dtype)i)) == 0) {
            t->dtype = (enum tn_dtype)i;
            return TARN_OK;
        }
    return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                        "tensor '%.60s': unknown dtype '%.20s'; expected F32, F16, BF16, F64, "
                        "I64, I32, I16, I8, U8 or BOOL",
                        t->name, word);
}

static tarn_status read_shape(struct tn_safetensor *t, const struct tn_json_value *shape,
                              const struct reading *r)
{
    if (!shape || shape->kind != TN_JSON_ARRAY)
        return refuse(r, t->name, "shape is not an array");
    t->rank = shape->size;
    if (t->rank > TN_SAFETENSOR_RANK)
        return refuse(r, t->name, "shape has more than 8 dimensions");
    const struct tn_json_value *at = shape + 1;

    for (size_t d = 0; d < t->rank; d++, at = tn_json_next(at)) {
        int64_t size;

        if (!tn_json_whole(at, &size) || size < 0 || (uintmax_t)size > SIZE_MAX)
            return refuse(r, t->name, "shape has elements that are not whole numbers from 0");
        t->shape[d] = (size_t)size;
    }
    return TARN_OK;
}

/* Offsets in the file's own order are checked once all are known: see check_cover(). */
static tarn_status read_place(struct tn_safetensor *t, const struct tn_json_value *offsets,
                              const struct reading *r)
{
    int64_t begin, end;

    if (!offsets || offsets->kind != TN_JSON_ARRAY || offsets->size != 2 ||
        !tn_json_whole(offsets + 1, &begin) || !tn_json_whole(offsets + 2, &end))
        return refuse(r, t->name, "data_offsets are not two whole numbers");
    if (begin < 0 || end < begin || (uintmax_t)end > r->data_bytes)
        return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                            "tensor '%.60s': data_offsets are [%jd, %jd]; expected ascending "
                            "offsets up to %zu",
                            t->name, (intmax_t)begin, (intmax_t)end, r->data_bytes);
    if (!tn_safetensor_bytes(&t->bytes, t))
        return refuse(r, t->name, "shape is too large for any file");
    if (t->bytes != (size_t)(end - begin))
        return tn_fail_path(
            r->err, TARN_EFORMAT, r->path,
            "tensor '%.60s': data_offsets span %jd bytes; dtype and shape need %zu", t->name,
            (intmax_t)(end - begin), t->bytes);
    t->begin = (size_t)begin;
    return TARN_OK;
}

/* Its three keys, and nothing else: what is not understood could mean another thing. */
static tarn_status check_keys(const char *name, const struct tn_json_value *about,
                              const struct reading *r)
{
    if (about->kind != TN_JSON_OBJECT)
        return refuse(r, name, "is not a JSON object");
    const char *const unknown = tn_json_unknown(about, "dtype shape data_offsets");

    return unknown ? tn_fail_path(r->err, TARN_EFORMAT, r->path,
                                  "tensor '%.60s': unknown key '%.40s'", name, unknown)
                   : TARN_OK;
}

static tarn_status read_tensor(struct tn_safetensor *t, const char *name,
                               const struct tn_json_value *about, const struct reading *r)
{
    tarn_status status = check_keys(name, about, r);
    const char *const dtype = tn_json_text(about, "dtype");

    *t = (struct tn_safetensor){.name = name};
    if (status != TARN_OK)
        return status;
    if (*name == '\0' || strlen(name) > TN_SAFETENSOR_NAME)
        return refuse(r, name, "its name must have 1 to 512 bytes");
    if (!dtype)
        return refuse(r, name, "dtype is not a string");
    if ((status = read_dtype(t, dtype, r)) != TARN_OK ||
        (status = read_shape(t, tn_json_get(about, "shape"), r)) != TARN_OK)
        return status;
    return read_place(t, tn_json_get(about, "data_offsets"), r);
}

/* ---- All tensors -------------------------------------------------------- */

/* Empty tensors before the one that begins where they stand. */
static int by_place(const void *a, const void *b)
{
    const struct tn_safetensor *const x = a, *const y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static tarn_status check_cover(const struct tn_safetensor *tensors, size_t n,
                               const struct reading *r)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t begin = tensors[i].begin;

        if (begin != at)
            return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                                "tensor '%.60s': data begins at %zu; expected %zu, where the "
                                "previous tensor ends",
                                tensors[i].name, begin, at);
        at += tensors[i].bytes;
    }
    if (at != r->data_bytes)
        return tn_fail_path(
            r->err, TARN_EFORMAT, r->path,
            "the tensors end at byte %zu of the data; expected %zu, the end of the file", at,
            r->data_bytes);
    return TARN_OK;
}

static tarn_status read_tensors(struct tn_safetensor *tensors, size_t *count,
                                const struct tn_json_value *header, const struct reading *r)
{
    const struct tn_json_value *key = header + 1;

    *count = 0;
    for (size_t i = 0; i < header->size; i++, key = tn_json_next(key + 1)) {
        if (strcmp(key->text, tn_metadata_key) == 0)
            continue;
        const tarn_status status = read_tensor(&tensors[*count], key->text, key + 1, r);

        if (status != TARN_OK)
            return status;
        ++*count;
    }
    if (*count > 0)
        qsort(tensors, *count, sizeof *tensors, by_place);
    return check_cover(tensors, *count, r);
}

bool tn_safetensors_index(struct tn_safetensors *s)
{
    bool differ = true;

    for (size_t i = 0; i < s->count; i++)
        s->by_name[i] = &s->tensors[i];
    if (s->count > 0)
        qsort(s->by_name, s->count, sizeof *s->by_name, tn_compare_named);
    for (size_t i = 1; i < s->count && differ; i++)
        differ = tn_compare_named(&s->by_name[i - 1], &s->by_name[i]) != 0;
    return differ;
}

/* ---- Life --------------------------------------------------------------- */

tarn_status tn_safetensors_parse_header(struct tn_safetensors *out, const char *text,
                                        size_t length, size_t data_bytes, const char *name,
                                        tarn_error *err)
{
    const struct reading r = {.path = name, .data_bytes = data_bytes, .err = err};
    tarn_status status;

    *out = (struct tn_safetensors){0};
    if ((status = parse_json(&out->header, text, length, &r)) != TARN_OK ||
        (status = read_metadata(out, &r)) != TARN_OK)
        goto done;
    const size_t most = out->header.root->size + 1; /* never none */

    out->tensors = calloc(most, sizeof *out->tensors);
    out->by_name = calloc(most, sizeof *out->by_name);
    if (!out->tensors || !out->by_name)
        status = no_memory(&r, most);
    else
        status = read_tensors(out->tensors, &out->count, out->header.root, &r);
    if (status == TARN_OK)
        tn_safetensors_index(out); /* keys differ */
done:
    if (status != TARN_OK)
        tn_safetensors_free(out);
    return status;
}

tarn_status tn_safetensors_parse(struct tn_safetensors *out, struct tn_bytes *bytes,
                                 const char *name, tarn_error *err)
{
    size_t length = 0;
    tarn_status status = find_header(&length, bytes, name, err);
    const size_t start = LENGTH_BYTES + length;

    *out = (struct tn_safetensors){0};
    if (status == TARN_OK)
        status = tn_safetensors_parse_header(out, (const char *)bytes->data + LENGTH_BYTES,
                                             length, bytes->size - start, name, err);
    if (status != TARN_OK)
        return status;
    for (size_t i = 0; i < out->count; i++)
        out->tensors[i].data = bytes->data + start + out->tensors[i].begin;
    if ((status = tn_safetensors_verify(out, name, err)) != TARN_OK) {
        tn_safetensors_free(out);
        return status;
    }
    out->bytes = *bytes;
    *bytes = (struct tn_bytes){0};
    return TARN_OK;
}

tarn_status tn_safetensors_read(struct tn_safetensors *out, const char *path, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, SIZE_MAX / 2, err);

    *out = (struct tn_safetensors){0};
    if (status == TARN_OK)
        status = tn_safetensors_parse(out, &bytes, path, err);
    tn_bytes_free(&bytes);
    return status;
}

void tn_safetensors_free(struct tn_safetensors *s)
{
    free(s->tensors);
    free(s->by_name);
    free(s->metadata);
    tn_json_free(&s->header);
    tn_texts_free(&s->texts);
    tn_bytes_free(&s->bytes);
    *s = (struct tn_safetensors){0};
}

/* ---- Questions ---------------------------------------------------------- */

const struct tn_safetensor *tn_safetensors_find(const struct tn_safetensors *s,
                                                const char *name)
{
    const struct tn_safetensor wanted = {.name = name}, *const key = &wanted;
    const struct tn_safetensor *const *const found =
        s->count ? bsearch(&key, s->by_name, s->count, sizeof *s->by_name, tn_compare_named)
                 : NULL;

    return found ? *found : NULL;
}

const char *tn_safetensors_metadata(const struct tn_safetensors *s, const char *key)
{
    for (size_t i = 0; i < s->entries; i++)
        if (strcmp(s->metadata[i].key, key) == 0)
            return s->metadata[i].value;
    return NULL;
}
