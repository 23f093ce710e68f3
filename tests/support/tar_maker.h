/* SPDX-License-Identifier: MIT */
/* tar_maker.h - tar archives in gzip, byte by byte, for tests. */
#ifndef TAR_MAKER_H
#define TAR_MAKER_H

#include "support/testing.h"

/* A file; or of another type, '5' being a folder and '2' a link. */
struct tar_member {
    const char *name;
    const void *data;
    size_t bytes;
    char type; /* 0: a file */
};

/* Members up to a NULL name, the end behind them. */
void tar_make(const char *path, const struct tar_member *members);

#endif
