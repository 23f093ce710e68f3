/* SPDX-License-Identifier: MIT */
/* safetensors.c - reading. jansson parses the header and refuses what is no JSON, not UTF-8,
 * has a key twice, a number beyond 64 bits or a zero byte in a text; here is what it cannot
 * know. */
#include "file/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char tn_metadata_key[] = "__metadata__";

enum { LENGTH_BYTES = 8 };

/* What is being read, for messages. */
struct reading {
    const char *path;
    struct tn_bytes bytes;
    size_t start; /* of the data */
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *tensor, const char *found)
{
    return tn_fail(r->err, TARN_EFORMAT, "%s: tensor '%.60s': %s", tn_path_shown(r->path),
                   tensor, found);
}

/* ---- The header as text ------------------------------------------------- */

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;

    for (size_t i = LENGTH_BYTES; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static tarn_status find_header(struct reading *r)
{
    const struct tn_bytes bytes = r->bytes;

    if (bytes.size < LENGTH_BYTES)
        return tn_fail(r->err, TARN_EFORMAT,
                       "%s: has only %zu bytes; not a safetensors, PyTorch or NumPy file",
                       tn_path_shown(r->path), bytes.size);
    const uint64_t length = little_endian(bytes.data);

    if (length > TN_SAFETENSORS_HEADER)
        return tn_fail(r->err, TARN_EFORMAT,
                       "%s: not a safetensors, PyTorch or NumPy file: a header of %ju bytes is "
                       "more than %d",
                       tn_path_shown(r->path), (uintmax_t)length, TN_SAFETENSORS_HEADER);
    if (length > bytes.size - LENGTH_BYTES)
        return tn_fail(r->err, TARN_EFORMAT,
                       "%s: not a safetensors file, or truncated: a header of %ju bytes needs "
                       "more than the %zu that follow",
                       tn_path_shown(r->path), (uintmax_t)length, bytes.size - LENGTH_BYTES);
    if (length == 0 || bytes.data[LENGTH_BYTES] != '{')
        return tn_fail(r->err, TARN_EFORMAT,
                       "%s: not a safetensors file: no JSON header at byte 8",
                       tn_path_shown(r->path));
    r->start = LENGTH_BYTES + (size_t)length;
    return TARN_OK;
}

static tarn_status parse_header(json_t **header, const struct reading *r)
{
    const char *const text = (const char *)r->bytes.data + LENGTH_BYTES;
    json_error_t error;

    *header = json_loadb(text, r->start - LENGTH_BYTES, JSON_REJECT_DUPLICATES, &error);
    if (*header)
        return TARN_OK;
    return tn_fail(r->err,
                   json_error_code(&error) == json_error_out_of_memory ? TARN_ENOMEM
                                                                       : TARN_EFORMAT,
                   "%s: header, byte %d: %s", tn_path_shown(r->path),
                   error.position + LENGTH_BYTES, error.text);
}

static tarn_status check_metadata(const json_t *metadata, const struct reading *r)
{
    const char *key;
    json_t *value;

    if (metadata && !json_is_object(metadata))
        return tn_fail(r->err, TARN_EFORMAT, "%s: %s is not a JSON object",
                       tn_path_shown(r->path), tn_metadata_key);
    json_object_foreach(
        (json_t *)(uintptr_t)metadata, key,
        value) if (!json_is_string(value)) return tn_fail(r->err, TARN_EFORMAT,
                                                          "%s: %s: '%.60s' is not a string",
                                                          tn_path_shown(r->path),
                                                          tn_metadata_key, key);
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
    return tn_fail(r->err, TARN_EFORMAT,
                   "%s: tensor '%.60s': unknown dtype '%.20s'; expected F32, F16, BF16, F64, "
                   "I64, I32, I16, I8, U8 or BOOL",
                   tn_path_shown(r->path), t->name, word);
}

static tarn_status read_shape(struct tn_safetensor *t, const json_t *shape,
                              const struct reading *r)
{
    if (!json_is_array(shape))
        return refuse(r, t->name, "shape is not an array");
    t->rank = json_array_size(shape);
    if (t->rank > TN_SAFETENSOR_RANK)
        return refuse(r, t->name, "shape has more than 8 dimensions");
    for (size_t d = 0; d < t->rank; d++) {
        const json_t *const size = json_array_get(shape, d);

        if (!json_is_integer(size) || json_integer_value(size) < 0 ||
            (uintmax_t)json_integer_value(size) > SIZE_MAX)
            return refuse(r, t->name, "shape has elements that are not whole numbers from 0");
        t->shape[d] = (size_t)json_integer_value(size);
    }
    return TARN_OK;
}

/* Offsets in the file's own order are checked once all are known: see check_cover(). */
static tarn_status read_place(struct tn_safetensor *t, json_int_t begin, json_int_t end,
                              const struct reading *r)
{
    const size_t there = r->bytes.size - r->start;

    if (begin < 0 || end < begin || (uintmax_t)end > there)
        return tn_fail(r->err, TARN_EFORMAT,
                       "%s: tensor '%.60s': data_offsets are [%jd, %jd]; expected ascending "
                       "offsets up to %zu",
                       tn_path_shown(r->path), t->name, (intmax_t)begin, (intmax_t)end, there);
    if (!tn_safetensor_bytes(&t->bytes, t))
        return refuse(r, t->name, "shape is too large for any file");
    if (t->bytes != (size_t)(end - begin))
        return tn_fail(
            r->err, TARN_EFORMAT,
            "%s: tensor '%.60s': data_offsets span %jd bytes; dtype and shape need %zu",
            tn_path_shown(r->path), t->name, (intmax_t)(end - begin), t->bytes);
    t->data = r->bytes.data + r->start + (size_t)begin;
    return TARN_OK;
}

/* The '!' in a format: and nothing else. */
static tarn_status read_tensor(struct tn_safetensor *t, const char *name, json_t *about,
                               const struct reading *r)
{
    const char *dtype = NULL;
    json_t *shape = NULL;
    json_int_t begin = 0, end = 0;
    json_error_t error;
    tarn_status status;

    *t = (struct tn_safetensor){.name = name};
    if (*name == '\0' || strlen(name) > TN_SAFETENSOR_NAME)
        return refuse(r, name, "its name must have 1 to 512 bytes");
    if (json_unpack_ex(about, &error, 0, "{s:s, s:o, s:[I, I!] !}", "dtype", &dtype, "shape",
                       &shape, "data_offsets", &begin, &end) != 0)
        return refuse(r, name, error.text);
    if ((status = read_dtype(t, dtype, r)) != TARN_OK ||
        (status = read_shape(t, shape, r)) != TARN_OK)
        return status;
    return read_place(t, begin, end, r);
}

/* ---- All tensors -------------------------------------------------------- */

/* Empty tensors before the one that begins where they stand. */
static int by_place(const void *a, const void *b)
{
    const struct tn_safetensor *const x = a, *const y = b;
    const uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;

    if (p != q)
        return p < q ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const struct tn_safetensor *const *const x = a, *const *const y = b;

    return strcmp((*x)->name, (*y)->name);
}

static tarn_status check_cover(const struct tn_safetensor *tensors, size_t n,
                               const struct reading *r)
{
    const size_t there = r->bytes.size - r->start;
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        const unsigned char *const data = tensors[i].data;
        const size_t begin = (size_t)(data - r->bytes.data) - r->start;

        if (begin != at)
            return tn_fail(r->err, TARN_EFORMAT,
                           "%s: tensor '%.60s': data begins at %zu; expected %zu, where the "
                           "previous tensor ends",
                           tn_path_shown(r->path), tensors[i].name, begin, at);
        at += tensors[i].bytes;
    }
    if (at != there)
        return tn_fail(
            r->err, TARN_EFORMAT,
            "%s: the tensors end at byte %zu of the data; expected %zu, the end of the file",
            tn_path_shown(r->path), at, there);
    return TARN_OK;
}

