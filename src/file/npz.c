/* SPDX-License-Identifier: MIT */
#include "file/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/cursor.h"
#include "file/tensor_file.h"
#include "file/zip.h"

enum { HEAD = 256, NAME = TN_SAFETENSOR_NAME + 16 };

static const char magic[] = "\x93NUMPY";

static const char *const types[TN_DTYPE_COUNT] = {
    [TN_DTYPE_F32] = "<f4", [TN_DTYPE_F16] = "<f2", [TN_DTYPE_F64] = "<f8",
    [TN_DTYPE_I64] = "<i8", [TN_DTYPE_I32] = "<i4", [TN_DTYPE_I16] = "<i2",
    [TN_DTYPE_I8] = "|i1",  [TN_DTYPE_U8] = "|u1",  [TN_DTYPE_BOOL] = "|b1",
};

/* ---- Reading ------------------------------------------------------------ */

/* The header's text: a dict as Python writes it. */
struct text {
    const char *at, *end;
};

static void skip_blanks(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n'))
        t->at++;
}

static bool takes(struct text *t, const char *word)
{
    const size_t length = strlen(word);

    skip_blanks(t);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length) != 0)
        return false;
    t->at += length;
    return true;
}

static bool take_type(struct text *t, enum tn_dtype *dtype)
{
    char word[8];

    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        snprintf(word, sizeof word, "'%s'", types[i] ? types[i] : "");
        if (types[i] && takes(t, word)) {
            *dtype = (enum tn_dtype)i;
            return true;
        }
    }
    return false;
}

static bool take_count(struct text *t, size_t *count)
{
    const char *from;

    skip_blanks(t);
    *count = 0;
    for (from = t->at; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        const size_t digit = (size_t)(*t->at - '0');

        if (*count > (SIZE_MAX - digit) / 10)
            return false;
        *count = 10 * *count + digit;
    }
    return t->at > from;
}

/* (), (2,) or (2, 3) */
static bool take_shape(struct text *t, struct tn_safetensor *tensor)
{
    if (!takes(t, "("))
        return false;
    for (tensor->rank = 0; !takes(t, ")"); tensor->rank++)
        if (tensor->rank == TN_SAFETENSOR_RANK ||
            !take_count(t, &tensor->shape[tensor->rank]) ||
            (!takes(t, ",") && (t->at == t->end || *t->at != ')')))
            return false;
    return true;
}

/* Its three keys, once each and in any order. */
static bool take_dict(struct text *t, struct tn_safetensor *tensor)
{
    bool type = false, order = false, shape = false;

    if (!takes(t, "{"))
        return false;
    while (!takes(t, "}")) {
        if (!type && takes(t, "'descr':"))
            type = take_type(t, &tensor->dtype);
        else if (!order && takes(t, "'fortran_order':"))
            order = takes(t, "False");
        else if (!shape && takes(t, "'shape':"))
            shape = take_shape(t, tensor);
        else
            return false;
        if (!takes(t, ",") && (t->at == t->end || *t->at != '}'))
            return false;
    }
    skip_blanks(t);
    return type && order && shape && t->at == t->end;
}

/* Version 1 has two bytes of length, 2 and 3 have four. */
static bool read_array(struct tn_safetensor *tensor, const struct tn_zip_entry *entry)
{
    struct tn_cursor c = {.data = entry->data, .size = entry->bytes};
    const unsigned char *const begin = tn_cursor_read(&c, sizeof magic - 1);
    const uint64_t version = tn_cursor_number(&c, 1), minor = tn_cursor_number(&c, 1);
    const size_t length = (size_t)tn_cursor_number(&c, version == 1 ? 2 : 4);
    const char *const from = (const char *)tn_cursor_read(&c, length);
    size_t bytes;

    (void)minor;
    if (c.past_end || memcmp(begin, magic, sizeof magic - 1) != 0 || version < 1 || version > 3)
        return false;
    struct text text = {from, from + length};

    tensor->data = c.data + c.at;
    return take_dict(&text, tensor) && tn_safetensor_bytes(&bytes, tensor) &&
           bytes == tn_cursor_left(&c);
}

/* The name without its end; false: it has another. */
static bool cut_name(char out[NAME], const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);

    if (length <= tail || strcmp(name + length - tail, end) != 0 || length - tail >= NAME)
        return false;
    memcpy(out, name, length - tail);
    out[length - tail] = '\0';
    return true;
}

/* Whether an array is a text of the metadata: `name` loses its end then. */
static bool is_text(char name[NAME], const struct tn_safetensor *tensor)
{
    char whole[NAME];

    memcpy(whole, name, NAME);
    return tensor->dtype == TN_DTYPE_U8 && tensor->rank == 1 && cut_name(name, whole, ".json");
}

