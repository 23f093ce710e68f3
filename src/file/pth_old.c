/* SPDX-License-Identifier: MIT */
/* pth_old.c - what torch.save() wrote before 1.6: several pickles, then the storages. */
#include <stdlib.h>
#include <string.h>

#include "file/cursor.h"
#include "file/pickle.h"
#include "file/pth.h"
#include "file/zip.h"

/* The pickles of 0x1950a86a20f9469cfc6c and of version 1001. */
static const unsigned char begin[] = {0x80, 2,    0x8a, 10,   0x6c, 0xfc, 0x9c,
                                      0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19,
                                      '.',  0x80, 2,    'M',  0xe9, 3,    '.'};

enum { MAGIC = 15, KEY = 64 };

/* A storage by its key, in the pickle's bytes. */
struct known {
    const char *key;
    size_t length;
    enum tn_dtype dtype;
};

struct reading {
    struct tn_cursor in;
    struct tn_pickle system, object, keys;
    struct known *known;
    size_t known_count;
    struct tn_zip storages; /* names and entries only */
    const char *path;
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *what)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "byte %zu: %s", r->in.at, what);
}

static tarn_status no_memory(const struct reading *r)
{
    return tn_fail_path(r->err, TARN_ENOMEM, r->path, "not enough memory for its storages");
}

bool tn_is_old_pth(const struct tn_bytes *bytes)
{
    return bytes->size >= MAGIC && memcmp(bytes->data, begin, MAGIC) == 0;
}

/* ---- The pickles -------------------------------------------------------- */

static tarn_status read_pickle(struct tn_pickle *pickle, struct reading *r)
{
    const tarn_status status =
        tn_pickle_read(pickle, r->in.data + r->in.at, tn_cursor_left(&r->in), r->path, r->err);

    tn_cursor_read(&r->in, pickle->bytes);
    return status;
}

static tarn_status check_system(const struct reading *r)
{
    const struct tn_pickle *const system = &r->system;
    const struct tn_pickle_item *const items = system->items;
    int item = tn_pickle_first(system, system->root);

    while (item != TN_PICKLE_END && items[item].next != TN_PICKLE_END) {
        const struct tn_pickle_node *const value = &system->nodes[items[items[item].next].node];

        if (tn_pickle_is_text(system, items[item].node, "little_endian") &&
            value->kind == TN_PICKLE_BOOL && value->as.integer)
            return TARN_OK;
        item = items[items[item].next].next;
    }
    return refuse(r, "is not marked as little-endian");
}

/* ---- Storages ----------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct known *const x = a, *const y = b;
    const int order = memcmp(x->key, y->key, tn_min(x->length, y->length));

    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* A storage that the pickle names twice is named alike, or its size does not fit later. */
static tarn_status list_known(struct reading *r)
{
    const struct tn_pickle *const p = &r->object;

    r->known = calloc((size_t)p->node_count + 1, sizeof *r->known);
    if (!r->known)
        return no_memory(r);
    for (int i = 0; i < p->node_count; i++)
        if (p->nodes[i].kind == TN_PICKLE_STORAGE) {
            const struct tn_pickle_node *const key = &p->nodes[p->nodes[i].as.storage.key];

            r->known[r->known_count++] = (struct known){key->as.text.at, key->as.text.length,
                                                        p->nodes[i].as.storage.dtype};
        }
    qsort(r->known, r->known_count, sizeof *r->known, by_key);
    return TARN_OK;
}

/* The count, then the numbers. */
static tarn_status read_storage(struct reading *r, const struct tn_pickle_node *key)
{
    const struct known wanted = {key->as.text.at, key->as.text.length, TN_DTYPE_F32};
    const struct known *const known =
        key->kind == TN_PICKLE_STRING
            ? bsearch(&wanted, r->known, r->known_count, sizeof *r->known, by_key)
            : NULL;

    if (!known || wanted.length >= KEY || memchr(wanted.key, '\0', wanted.length))
        return refuse(r, "a storage belongs to no tensor");
    const uint64_t count = tn_cursor_number(&r->in, 8);
    const size_t size = tn_dtype_size(known->dtype);

    if (r->in.past_end || count > tn_cursor_left(&r->in) / size)
        return refuse(r, "a storage extends past the end of the file");
    const char *const name = tn_texts_copy(&r->storages.names, wanted.key, wanted.length);

    if (!name)
        return no_memory(r);
    r->storages.entries[r->storages.count++] = (struct tn_zip_entry){
        name, tn_cursor_read(&r->in, (size_t)count * size), (size_t)count * size};
    return TARN_OK;
}

static tarn_status read_storages(struct reading *r)
{
    const struct tn_pickle_node *const list = &r->keys.nodes[r->keys.root];
    const struct tn_pickle_item *const items = r->keys.items;
    tarn_status status = TARN_OK;

    if (list->kind != TN_PICKLE_LIST)
        return refuse(r, "the storage keys are not a list");
    r->storages.entries = calloc((size_t)list->as.items.count + 1, sizeof *r->storages.entries);
    if (!r->storages.entries)
        return no_memory(r);
    for (int item = list->as.items.first; item != TN_PICKLE_END && status == TARN_OK;
         item = items[item].next)
        status = read_storage(r, &r->keys.nodes[items[item].node]);
    if (status == TARN_OK && tn_cursor_left(&r->in) > 0)
        return refuse(r, "the file continues after its last storage");
    if (status == TARN_OK)
        tn_zip_sort(&r->storages);
    return status;
}

/* ---- One file ----------------------------------------------------------- */

tarn_status tn_pth_parse_old(struct tn_safetensors *out, struct tn_bytes *bytes,
                             const char *name, tarn_error *err)
{
    struct reading r = {.in = {.data = bytes->data, .size = bytes->size, .at = sizeof begin},
                        .path = name,
                        .err = err};
    tarn_status status;

    *out = (struct tn_safetensors){0};
    if (bytes->size < sizeof begin || memcmp(bytes->data, begin, sizeof begin) != 0)
        return tn_fail_path(err, TARN_EFORMAT, name,
                            "begins like a PyTorch file, but is not one");
    if ((status = read_pickle(&r.system, &r)) == TARN_OK &&
        (status = check_system(&r)) == TARN_OK &&
        (status = read_pickle(&r.object, &r)) == TARN_OK &&
        (status = read_pickle(&r.keys, &r)) == TARN_OK &&
        (status = list_known(&r)) == TARN_OK && (status = read_storages(&r)) == TARN_OK)
        status = tn_pth_make(out, bytes, &r.object, &r.storages, "", name, err);
    tn_zip_free(&r.storages);
    free(r.known);
    tn_pickle_free(&r.system);
    tn_pickle_free(&r.object);
    tn_pickle_free(&r.keys);
    return status;
}
