/* SPDX-License-Identifier: MIT */
/* unpack.h - single files out of a tar archive, plain or in gzip. */
#ifndef TN_UNPACK_H
#define TN_UNPACK_H

#include "base/base.h"

/* A member that is wanted, and where it goes, each file as a whole or not at all. The folder of
 * `path` is there. */
struct tn_unpack {
    const char *member;
    const char *path;
    uint64_t bytes;
};

/* All of them. An archive's names are never used as paths, so that nothing is written but what
 * is wanted. Names that need an extension of the format (more than 255 bytes) are not found. */
tarn_status tn_unpack_tar(const char *archive, const struct tn_unpack *wanted, size_t count,
                          tarn_error *err);

#endif
