/* SPDX-License-Identifier: MIT */
/* fingerprint.h - whether all processes of a run have the same program, settings and data. */
#ifndef TN_FINGERPRINT_H
#define TN_FINGERPRINT_H

#include "comm/transfer.h"

/* A hash of bytes, and of `hash`, which those before them gave. */
uint64_t tn_hash(uint64_t hash, const void *bytes, size_t count);
uint64_t tn_hash_text(uint64_t hash, const char *text);

/* Of the program or library that this function is in. */
uint64_t tn_hash_build(uint64_t hash);

/* A hash that all processes must have in common. */
struct tn_fingerprint {
    const char *what; /* "rank 1 has WHAT than rank 0" */
    uint64_t hash;
};

/* Refuses, in every process, the first of `count` that differ between two. */
tarn_status tn_fingerprints_compare(const tarn_comm *comm, const struct tn_fingerprint *prints,
                                    size_t count, tarn_error *err);

#endif
