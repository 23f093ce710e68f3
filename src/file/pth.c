/* SPDX-License-Identifier: MIT */
#include "file/pth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "file/pickle.h"
#include "file/tensor_file.h"
#include "file/zip.h"

enum { DEPTH = 16, NOTED_DEPTH = 2, NAME = TN_SAFETENSOR_NAME + 2 };

struct reading {
    struct tn_pickle pickle;
    const struct tn_zip *storages;
    const char *prefix; /* of their keys, in the names of entries */
    size_t most;        /* bytes of all storages */
    struct tn_tensor_list list;
    int *tensors;    /* of the pickle, in the order of the list */
    size_t gathered; /* bytes of tensors that are not contiguous */
    const char *path;
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *tensor, const char *what)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "tensor '%.60s': %s", tensor, what);
}

/* ---- One tensor --------------------------------------------------------- */

static tarn_status find_storage(const struct tn_zip_entry **entry, const struct reading *r,
                                const struct tn_pickle_storage *storage, const char *name)
{
    const struct tn_pickle_node *const key = &r->pickle.nodes[storage->key];
    char path[2 * TN_ZIP_NAME];
    size_t bytes;

    if (key->as.text.length > TN_ZIP_NAME / 2 ||
        memchr(key->as.text.at, '\0', key->as.text.length))
        return refuse(r, name, "its storage has an invalid key");
    snprintf(path, sizeof path, "%s%.*s", r->prefix, (int)key->as.text.length, key->as.text.at);
    *entry = tn_zip_find(r->storages, path);
    if (!*entry)
        return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                            "tensor '%.60s': storage '%.80s' is missing", name, path);
    if (!tn_size_product(&bytes, (size_t[]){storage->count, tn_dtype_size(storage->dtype)},
                         2) ||
        bytes != (*entry)->bytes)
        return tn_fail_path(
            r->err, TARN_EFORMAT, r->path,
            "tensor '%.60s': its storage has %zu bytes; expected %zu elements of %s", name,
            (*entry)->bytes, storage->count, tn_dtype_name(storage->dtype));
    return TARN_OK;
}

/* Whether offset and strides stay within the storage, whatever they are. */
static bool is_within(const struct tn_pickle_tensor *t, size_t count)
{
    size_t last = t->offset, reach;

    for (size_t d = 0; d < t->rank; d++) {
        if (t->shape[d] == 0)
            return t->offset <= count;
        if (!tn_size_product(&reach, (size_t[]){t->shape[d] - 1, t->stride[d]}, 2) ||
            reach > SIZE_MAX - last)
            return false;
        last += reach;
    }
    return last < count;
}

static bool is_plain(const struct tn_pickle_tensor *t)
{
    size_t stride = 1;

    for (size_t d = t->rank; d-- > 0;) {
        if (t->shape[d] != 1 && t->stride[d] != stride)
            return false;
        stride *= t->shape[d];
    }
    return true;
}

/* What is not contiguous is copied later: all of it together may be as large as the file, or a
 * few numbers could claim to be a large tensor, and few storages many. */
static tarn_status note_gathered(struct reading *r, const struct tn_safetensor *tensor)
{
    size_t bytes;

    if (!tn_safetensor_bytes(&bytes, tensor) || bytes > r->most ||
        r->gathered > r->most - bytes)
        return refuse(r, tensor->name, "its strides expand to more elements than the file has");
    r->gathered += bytes;
    return TARN_OK;
}

static tarn_status add_tensor(struct reading *r, int index, const char *name)
{
    const struct tn_pickle_tensor *const t = &r->pickle.tensors[index];
    const struct tn_pickle_storage *const storage = &r->pickle.nodes[t->storage].as.storage;
    const struct tn_zip_entry *entry = NULL;
    struct tn_safetensor tensor = {.name = name, .dtype = storage->dtype, .rank = t->rank};
    size_t count;
    tarn_status status = find_storage(&entry, r, storage, name);

    if (status != TARN_OK)
        return status;
    memcpy(tensor.shape, t->shape, sizeof tensor.shape);
    if (!tn_safetensor_count(&count, &tensor) || !is_within(t, storage->count))
        return refuse(r, name, "its offset, sizes and strides exceed its storage");
    tensor.data = entry->data + t->offset * tn_dtype_size(storage->dtype);
    if (count > 0 && !is_plain(t) && (status = note_gathered(r, &tensor)) != TARN_OK)
        return status;
    if ((status = tn_tensor_list_add(&r->list, &tensor, r->err)) == TARN_OK)
        r->tensors[r->list.count - 1] = index;
    return status;
}

