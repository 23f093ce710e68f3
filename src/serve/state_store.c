/* SPDX-License-Identifier: MIT */
/* state_store.c - a table of names, in the order of their age; what they name is in memory or
 * in FOLDER/ID.state. */
#define _GNU_SOURCE /* flock() and POSIX */
#include "serve/state_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file/file_writer.h"
#include "file/paths.h"

enum { BUCKETS_LEAST = 1024, PATH_ROOM = 4096 };
enum { READER_EXPIRES = 1 }; /* a reader waits for one file at most; savers remove the rest */

static const char ending[] = ".state";

struct entry {
    char id[TN_STATE_ID];
    double created;
    size_t size;
    void *bytes;                   /* NULL: in the file */
    struct entry *next;            /* of the bucket */
    struct entry *older, *younger; /* of all */
};

struct tn_store {
    struct tn_store_desc desc;
    char *folder;
    int lock_file; /* -1: none */
    pthread_mutex_t lock;
    struct entry **buckets;
    size_t bucket_count, count;
    uint64_t bytes;
    struct entry *oldest, *youngest;
};

/* ---- Names -------------------------------------------------------------- */

tarn_status tn_random_id(char id[TN_STATE_ID], tarn_error *err)
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tn_fail(err, TARN_EIO, "the system has no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return TARN_OK;
}

bool tn_is_id(const char *text)
{
    return strlen(text) == TN_STATE_ID - 1 &&
           strspn(text, "0123456789abcdef") == TN_STATE_ID - 1;
}

