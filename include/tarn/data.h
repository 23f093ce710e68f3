/* SPDX-License-Identifier: MIT */
/* data.h - downloading and verifying published data sets, and reading text.
 *
 *     const tarn_data_set *set = tarn_data_set_find("mnist");
 *     tarn_data_fetch(set, "data", NULL, NULL, &err);       // data/mnist/...
 *
 * Every file is verified by its size and its SHA-256. */
#ifndef TARN_DATA_H
#define TARN_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_data_file {
    const char *path; /* relative to the data folder: "mnist/train-images-idx3-ubyte.gz" */
    uint64_t bytes;
    const char *sha256; /* 64 hexadecimal digits, lower case */
} tarn_data_file;

/* A data set: a row of the table, or one of your own. A file is downloaded from address/NAME,
 * where NAME is the last part of its path; or extracted from the archive, a .tar.gz file that
 * contains it under its whole path. */
typedef struct tarn_data_set {
    const char *name;
    const char *about;
    const char *licence;
    const char *address;
    const char *folder;          /* relative to the data folder: what a task reads */
    tarn_data_file archive;      /* path NULL: none */
    const tarn_data_file *files; /* ended by a NULL path */
} tarn_data_set;

/* Row 0, 1, ... of the table; NULL past the last. Or the row of a name; NULL if there is none.
 */
TARN_API const tarn_data_set *tarn_data_set_at(size_t index);
TARN_API const tarn_data_set *tarn_data_set_find(const char *name);

typedef enum tarn_data_state {
    TARN_DATA_THERE,    /* already exists and is correct */
    TARN_DATA_FETCHED,  /* was downloaded */
    TARN_DATA_UNPACKED, /* was extracted from the archive */
    TARN_DATA_MISSING,  /* does not exist */
    TARN_DATA_WRONG     /* has the wrong size or SHA-256 */
} tarn_data_state;

/* Callbacks. Each may be NULL. */
typedef struct tarn_data_events {
    void *context; /* passed to every callback */
    /* During a download, `done` bytes having arrived; return false to cancel it. */
    bool (*progress)(void *context, const tarn_data_file *file, uint64_t done);
    /* Once for each file of the set. */
    void (*file)(void *context, const tarn_data_file *file, tarn_data_state state);
} tarn_data_events;

/* Whether this build can download, that is, has libcurl. */
TARN_API bool tarn_data_can_fetch(void);

/* Downloads the files of a set that are missing or wrong. `folder` is the data folder of all
 * sets, and is created if it does not exist; `from` replaces the address of the set (NULL: the
 * set's own). An interrupted download is kept as NAME.part and resumed by the next call.
 * Correct files are left alone; a wrong one is replaced once its download is complete and
 * verified. libcurl takes proxies from the environment. */
TARN_API tarn_status tarn_data_fetch(const tarn_data_set *set, const char *folder,
                                     const char *from, const tarn_data_events *events,
                                     tarn_error *err);

/* Verifies all files of a set, without network. Fails with the first file that is missing
 * (TARN_EIO) or wrong (TARN_EFORMAT). The archive itself need not exist. */
TARN_API tarn_status tarn_data_verify(const tarn_data_set *set, const char *folder,
                                      const tarn_data_events *events, tarn_error *err);

/* ---- Reading text ------------------------------------------------------- */

/* Reads a file, or the text files of a folder as task "text" does: sorted by path, separated by
 * newlines, without files that contain a zero byte. *text becomes *size bytes, to be freed with
 * tarn_text_free(). */
TARN_API tarn_status tarn_text_read(unsigned char **text, size_t *size, const char *path,
                                    tarn_error *err);
TARN_API void tarn_text_free(unsigned char *text); /* accepts NULL */

#ifdef __cplusplus
}
#endif
#endif