/* ---- Dicts in dicts ----------------------------------------------------- */

static tarn_status walk(struct reading *r, int node, const char *name, size_t depth);

/* "name.key"; false: the key cannot be in a name. */
static bool name_of(char out[NAME], const struct reading *r, const char *name, int key)
{
    const struct tn_pickle_node *const node = &r->pickle.nodes[key];
    const char *const dot = *name ? "." : "";
    int length;

    if (node->kind == TN_PICKLE_INT)
        length = snprintf(out, NAME, "%s%s%" PRId64, name, dot, node->as.integer);
    else if (node->kind == TN_PICKLE_STRING && node->as.text.length < NAME &&
             !memchr(node->as.text.at, '\0', node->as.text.length))
        length = snprintf(out, NAME, "%s%s%.*s", name, dot, (int)node->as.text.length,
                          node->as.text.at);
    else
        return false;
    return length < NAME;
}

static tarn_status note(struct reading *r, const struct tn_pickle_node *node, const char *name)
{
    char text[256];

    switch (node->kind) {
    case TN_PICKLE_BOOL:
        snprintf(text, sizeof text, "%s", node->as.integer ? "true" : "false");
        break;
    case TN_PICKLE_INT:
        snprintf(text, sizeof text, "%" PRId64, node->as.integer);
        break;
    case TN_PICKLE_FLOAT:
        tn_number_text(text, node->as.number);
        break;
    case TN_PICKLE_STRING:
        snprintf(text, sizeof text, "%.*s", (int)tn_min(node->as.text.length, 255),
                 node->as.text.at);
        break;
    default:
        return TARN_OK;
    }
    return tn_tensor_list_note(&r->list, name, text, strlen(text), r->err);
}

static tarn_status visit(struct reading *r, int node, const char *name, size_t depth)
{
    const struct tn_pickle_node *const found = &r->pickle.nodes[node];

    if (found->kind == TN_PICKLE_TENSOR)
        return add_tensor(r, found->as.tensor, name);
    if (found->kind == TN_PICKLE_DICT || found->kind == TN_PICKLE_LIST)
        return walk(r, node, name, depth + 1);
    return depth < NOTED_DEPTH ? note(r, found, name) : TARN_OK;
}

/* Into a dict or list, unless it was seen: dicts may hold each other. */
static tarn_status walk(struct reading *r, int node, const char *name, size_t depth)
{
    struct tn_pickle_node *const found = &r->pickle.nodes[node];
    const bool is_dict = found->kind == TN_PICKLE_DICT;
    const struct tn_pickle_item *const items = r->pickle.items;
    char inner[NAME];
    tarn_status status = TARN_OK;
    int index = 0;

    if (found->seen)
        return TARN_OK;
    if (depth > DEPTH)
        return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                            "dicts are nested more than %d levels deep", DEPTH);
    found->seen = true;
    for (int item = tn_pickle_first(&r->pickle, node);
         item != TN_PICKLE_END && status == TARN_OK; item = items[item].next, index++) {
        const int key = items[item].node;
        bool named;

        if (is_dict) {
            named = name_of(inner, r, name, key);
            item = items[item].next; /* there is one: a key is followed by its value */
        } else {
            named = snprintf(inner, NAME, "%s%s%d", name, *name ? "." : "", index) < NAME;
        }
        if (named)
            status = visit(r, items[item].node, inner, depth);
    }
    return status;
}

/* ---- Copies ------------------------------------------------------------- */

/* Number by number, in the order of rows. */
static void gather(unsigned char *out, const struct tn_safetensor *tensor,
                   const struct tn_pickle_tensor *t)
{
    const size_t size = tn_dtype_size(tensor->dtype), count = tensor->bytes / size;
    const unsigned char *const from = tensor->data;
    size_t index[TN_SAFETENSOR_RANK] = {0}, at = 0;

    for (size_t i = 0; i < count; i++) {
        memcpy(out + i * size, from + at * size, size);
        for (size_t d = t->rank; d-- > 0;) {
            at += t->stride[d];
            if (++index[d] < t->shape[d])
                break;
            at -= t->stride[d] * t->shape[d];
            index[d] = 0;
        }
    }
}