static bool path_of(const struct tn_store *store, char path[PATH_ROOM], const char *id)
{
    return snprintf(path, PATH_ROOM, "%s/%s%s", store->folder, id, ending) < PATH_ROOM;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- The table; all below hold the lock ---------------------------------- */

/* The names are random bits already. */
static struct entry **bucket_of(const struct tn_store *store, const char *id)
{
    char part[17];

    memcpy(part, id, 16);
    part[16] = '\0';
    return &store->buckets[strtoull(part, NULL, 16) % store->bucket_count];
}

static struct entry *find(const struct tn_store *store, const char *id)
{
    struct entry *entry = *bucket_of(store, id);

    while (entry && strcmp(entry->id, id) != 0)
        entry = entry->next;
    return entry;
}

static void link_in(struct tn_store *store, struct entry *entry)
{
    struct entry **const bucket = bucket_of(store, entry->id);

    entry->next = *bucket;
    *bucket = entry;
    entry->older = store->youngest;
    entry->younger = NULL;
    *(store->youngest ? &store->youngest->younger : &store->oldest) = entry;
    store->youngest = entry;
    store->count++;
    store->bytes += entry->size;
}

static void link_out(struct tn_store *store, struct entry *entry)
{
    struct entry **at = bucket_of(store, entry->id);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    *(entry->older ? &entry->older->younger : &store->oldest) = entry->younger;
    *(entry->younger ? &entry->younger->older : &store->youngest) = entry->older;
    store->count--;
    store->bytes -= entry->size;
}

static bool is_old(const struct tn_store *store, const struct entry *entry)
{
    return store->desc.age > 0.0 && entry->created < now() - store->desc.age;
}

/* Takes out those that are too old, and the oldest if there are more than `most`, but not more
 * than `at_once` of them. */
static struct entry *expire(struct tn_store *store, size_t most, size_t at_once)
{
    struct entry *out = NULL;

    for (; store->oldest && at_once > 0; at_once--) {
        struct entry *const entry = store->oldest;

        if (store->count <= most && !is_old(store, entry))
            break;
        link_out(store, entry);
        entry->next = out;
        out = entry;
    }
    return out;
}

/* Removes what was taken out, without the lock: disks take milliseconds for each file. */
static void drop(const struct tn_store *store, struct entry *entry)
{
    char path[PATH_ROOM];

    for (struct entry *next; entry; entry = next) {
        next = entry->next;
        if (!entry->bytes && store->folder && path_of(store, path, entry->id))
            unlink(path);
        free(entry->bytes);
        free(entry);
    }
}

/* ---- Opening ------------------------------------------------------------ */

static bool is_state(const char *name)
{
    return strlen(name) == TN_STATE_ID - 1 + strlen(ending) &&
           strspn(name, "0123456789abcdef") == TN_STATE_ID - 1 &&
           strcmp(name + TN_STATE_ID - 1, ending) == 0;
}

/* What a killed server was writing. */
static bool is_left_over(const char *name)
{
    const size_t whole = TN_STATE_ID - 1 + strlen(ending);

    return strlen(name) == whole + 4 && strcmp(name + whole, ".tmp") == 0;
}

static int by_age(const void *a, const void *b)
{
    const struct entry *const *const x = a, *const *const y = b;

    return ((*x)->created > (*y)->created) - ((*x)->created < (*y)->created);
}

static struct entry *entry_of_file(const char *path)
{
    struct stat about;
    struct entry *const entry = calloc(1, sizeof *entry);

    if (!entry || stat(path, &about) != 0) {
        free(entry);
        return NULL;
    }
    memcpy(entry->id, strrchr(path, '/') + 1, TN_STATE_ID - 1);
    entry->created = (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec;
    entry->size = (size_t)about.st_size;
    return entry;
}

static tarn_status link_files(struct tn_store *store, const struct tn_paths *paths,
                              tarn_error *err)
{
    struct entry **const entries = calloc(paths->count + 1, sizeof *entries);
    size_t count = 0;

    if (!entries)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu states", paths->count);
    for (size_t i = 0; i < paths->count; i++)
        if ((entries[count] = entry_of_file(paths->path[i])))
            count++;
    qsort(entries, count, sizeof *entries, by_age);
    for (size_t i = 0; i < count; i++)
        link_in(store, entries[i]);
    free(entries);
    return TARN_OK;
}

static tarn_status read_folder(struct tn_store *store, tarn_error *err)
{
    struct tn_paths paths = {0}, left = {0};
    tarn_status status;

    if ((status = tn_paths_in(&left, store->folder, is_left_over, err)) == TARN_OK &&
        (status = tn_paths_in(&paths, store->folder, is_state, err)) == TARN_OK)
        status = link_files(store, &paths, err);
    for (size_t i = 0; i < left.count; i++)
        unlink(left.path[i]);
    tn_paths_free(&paths);
    tn_paths_free(&left);
    return status;
}

static tarn_status lock_folder(struct tn_store *store, tarn_error *err)
{
    char path[PATH_ROOM];

    if (snprintf(path, sizeof path, "%s/lock", store->folder) >= PATH_ROOM - TN_STATE_ID - 16)
        return tn_fail_path(err, TARN_EINVAL, store->folder, "%s", strerror(ENAMETOOLONG));
    store->lock_file = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (store->lock_file < 0)
        return tn_fail_errno(err, path);
    if (flock(store->lock_file, LOCK_EX | LOCK_NB) != 0)
        return tn_fail_path(err, TARN_EIO, store->folder, "is in use by another server");
    return TARN_OK;
}

static tarn_status open_folder(struct tn_store *store, tarn_error *err)
{
    tarn_status status;

    /* Names of files are names of states: nobody else may list them. Whatever this mkdir() did,
     * tn_make_folder() syncs the folder's own name, or says what is wrong. */
    (void)mkdir(store->folder, 0700);
    if ((status = tn_make_folder(store->folder, err)) != TARN_OK ||
        (status = lock_folder(store, err)) != TARN_OK)
        return status;
    return read_folder(store, err);
}

tarn_status tn_store_open(struct tn_store **out, const struct tn_store_desc *desc,
                          tarn_error *err)
{
    struct tn_store *const store = calloc(1, sizeof *store);
    tarn_status status = TARN_OK;

    *out = NULL;
    if (!store)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a store of states");
    store->desc = *desc;
    store->lock_file = -1;
    store->bucket_count = tn_max(BUCKETS_LEAST, tn_min(desc->most, (size_t)1 << 22));
    store->buckets = calloc(store->bucket_count, sizeof(struct entry *));
    store->folder = desc->folder ? strdup(desc->folder) : NULL;
    pthread_mutex_init(&store->lock, NULL);
    if (!store->buckets || (desc->folder && !store->folder))
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for a store of states");
    if (status == TARN_OK && store->folder)
        status = open_folder(store, err);
    if (status == TARN_OK)
        *out = store;
    else
        tn_store_close(store);
    return status;
}

void tn_store_close(struct tn_store *store)
{
    if (!store)
        return;
    for (struct entry *entry = store->oldest, *next; entry; entry = next) {
        next = entry->younger;
        free(entry->bytes);
        free(entry);
    }
    if (store->lock_file >= 0)
        close(store->lock_file);
    pthread_mutex_destroy(&store->lock);
    free(store->buckets);
    free(store->folder);
    free(store);
}

/* ---- Use ---------------------------------------------------------------- */

/* The folder may be older than the server, and open to others; what is in it is not. */
static tarn_status write_private(const char *path, const void *bytes, size_t size,
                                 tarn_error *err)
{
    struct tn_file_writer writer;
    tarn_status status = tn_file_writer_open(&writer, path, err);

    if (status != TARN_OK)
        return status;
    if (fchmod(writer.file, 0600) != 0) {
        status = tn_fail_errno(err, path);
        tn_file_writer_discard(&writer);
        return status;
    }
    status = tn_file_writer_put(&writer, bytes, size, err);
    return status == TARN_OK ? tn_file_writer_commit(&writer, err) : status;
}

static tarn_status keep(const struct tn_store *store, struct entry *entry, const void *bytes,
                        tarn_error *err)
{
    char path[PATH_ROOM];

    if (store->folder)
        return path_of(store, path, entry->id)
                   ? write_private(path, bytes, entry->size, err)
                   : tn_fail(err, TARN_EIO, "the path of the folder of states is too long");
    entry->bytes = malloc(entry->size + 1);
    if (!entry->bytes)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a state of %zu bytes",
                       entry->size);
    memcpy(entry->bytes, bytes, entry->size);
    return TARN_OK;
}

tarn_status tn_store_put(struct tn_store *store, char id[TN_STATE_ID], const void *bytes,
                         size_t size, double *created, tarn_error *err)
{
    struct entry *const entry = calloc(1, sizeof *entry);
    tarn_status status;

    if (!entry)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a state");
    if ((status = tn_random_id(entry->id, err)) != TARN_OK) {
        free(entry);
        return status;
    }
    entry->size = size;
    entry->created = now();
    if ((status = keep(store, entry, bytes, err)) != TARN_OK) {
        free(entry);
        return status;
    }
    memcpy(id, entry->id, TN_STATE_ID);
    if (created)
        *created = entry->created;
    pthread_mutex_lock(&store->lock);
    struct entry *const expired =
        expire(store, store->desc.most > 0 ? store->desc.most - 1 : 0, SIZE_MAX);

    link_in(store, entry);
    pthread_mutex_unlock(&store->lock);
    drop(store, expired);
    return TARN_OK;
}

static tarn_status refuse_unknown(tarn_error *err)
{
    return tn_fail(err, TARN_EUNKNOWN, "there is no such state; it may have expired");
}

static tarn_status copy_of(const struct entry *entry, struct tn_bytes *bytes, tarn_error *err)
{
    const tarn_status status = tn_bytes_allocate(bytes, entry->size, err);

    if (status == TARN_OK)
        memcpy(bytes->data, entry->bytes, entry->size);
    return status;
}

tarn_status tn_store_get(struct tn_store *store, const char *id, struct tn_bytes *bytes,
                         double *created, tarn_error *err)
{
    char path[PATH_ROOM];
    tarn_status status = TARN_OK;
    size_t size = 0;

    *bytes = (struct tn_bytes){0};
    if (!tn_is_id(id))
        return refuse_unknown(err);
    pthread_mutex_lock(&store->lock);
    struct entry *const expired = expire(store, SIZE_MAX, READER_EXPIRES);
    const struct entry *entry = find(store, id);

    if (entry && is_old(store, entry))
        entry = NULL;
    if (!entry)
        status = refuse_unknown(err);
    else if (entry->bytes)
        status = copy_of(entry, bytes, err);
    if (entry)
        size = entry->size;
    if (entry && created)
        *created = entry->created;
    pthread_mutex_unlock(&store->lock);
    if (status == TARN_OK && store->folder && path_of(store, path, id)) {
        status = tn_bytes_read(bytes, path, size, err);
        if (status != TARN_OK && access(path, F_OK) != 0)
            status = refuse_unknown(err); /* removed in between */
    }
    drop(store, expired);
    return status;
}

tarn_status tn_store_remove(struct tn_store *store, const char *id, tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (!tn_is_id(id))
        return refuse_unknown(err);
    pthread_mutex_lock(&store->lock);
    struct entry *const entry = find(store, id);

    if (entry) {
        link_out(store, entry);
        entry->next = NULL;
    } else {
        status = refuse_unknown(err);
    }
    pthread_mutex_unlock(&store->lock);
    drop(store, entry);
    return status;
}

void tn_store_sizes(struct tn_store *store, size_t *count, uint64_t *bytes)
{
    pthread_mutex_lock(&store->lock);
    *count = store->count;
    *bytes = store->bytes;
    pthread_mutex_unlock(&store->lock);
}
