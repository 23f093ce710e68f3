/* SPDX-License-Identifier: MIT */
#include "file/tensor_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static tarn_status refuse(const struct tn_tensor_list *list, const char *name, const char *what,
                          tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: tensor '%.60s': %s", tn_path_shown(list->path), name,
                   what);
}

static tarn_status no_memory(const struct tn_tensor_list *list, tarn_error *err)
{
    return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for its tensors",
                   tn_path_shown(list->path));
}

static tarn_status grow(struct tn_tensor_list *list, tarn_error *err)
{
    if (list->count < list->room)
        return TARN_OK;
    const size_t room = tn_max(64, 2 * list->room);
    struct tn_safetensor *const grown = realloc(list->tensors, room * sizeof *grown);

    if (!grown)
        return no_memory(list, err);
    list->tensors = grown;
    list->room = room;
    return TARN_OK;
}

tarn_status tn_tensor_list_add(struct tn_tensor_list *list, const struct tn_safetensor *tensor,
                               tarn_error *err)
{
    struct tn_safetensor copy = *tensor;
    const char *const name = tensor->name;
    const tarn_status status = grow(list, err);

    if (status != TARN_OK)
        return status;
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
        return tn_fail(err, TARN_EFORMAT, "%s: two of its tensors have the same name",
                       tn_path_shown(list->path));
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
