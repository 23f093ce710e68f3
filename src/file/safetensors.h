/* SPDX-License-Identifier: MIT */
/* safetensors.h - named arrays in a file, readable by any safetensors tool.
 *
 *     0        8               8 + length                      end
 *     | length | JSON header   | bytes of all tensors          |
 *
 *     {"__metadata__": {"key": "text", ...},
 *      "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
 *
 * Little-endian throughout; offsets count from the end of the header, end not included. The
 * tensors cover the bytes after the header once each: no gap, no overlap, nothing left over.
 *
 * Files that tarn writes have checksums in the metadata, which the reader verifies:
 *
 *     "tarn_crc32": {"name": "89abcdef", ..., "__metadata__": "01234567"}     as text
 *
 * of the bytes of each tensor, and of the other metadata: key, zero byte, value, zero byte of
 * each pair, sorted by key. Files without this key are read as they are.
 *
 * The reader distrusts every byte. What it accepts is a subset of what the official reader
 * does: a tensor's object holds nothing but its three keys, and the limits below hold. */
#ifndef TN_SAFETENSORS_H
#define TN_SAFETENSORS_H

#include "base/texts.h"
#include "file/file_bytes.h"
#include "file/json_read.h"

enum {
    TN_SAFETENSOR_RANK = 8,            /* dimensions at most */
    TN_SAFETENSOR_NAME = 512,          /* bytes of a name at most, and 1 at least */
    TN_SAFETENSORS_HEADER = 100000000, /* bytes at most: the official reader's limit */
};

extern const char tn_metadata_key[];  /* "__metadata__", which no tensor is called */
extern const char tn_checksums_key[]; /* "tarn_crc32" */

/* The metadata under tn_checksums_key has a checksum for every tensor, as 8 digits. */
enum { TN_CHECKSUM_TEXT = 9 };

enum tn_dtype {
    TN_DTYPE_F32,
    TN_DTYPE_F16,
    TN_DTYPE_BF16,
    TN_DTYPE_F64,
    TN_DTYPE_I64,
    TN_DTYPE_I32,
    TN_DTYPE_I16,
    TN_DTYPE_I8,
    TN_DTYPE_U8,
    TN_DTYPE_BOOL,
    TN_DTYPE_COUNT
};

struct tn_safetensor {
    const char *name;
    enum tn_dtype dtype;
    size_t rank; /* 0: one number */
    size_t shape[TN_SAFETENSOR_RANK];
    const void *data; /* row by row, without alignment of its own */
    size_t bytes;     /* set by the reader; the writer takes it from dtype and shape */
    size_t begin;     /* of the data, from the end of the header; likewise */
};

/* One pair of the metadata. */
struct tn_safetensors_entry {
    const char *key, *value;
};

/* A file in memory. Names, metadata and data point into it. */
struct tn_safetensors {
    struct tn_safetensor *tensors; /* in the order of their data */
    size_t count;
    const struct tn_safetensor **by_name; /* count of them, sorted */
    struct tn_safetensors_entry *metadata;
    size_t entries;
    struct tn_json header; /* names and metadata are in one of these */
    struct tn_texts texts;
    struct tn_bytes bytes;
};

/* ---- Life --------------------------------------------------------------- */

/* On failure *out is empty. */
tarn_status tn_safetensors_read(struct tn_safetensors *out, const char *path, tarn_error *err);

/* The same from memory, which moves into *out if all is well and stays the caller's if not.
 * `name` stands for the path in messages. */
tarn_status tn_safetensors_parse(struct tn_safetensors *out, struct tn_bytes *bytes,
                                 const char *name, tarn_error *err);

/* The header alone, of a file with so many bytes of data: no tensor has its data. */
tarn_status tn_safetensors_parse_header(struct tn_safetensors *out, const char *text,
                                        size_t length, size_t data_bytes, const char *name,
                                        tarn_error *err);

/* Fills by_name, which has room for all tensors. False: two have the same name. */
bool tn_safetensors_index(struct tn_safetensors *s);

/* Leaves it empty; accepts what is empty. */
void tn_safetensors_free(struct tn_safetensors *s);

/* Replaces `path` as a whole or not at all; the header is read again before that. Equal
 * arguments give equal bytes. Tensors stand in the order given, but wide numbers before narrow
 * ones: then each is aligned to its width, since the first begins at a multiple of 64 bytes.
 * TARN_EINVAL: names, shapes or texts that a file cannot hold. */
tarn_status tn_safetensors_write(const char *path, const struct tn_safetensor *tensors,
                                 size_t n, const struct tn_safetensors_entry *metadata,
                                 size_t entries, tarn_error *err);

/* The same bytes into memory with room for *size, which becomes how many they are; memory NULL:
 * only that. */
tarn_status tn_safetensors_pack(void *memory, size_t *size, const struct tn_safetensor *tensors,
                                size_t n, const struct tn_safetensors_entry *metadata,
                                size_t entries, tarn_error *err);

/* ---- Checksums ---------------------------------------------------------- */

/* Of a tensor's bytes, and of all metadata but the checksums; false: no memory. */
void tn_checksum_tensor(char text[TN_CHECKSUM_TEXT], const void *data, size_t bytes);
bool tn_checksum_metadata(char text[TN_CHECKSUM_TEXT],
                          const struct tn_safetensors_entry *metadata, size_t entries);

/* Refuses data that is not what the checksums say, if there are any. */
tarn_status tn_safetensors_verify(const struct tn_safetensors *s, const char *path,
                                  tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

/* NULL: there is none of that name. */
const struct tn_safetensor *tn_safetensors_find(const struct tn_safetensors *s,
                                                const char *name);
const char *tn_safetensors_metadata(const struct tn_safetensors *s, const char *key);

const char *tn_dtype_name(enum tn_dtype dtype); /* "F32", ... */
size_t tn_dtype_size(enum tn_dtype dtype);      /* bytes of one number */

/* The product of the shape, and of the shape and the number's size; false: does not fit. */
bool tn_safetensor_count(size_t *out, const struct tn_safetensor *t);
bool tn_safetensor_bytes(size_t *out, const struct tn_safetensor *t);

/* The numbers as floats, F64 rounded. False, and nothing is written, if they are not floating
 * point numbers. */
bool tn_safetensor_floats(const struct tn_safetensor *t, float *out);

#endif
