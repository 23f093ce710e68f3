/* SPDX-License-Identifier: MIT */
/* feature_cache.h - features kept in a folder, a file for each audio file and speed.
 *
 * A file is named by a hash of the audio file's full path, the speed and the version of the
 * features, and contains the size and the time of the audio file that it was made from: where
 * these have changed, or a byte of the entry itself, it is made anew. Entries are replaced as a
 * whole, so that any number of processes may share a folder. */
#ifndef TN_FEATURE_CACHE_H
#define TN_FEATURE_CACHE_H

#include <stdatomic.h>

#include "data/features.h"

struct tn_feature_cache {
    char *folder; /* NULL: nothing is kept */
    atomic_size_t found, made;
    atomic_size_t lost; /* made, but could not be written */
};

/* Makes the folder if it is not there; NULL for none. */
tarn_status tn_feature_cache_open(struct tn_feature_cache *cache, const char *folder,
                                  tarn_error *err);

/* Accepts one that is closed. */
void tn_feature_cache_close(struct tn_feature_cache *cache);

/* As tn_features_read(), which is what it does if there is no entry. Any number of threads may
 * read. An entry that cannot be written is not a failure: it is counted. */
tarn_status tn_feature_cache_read(struct tn_feature_cache *cache, struct tn_frames *frames,
                                  const char *path, double speed, size_t most, tarn_error *err);

#endif
