/* SPDX-License-Identifier: MIT */
/* data.h - sets of data that are published: what they are, whether they are here, and getting
 * them.
 *
 *     const tarn_data_set *set = tarn_data_set_find("mnist");
 *     tarn_data_fetch(set, "data", NULL, NULL, &err);       // data/mnist/...
 *
 * A file counts as there only if its size and its SHA-256 are those of the table. */
#ifndef TARN_DATA_H
#define TARN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_data_file {
    const char *path; /* below the folder of all sets: "mnist/train-images-idx3-ubyte.gz" */
    uint64_t bytes;
    const char *sha256; /* 64 digits, small letters */
} tarn_data_file;

/* A row of the table, or one of your own. A file comes from address/NAME, where NAME is the
 * last part of its path; or out of the archive, a tar file in gzip, where it has its whole path
 * as its name. */
typedef struct tarn_data_set {
    const char *name;
    const char *about;
    const char *licence;
    const char *address;
    const char *folder;          /* below the folder of all sets, what a task reads */
    tarn_data_file archive;      /* path NULL: none */
    const tarn_data_file *files; /* ended by a NULL path */
} tarn_data_set;

/* Row 0, 1, ...; NULL past the last. */
TARN_API const tarn_data_set *tarn_data_set_at(size_t index);
TARN_API const tarn_data_set *tarn_data_set_find(const char *name); /* NULL: there is none */

typedef enum tarn_data_state {
    TARN_DATA_THERE,   /* was there, and is right */
    TARN_DATA_FETCHED, /* came now */
    TARN_DATA_UNPACKED,
    TARN_DATA_MISSING,
    TARN_DATA_WRONG
} tarn_data_state;

/* What is told on the way. Each function may be NULL. */
typedef struct tarn_data_events {
    void *context;
    /* While a file comes; false ends it. */
    bool (*progress)(void *context, const tarn_data_file *file, uint64_t done);
    /* Once for each file of the set. */
    void (*file)(void *context, const tarn_data_file *file, tarn_data_state state);
} tarn_data_events;

/* Whether this library was built with what fetching needs. */
TARN_API bool tarn_data_can_fetch(void);

/* Gets what is not there. `folder` is the folder of all sets and is made if need be; `from` is
 * another address than the set's (NULL: the set's). A download that was cut is kept as
 * NAME.part, and the next call goes on behind it. A file that is there and right is left alone;
 * one that is wrong is replaced once a right one has come. Proxies are what libcurl finds in
 * the environment. */
TARN_API tarn_status tarn_data_fetch(const tarn_data_set *set, const char *folder,
                                     const char *from, const tarn_data_events *events,
                                     tarn_error *err);

/* Looks at all files of the set; fails with the first that is missing (TARN_EIO) or wrong
 * (TARN_EFORMAT). An archive is not asked for. */
TARN_API tarn_status tarn_data_verify(const tarn_data_set *set, const char *folder,
                                      const tarn_data_events *events, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