static tarn_status add_entry(struct tn_tensor_list *list, const struct tn_zip_entry *entry,
                             const char *path, tarn_error *err)
{
    char name[NAME];
    struct tn_safetensor tensor = {.name = name};

    memset(name, 0, sizeof name);
    if (cut_name(name, entry->name, ".json"))
        return tn_tensor_list_note(list, name, (const char *)entry->data, entry->bytes, err);
    if (!cut_name(name, entry->name, ".npy"))
        return TARN_OK;
    if (!read_array(&tensor, entry))
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "array '%.60s': is not a complete little-endian array in C order",
                            name);
    if (is_text(name, &tensor))
        return tn_tensor_list_note(list, name, tensor.data, tensor.shape[0], err);
    return tn_tensor_list_add(list, &tensor, err);
}

tarn_status tn_npz_parse_zip(struct tn_safetensors *out, struct tn_zip *zip, const char *name,
                             tarn_error *err)
{
    struct tn_tensor_list list = {.path = name};
    tarn_status status = TARN_OK;

    *out = (struct tn_safetensors){0};
    for (size_t i = 0; i < zip->count && status == TARN_OK; i++)
        status = add_entry(&list, &zip->entries[i], name, err);
    if (status == TARN_OK && list.count == 0)
        status = tn_fail_path(
            err, TARN_EFORMAT, name,
            "zip: is neither a PyTorch file (no data.pkl) nor a NumPy file (no .npy)");
    if (status == TARN_OK)
        status = tn_tensor_list_end(&list, out, &zip->bytes, err);
    tn_tensor_list_free(&list);
    if (status == TARN_OK)
        tn_zip_free(zip);
    return status;
}

/* ---- Writing ------------------------------------------------------------ */

struct piece {
    char name[NAME], head[HEAD];
};

/* Magic, version 1.0, length and dict fill a multiple of 64 bytes, so that numbers are aligned
 * as NumPy wants them. The bytes of it. */
static size_t make_head(char head[HEAD], const struct tn_safetensor *tensor)
{
    const size_t before = sizeof magic - 1 + 4;
    size_t used = before;

    memcpy(head, magic, sizeof magic - 1);
    used += (size_t)snprintf(head + used, HEAD - used,
                             "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             types[tensor->dtype]);
    for (size_t d = 0; d < tensor->rank; d++)
        used += (size_t)snprintf(head + used, HEAD - used, "%s%zu%s", d ? " " : "",
                                 tensor->shape[d],
                                 tensor->rank == 1 || d + 1 < tensor->rank ? "," : "");
    used += (size_t)snprintf(head + used, HEAD - used, "), }");
    const size_t all = tn_round_up(used + 1, TN_ALIGN);

    memset(head + used, ' ', all - used);
    head[all - 1] = '\n';
    head[before - 4] = 1;
    head[before - 3] = 0;
    head[before - 2] = (char)((all - before) & 255);
    head[before - 1] = (char)((all - before) >> 8);
    return all;
}

static tarn_status fill(struct tn_zip_piece *out, struct piece *piece,
                        const struct tn_safetensor *tensor, tarn_error *err)
{
    size_t bytes;

    if ((unsigned)tensor->dtype >= TN_DTYPE_COUNT || !types[tensor->dtype] ||
        tensor->rank > TN_SAFETENSOR_RANK || !tn_safetensor_bytes(&bytes, tensor) ||
        strlen(tensor->name) > TN_SAFETENSOR_NAME)
        return tn_fail(
            err, TARN_EINVAL,
            "tensor '%.60s' cannot be written as a NumPy array: name, dtype or shape",
            tensor->name);
    snprintf(piece->name, NAME, "%s.npy", tensor->name);
    *out = (struct tn_zip_piece){.name = piece->name,
                                 .head = piece->head,
                                 .head_bytes = make_head(piece->head, tensor),
                                 .data = tensor->data,
                                 .bytes = bytes};
    return TARN_OK;
}

tarn_status tn_npz_write(const char *path, const struct tn_safetensor *tensors, size_t n,
                         const struct tn_safetensors_entry *metadata, size_t entries,
                         tarn_error *err)
{
    struct tn_zip_piece *const all = calloc(n + entries + 1, sizeof *all);
    struct piece *const pieces = calloc(n + entries + 1, sizeof *pieces);
    tarn_status status = TARN_OK;

    if (!all || !pieces)
        status = tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to write it");
    for (size_t i = 0; i < n && status == TARN_OK; i++)
        status = fill(&all[i], &pieces[i], &tensors[i], err);
    for (size_t i = 0; i < entries && status == TARN_OK; i++) {
        char name[NAME];
        const struct tn_safetensor text = {.name = name,
                                           .dtype = TN_DTYPE_U8,
                                           .rank = 1,
                                           .shape = {strlen(metadata[i].value)},
                                           .data = metadata[i].value};

        snprintf(name, sizeof name, "%.500s.json", metadata[i].key);
        status = fill(&all[n + i], &pieces[n + i], &text, err);
    }
    if (status == TARN_OK)
        status = tn_zip_write(path, all, n + entries, err);
    free(pieces);
    free(all);
    return status;
}
