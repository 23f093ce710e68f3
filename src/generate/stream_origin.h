/* SPDX-License-Identifier: MIT */
/* stream_origin.h - what the metadata of a file of streams says: whose they are. */
#ifndef TN_STREAM_ORIGIN_H
#define TN_STREAM_ORIGIN_H

#include "file/safetensors.h"
#include "generate/engine.h"

/* Metadata and tensors of the files; the last two are of version 0.1. */
#define TN_ORIGIN_KEY "tarn_state"
#define TN_STREAMS_TENSOR "streams"
#define TN_OLD_STREAMS_TENSOR "state"
#define TN_OLD_NEXT_TENSOR "next"

/* Everything that must be the same for the bytes to mean the same, and what can be said of them
 * without an engine. */
struct tn_origin {
    char model[TARN_NAME_SIZE]; /* fingerprint, which JSON's numbers cannot represent */
    char method[TARN_NAME_SIZE];
    size_t streams;    /* how many */
    uint64_t position; /* of the longest */
    bool next;         /* all have a symbol that was drawn */
};

struct tn_origin tn_origin_of(const tarn_engine *engine, tarn_stream *const *streams, size_t n);

/* One more stream that a file has. */
void tn_origin_note(struct tn_origin *origin, const struct tn_stream_head *head);

/* As JSON, which is to be freed. */
tarn_status tn_origin_write(char **json, const struct tn_origin *origin, tarn_error *err);
tarn_status tn_origin_read(struct tn_origin *origin, const struct tn_safetensors *file,
                           const char *path, tarn_error *err);

/* The file says its n streams are this engine's. */
tarn_status tn_origin_check(const tarn_engine *engine, const struct tn_origin *origin, size_t n,
                            const char *path, tarn_error *err);

/* What it says of the streams is what was found in them. */
tarn_status tn_origin_compare(const struct tn_origin *origin, const struct tn_origin *found,
                              const char *path, tarn_error *err);

/* What it says without an engine. */
tarn_status tn_origin_tell(tarn_streams_about *about, const struct tn_origin *origin,
                           const char *path, tarn_error *err);

#endif