/* Everything moves into one block, copies after the storages. */
static tarn_status gather_all(struct reading *r, struct tn_bytes *bytes)
{
    struct tn_bytes all;
    size_t used = tn_round_up(bytes->size, TN_ALIGN);
    const tarn_status status = tn_bytes_allocate(&all, used + r->gathered, r->err);

    if (status != TARN_OK)
        return status;
    memcpy(all.data, bytes->data, bytes->size);
    for (size_t i = 0; i < r->list.count; i++) {
        struct tn_safetensor *const tensor = &r->list.tensors[i];
        const struct tn_pickle_tensor *const t = &r->pickle.tensors[r->tensors[i]];
        const size_t offset = (size_t)((const unsigned char *)tensor->data - bytes->data);

        tensor->data = all.data + offset;
        if (tensor->bytes == 0 || is_plain(t))
            continue;
        gather(all.data + used, tensor, t);
        tensor->data = all.data + used;
        used += tensor->bytes;
    }
    tn_bytes_free(bytes);
    *bytes = all;
    return TARN_OK;
}

/* ---- One file ----------------------------------------------------------- */

tarn_status tn_pth_make(struct tn_safetensors *out, struct tn_bytes *bytes,
                        const struct tn_pickle *pickle, const struct tn_zip *storages,
                        const char *prefix, const char *name, tarn_error *err)
{
    const int root = pickle->root;
    struct reading r = {.pickle = *pickle,
                        .storages = storages,
                        .prefix = prefix,
                        .most = bytes->size,
                        .list = {.path = name},
                        .path = name,
                        .err = err};
    tarn_status status;

    /* A list or dict has an item for each tensor that it names. */
    r.tensors = calloc((size_t)pickle->item_count + 1, sizeof *r.tensors);
    if (!r.tensors)
        status = tn_fail_path(err, TARN_ENOMEM, name, "not enough memory for its tensors");
    else
        status =
            visit(&r, root, pickle->nodes[root].kind == TN_PICKLE_TENSOR ? "tensor" : "", 0);
    if (status == TARN_OK && r.gathered > 0)
        status = gather_all(&r, bytes);
    if (status == TARN_OK)
        status = tn_tensor_list_end(&r.list, out, bytes, err);
    tn_tensor_list_free(&r.list);
    free(r.tensors);
    return status;
}

const struct tn_zip_entry *tn_pth_pickle(const struct tn_zip *zip)
{
    static const char end[] = "/data.pkl";

    for (size_t i = 0; i < zip->count; i++) {
        const char *const name = zip->entries[i].name;
        const size_t length = strlen(name), tail = sizeof end - 1;

        if (length > tail && strcmp(name + length - tail, end) == 0)
            return &zip->entries[i];
    }
    return NULL;
}

static tarn_status check_order(const struct tn_zip *zip, const char *folder, size_t length,
                               const char *path, tarn_error *err)
{
    char name[TN_ZIP_NAME + 16];

    snprintf(name, sizeof name, "%.*sbyteorder", (int)length, folder);
    const struct tn_zip_entry *const order = tn_zip_find(zip, name);

    if (order && (order->bytes != 6 || memcmp(order->data, "little", 6) != 0))
        return tn_fail_path(err, TARN_EFORMAT, path, "is not little-endian");
    return TARN_OK;
}

tarn_status tn_pth_parse_zip(struct tn_safetensors *out, struct tn_zip *zip,
                             const struct tn_zip_entry *entry, const char *name,
                             tarn_error *err)
{
    const size_t folder = strlen(entry->name) - strlen("data.pkl");
    struct tn_pickle pickle;
    char prefix[TN_ZIP_NAME + 8];
    tarn_status status;

    *out = (struct tn_safetensors){0};
    if (entry->bytes > TN_PICKLE_BYTES)
        return tn_fail_path(err, TARN_EFORMAT, name,
                            "its pickle has %zu bytes; expected at most %d", entry->bytes,
                            TN_PICKLE_BYTES);
    snprintf(prefix, sizeof prefix, "%.*sdata/", (int)folder, entry->name);
    if ((status = check_order(zip, entry->name, folder, name, err)) != TARN_OK ||
        (status = tn_pickle_read(&pickle, entry->data, entry->bytes, name, err)) != TARN_OK)
        return status;
    /* The pickle points into memory that moves or is replaced: it is freed, not used. */
    if ((status = tn_pth_make(out, &zip->bytes, &pickle, zip, prefix, name, err)) == TARN_OK)
        tn_zip_free(zip);
    tn_pickle_free(&pickle);
    return status;
}
