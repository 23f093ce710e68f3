/* SPDX-License-Identifier: MIT */
#include "file/tensor_list.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static tarn_status refuse(const struct tn_tensor_list *list, const char *name, const char *what,
                          tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: tensor '%.60s': %s", tn_path_shown(list->path), name,
                   what);
}

tarn_status tn_tensor_list_begin(struct tn_tensor_list *list, const char *path, tarn_error *err)
{
    *list = (struct tn_tensor_list){.header = json_object(), .path = path};
    if (list->header && json_object_set_new(list->header, tn_metadata_key, json_object()) == 0)
        return TARN_OK;
    tn_tensor_list_free(list);
    return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for its tensors",
                   tn_path_shown(path));
}

static tarn_status grow(struct tn_tensor_list *list, tarn_error *err)
{
    if (list->count < list->room)
        return TARN_OK;
    const size_t room = tn_max(64, 2 * list->room);
    struct tn_safetensor *const grown = realloc(list->tensors, room * sizeof *grown);

    if (!grown)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for %zu tensors",
                       tn_path_shown(list->path), room);
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
    if (json_object_get(list->header, name))
        return refuse(list, name, "appears twice", err);
    if (!tn_safetensor_bytes(&copy.bytes, tensor))
        return refuse(list, name, "its shape is too large for any file", err);
    if (json_object_set_new(list->header, name, json_true()) != 0)
        return refuse(list, name, "its name is not UTF-8", err);
    copy.name = json_object_iter_key(json_object_iter_at(list->header, name));
    list->tensors[list->count++] = copy;
    return TARN_OK;
}

void tn_tensor_list_note(struct tn_tensor_list *list, const char *key, const char *text,
                         size_t length)
{
    if (!memchr(text, '\0', length))
        json_object_set_new(json_object_get(list->header, tn_metadata_key), key,
                            json_stringn(text, length));
}

tarn_status tn_tensor_list_end(struct tn_tensor_list *list, struct tn_safetensors *out,
                               struct tn_bytes *bytes, tarn_error *err)
{
    const struct tn_safetensor **const names = calloc(list->count + 1, sizeof *names);

    if (!names)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for %zu names",
                       tn_path_shown(list->path), list->count);
    *out = (struct tn_safetensors){.tensors = list->tensors,
                                   .count = list->count,
                                   .by_name = names,
                                   .header = list->header,
                                   .bytes = *bytes};
    tn_safetensors_index(out);
    *bytes = (struct tn_bytes){0};
    *list = (struct tn_tensor_list){0};
    return TARN_OK;
}

void tn_tensor_list_free(struct tn_tensor_list *list)
{
    free(list->tensors);
    json_decref(list->header);
    *list = (struct tn_tensor_list){0};
}
