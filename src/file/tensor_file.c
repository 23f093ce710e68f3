/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* memmem() */
#include "file/tensor_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "file/npz.h"
#include "file/pth.h"
#include "file/zip.h"

/* torch.save() stores its entries, so that what they hold is less than the file. NumPy may
 * deflate them; numbers that have been learnt barely shrink by that, and what grows 64 times is
 * none. */
enum { NPZ_RATIO = 64, NPZ_LEAST = 1 << 20 };

static size_t npz_most(size_t size)
{
    return size > (SIZE_MAX - NPZ_LEAST) / NPZ_RATIO / 2 ? SIZE_MAX / 2
                                                         : NPZ_RATIO * size + NPZ_LEAST;
}

static bool has_pickle(const struct tn_bytes *bytes)
{
    static const char name[] = "data.pkl"; /* near the beginning: it is the first entry */

    return memmem(bytes->data, tn_min(bytes->size, 1024), name, sizeof name - 1) != NULL;
}

static tarn_status parse_zip(struct tn_safetensors *out, enum tn_tensor_format *format,
                             const struct tn_bytes *bytes, const char *name, tarn_error *err)
{
    const bool torch = has_pickle(bytes);
    struct tn_zip zip;
    tarn_status status =
        tn_zip_read(&zip, bytes, torch ? bytes->size : npz_most(bytes->size), name, err);

    if (status != TARN_OK)
        return status;
    const struct tn_zip_entry *const pickle = tn_pth_pickle(&zip);

    *format = pickle ? TN_FORMAT_PTH : TN_FORMAT_NPZ;
    status = pickle ? tn_pth_parse_zip(out, &zip, pickle, name, err)
                    : tn_npz_parse_zip(out, &zip, name, err);
    tn_zip_free(&zip);
    return status;
}

tarn_status tn_tensor_file_parse(struct tn_safetensors *out, enum tn_tensor_format *format,
                                 struct tn_bytes *bytes, const char *name, tarn_error *err)
{
    tarn_status status;

    *out = (struct tn_safetensors){0};
    if (tn_is_zip(bytes)) {
        status = parse_zip(out, format, bytes, name, err);
        if (status == TARN_OK)
            tn_bytes_free(bytes);
        return status;
    }
    *format = tn_is_old_pth(bytes) ? TN_FORMAT_PTH : TN_FORMAT_SAFETENSORS;
    return *format == TN_FORMAT_PTH ? tn_pth_parse_old(out, bytes, name, err)
                                    : tn_safetensors_parse(out, bytes, name, err);
}

tarn_status tn_tensor_file_read(struct tn_safetensors *out, enum tn_tensor_format *format,
                                const char *path, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, SIZE_MAX / 2, err);

    *out = (struct tn_safetensors){0};
    if (status == TARN_OK)
        status = tn_tensor_file_parse(out, format, &bytes, path, err);
    tn_bytes_free(&bytes);
    return status;
}

/* ---- Lists of tensors ---------------------------------------------------- */

static tarn_status refuse(const struct tn_tensor_list *list, const char *name, const char *what,
                          tarn_error *err)
{
    return tn_fail_path(err, TARN_EFORMAT, list->path, "tensor '%.60s': %s", name, what);
}

static tarn_status no_memory(const struct tn_tensor_list *list, tarn_error *err)
{
    return tn_fail_path(err, TARN_ENOMEM, list->path, "not enough memory for its tensors");
}

tarn_status tn_tensor_list_add(struct tn_tensor_list *list, const struct tn_safetensor *tensor,
                               tarn_error *err)
{
    struct tn_safetensor copy = *tensor;
    const char *const name = tensor->name;
    struct tn_safetensor *const grown =
        tn_grow(list->tensors, &list->room, list->count, sizeof *grown);

    if (!grown)
        return no_memory(list, err);
    list->tensors = grown;
    if (*name == '\0' || strlen(name) > TN_SAFETENSOR_NAME)
        return refuse(list, name, "its name must have 1 to 512 bytes", err);
    if (!tn_safetensor_bytes(&copy.bytes, tensor))
        return refuse(list, name, "its shape is too large for any file", err);
    if (!tn_is_utf8(name))
        return refuse(list, name, "its name is not UTF-8", err);
    copy.name = tn_texts_copy(&list->texts, name, strlen(name));
    if (!copy.name)
        return no_memory(list, err);
    list->tensors[list->count++] = copy;
    return TARN_OK;
}

/* The place of a key, which may be a new one; NULL: there is none left. */
static struct tn_safetensors_entry *note_of(struct tn_tensor_list *list, const char *key)
{
    for (size_t i = 0; i < list->noted; i++)
        if (strcmp(list->notes[i].key, key) == 0)
            return &list->notes[i];
    return list->noted < TN_NOTES_MOST ? &list->notes[list->noted] : NULL;
}

tarn_status tn_tensor_list_note(struct tn_tensor_list *list, const char *key, const char *text,
                                size_t length, tarn_error *err)
{
    if (memchr(text, '\0', length))
        return TARN_OK;
    if (!list->notes)
        list->notes = calloc(TN_NOTES_MOST, sizeof *list->notes);
    const struct tn_safetensors_entry entry = {
        .key = tn_texts_copy(&list->texts, key, strlen(key)),
        .value = tn_texts_copy(&list->texts, text, length),
    };

    if (!list->notes || !entry.key || !entry.value)
        return no_memory(list, err);
    struct tn_safetensors_entry *const place =
        tn_is_utf8(key) && tn_is_utf8(entry.value) ? note_of(list, key) : NULL;

    if (place) {
        list->noted += place == &list->notes[list->noted];
        *place = entry;
    }
    return TARN_OK;
}

tarn_status tn_tensor_list_end(struct tn_tensor_list *list, struct tn_safetensors *out,
                               struct tn_bytes *bytes, tarn_error *err)
{
    struct tn_safetensors made = {
        .tensors = list->tensors,
        .count = list->count,
        .by_name = calloc(list->count + 1, sizeof *made.by_name),
        .metadata = list->notes,
        .entries = list->noted,
        .texts = list->texts,
    };

    if (!made.by_name)
        return no_memory(list, err);
    if (!tn_safetensors_index(&made)) {
        free(made.by_name);
        return tn_fail_path(err, TARN_EFORMAT, list->path,
                            "two of its tensors have the same name");
    }
    made.bytes = *bytes;
    *out = made;
    *bytes = (struct tn_bytes){0};
    *list = (struct tn_tensor_list){0};
    return TARN_OK;
}

void tn_tensor_list_free(struct tn_tensor_list *list)
{
    free(list->tensors);
    free(list->notes);
    tn_texts_free(&list->texts);
    *list = (struct tn_tensor_list){0};
}
