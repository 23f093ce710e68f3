/* SPDX-License-Identifier: MIT */
/* download.h - a file from far away, of which size and checksum are known before.
 *
 * It comes to PATH.part, where an interrupted download continues later, and becomes PATH once
 * it is whole and its checksum right. Nothing else is ever done to PATH. */
#ifndef TN_DOWNLOAD_H
#define TN_DOWNLOAD_H

#include "base/base.h"

enum { TN_SHA256_TEXT = 65 }; /* 64 digits, small letters, and a zero */

tarn_status tn_sha256_file(char sum[TN_SHA256_TEXT], const char *path, tarn_error *err);

struct tn_download {
    const char *url;    /* http or https */
    const char *path;   /* in a folder that is there */
    const char *sha256; /* 64 digits, small letters */
    uint64_t bytes;

    /* Told how many bytes are there; false ends it. NULL: nobody is. */
    bool (*progress)(void *context, uint64_t done);
    void *context;

    size_t patience; /* seconds that a server may be too slow for; 0: 60 */
};

/* Whether this build can download at all. */
bool tn_download_possible(void);

/* A server that cannot continue in the middle is asked for all; an interrupted connection is
 * made again, as long as each brings something. One that is slower than 1000 bytes per second
 * for as long as there is patience is given up. TARN_EFORMAT: what came is not what was
 * expected, and PATH.part is removed. Proxies are what libcurl finds in the environment. */
tarn_status tn_download(const struct tn_download *download, tarn_error *err);

#endif