static tarn_status read_tensors(struct tn_safetensor *tensors, size_t *count, json_t *header,
                                const struct reading *r)
{
    const char *name;
    json_t *about;

    *count = 0;
    json_object_foreach(header, name, about)
    {
        if (strcmp(name, tn_metadata_key) == 0)
            continue;
        const tarn_status status = read_tensor(&tensors[*count], name, about, r);

        if (status != TARN_OK)
            return status;
        ++*count;
    }
    if (*count > 0)
        qsort(tensors, *count, sizeof *tensors, by_place);
    return check_cover(tensors, *count, r);
}

void tn_safetensors_index(struct tn_safetensors *s)
{
    for (size_t i = 0; i < s->count; i++)
        s->by_name[i] = &s->tensors[i];
    if (s->count > 0)
        qsort(s->by_name, s->count, sizeof *s->by_name, by_name);
}

/* ---- Life --------------------------------------------------------------- */

tarn_status tn_safetensors_parse(struct tn_safetensors *out, struct tn_bytes *bytes,
                                 const char *name, tarn_error *err)
{
    struct reading r = {.path = name, .bytes = *bytes, .err = err};
    struct tn_safetensor *tensors = NULL;
    struct tn_safetensors read = {0};
    tarn_status status;

    *out = read;
    if ((status = find_header(&r)) != TARN_OK ||
        (status = parse_header(&read.header, &r)) != TARN_OK ||
        (status = check_metadata(json_object_get(read.header, tn_metadata_key), &r)) != TARN_OK)
        goto done;
    const size_t most = json_object_size(read.header) + 1; /* never none */

    read.tensors = tensors = calloc(most, sizeof *tensors);
    read.by_name = calloc(most, sizeof *read.by_name);
    if (!tensors || !read.by_name)
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for %zu tensors", most);
    else
        status = read_tensors(tensors, &read.count, read.header, &r);
    if (status != TARN_OK)
        goto done;
    tn_safetensors_index(&read);
    read.bytes = *bytes;
    *bytes = (struct tn_bytes){0};
    *out = read;
    read = (struct tn_safetensors){0};
done:
    tn_safetensors_free(&read);
    return status;
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
    free((void *)(uintptr_t)s->tensors);
    free(s->by_name);
    json_decref(s->header);
    tn_bytes_free(&s->bytes);
    *s = (struct tn_safetensors){0};
}

/* ---- Questions ---------------------------------------------------------- */

const struct tn_safetensor *tn_safetensors_find(const struct tn_safetensors *s,
                                                const char *name)
{
    const struct tn_safetensor wanted = {.name = name}, *const key = &wanted;
    const struct tn_safetensor *const *const found =
        s->count ? bsearch(&key, s->by_name, s->count, sizeof *s->by_name, by_name) : NULL;

    return found ? *found : NULL;
}

const char *tn_safetensors_metadata(const struct tn_safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->header, tn_metadata_key), key));
}
