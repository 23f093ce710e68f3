/* SPDX-License-Identifier: MIT */
/* zip.h - a zip archive in memory, and one written to a file, by libarchive.
 *
 * An archive's names are keys here and nothing else: no file is ever made of one. */
#ifndef TN_ZIP_H
#define TN_ZIP_H

#include "file/file_bytes.h"

enum {
    TN_ZIP_NAME = 512,        /* bytes of a name at most */
    TN_ZIP_ENTRIES = 1 << 20, /* likewise */
};

struct tn_zip_entry {
    const char *name;
    const unsigned char *data; /* 64-byte aligned */
    size_t bytes;
};

struct tn_zip {
    struct tn_zip_entry *entries; /* sorted by name, folders left out */
    size_t count;
    char *names;
    struct tn_bytes bytes; /* of all entries */
};

bool tn_is_zip(const struct tn_bytes *bytes);

/* Unpacks everything, if that is `most` bytes at most: the sizes that entries claim decide
 * before anything is unpacked. Refuses names that are absolute, lead upwards or come twice, and
 * checksums that are wrong. `name` is the file, for messages. On failure *out is empty.
 * TARN_EMACHINE: tarn was built without libarchive. */
tarn_status tn_zip_read(struct tn_zip *out, const struct tn_bytes *file, size_t most,
                        const char *name, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_zip_free(struct tn_zip *zip);

/* Entries that were put there by another reader. */
void tn_zip_sort(struct tn_zip *zip);

/* NULL: there is none of that name. */
const struct tn_zip_entry *tn_zip_find(const struct tn_zip *zip, const char *name);

/* A file to be written: some bytes, and more behind them. */
struct tn_zip_piece {
    const char *name;
    const void *head, *data;
    size_t head_bytes, bytes;
};

/* Stored, not compressed. Replaces `path` as a whole or not at all; equal arguments give equal
 * bytes. */
tarn_status tn_zip_write(const char *path, const struct tn_zip_piece *pieces, size_t count,
                         tarn_error *err);

#endif
