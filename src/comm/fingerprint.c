/* SPDX-License-Identifier: MIT */
#include "comm/fingerprint.h"

#include <stdlib.h>
#include <string.h>

uint64_t tn_hash(uint64_t hash, const void *bytes, size_t count)
{
    const char *const at = bytes;

    for (size_t i = 0; i < count; i += sizeof hash) {
        uint64_t word = 0;

        memcpy(&word, at + i, tn_min(sizeof word, count - i));
        hash = tn_random_mix(hash + word);
    }
    return tn_random_mix(hash ^ count);
}

uint64_t tn_hash_text(uint64_t hash, const char *text)
{
    return text ? tn_hash(hash, text, strlen(text)) : tn_random_mix(~hash);
}

static tarn_status compare(const tarn_comm *comm, const struct tn_fingerprint *prints,
                           size_t count, const uint64_t *all, tarn_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t rank = 1; rank < comm->size; rank++)
            if (all[rank * count + i] != all[i])
                return tn_fail(err, TARN_EINVAL, "rank %zu has %s than rank 0", rank,
                               prints[i].what);
    return TARN_OK;
}

tarn_status tn_fingerprints_compare(const tarn_comm *comm, const struct tn_fingerprint *prints,
                                    size_t count, tarn_error *err)
{
    if (tn_comm_size(comm) == 1)
        return TARN_OK;
    uint64_t *const all = calloc(comm->size * count, sizeof *all);

    if (!all)
        return tn_fail(err, TARN_ERANK, "not enough memory for %zu ranks", comm->size);
    for (size_t i = 0; i < count; i++)
        all[comm->rank * count + i] = prints[i].hash;
    tarn_status status = tn_comm_gather(comm, all, count * sizeof *all, TN_LONG, err);

    if (status == TARN_OK)
        status = compare(comm, prints, count, all, err);
    free(all);
    return status;
}
