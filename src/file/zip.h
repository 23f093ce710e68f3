/* SPDX-License-Identifier: MIT */
/* zip.h - a zip archive in memory, and one written to a file.
 *
 *     local header, NAME, data    for each entry
 *     central header, NAME        for each entry: sizes, checksum, where the local header is
 *     end                         where the central headers are; at the end of the file
 *
 * Numbers are little-endian. Sizes and places beyond 32 bits are in an extra field of a header
 * and in a second end record before the end (zip64). Data is stored or deflated.
 *
 * The names of an archive are keys here and nothing else: no file is ever named by one. */
#ifndef TN_ZIP_H
#define TN_ZIP_H

#include "base/texts.h"
#include "file/file_bytes.h"

enum {
    TN_ZIP_NAME = 512,        /* bytes of a name at most */
    TN_ZIP_ENTRIES = 1 << 20, /* likewise */
};

/* The records of the format. */
enum {
    TN_ZIP_LOCAL = 0x04034b50,
    TN_ZIP_CENTRAL = 0x02014b50,
    TN_ZIP_END = 0x06054b50,
    TN_ZIP_END_64 = 0x06064b50,
    TN_ZIP_LOCATOR_64 = 0x07064b50,
    TN_ZIP_EXTRA_64 = 1, /* kind of an extra field */
    TN_ZIP_CENTRAL_BYTES = 46,
    TN_ZIP_END_BYTES = 22,
    TN_ZIP_END_64_BYTES = 56,
    TN_ZIP_LOCATOR_64_BYTES = 20,
    TN_ZIP_ENCRYPTED = 1, /* flags of an entry */
    TN_ZIP_UTF8 = 1 << 11,
    TN_ZIP_STORED = 0, /* methods */
    TN_ZIP_DEFLATED = 8,
};

struct tn_zip_entry {
    const char *name;
    const unsigned char *data; /* 64-byte aligned */
    size_t bytes;
};

struct tn_zip {
    struct tn_zip_entry *entries; /* sorted by name, folders left out */
    size_t count;
    struct tn_texts names;
    struct tn_bytes bytes; /* of all entries */
};

bool tn_is_zip(const struct tn_bytes *bytes);

/* Unpacks everything, if that is `most` bytes at most: the sizes that entries claim decide
 * before anything is unpacked. Refuses names that are absolute, lead upwards or come twice,
 * links, and checksums that are wrong. `name` is the file, for messages. On failure *out is
 * empty. */
tarn_status tn_zip_read(struct tn_zip *out, const struct tn_bytes *file, size_t most,
                        const char *name, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_zip_free(struct tn_zip *zip);

/* Entries that were put there by another reader. */
void tn_zip_sort(struct tn_zip *zip);

/* NULL: there is none of that name. */
const struct tn_zip_entry *tn_zip_find(const struct tn_zip *zip, const char *name);

/* A file to be written: some bytes, and more after them. */
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
