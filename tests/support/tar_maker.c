/* SPDX-License-Identifier: MIT */
#include "support/tar_maker.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 512 };

/* The form that POSIX calls ustar. A name of more than 100 bytes is cut at a slash. */
static void put_header(gzFile to, const struct tar_member *member)
{
    char header[BLOCK] = {0};
    const char *name = member->name;
    unsigned sum = 0;

    if (strlen(name) > 100) {
        name = strchr(name + strlen(name) - 101, '/') + 1;
        memcpy(header + 345, member->name, (size_t)(name - 1 - member->name));
    }
    memcpy(header, name, strlen(name));
    snprintf(header + 100, 8, "%07o", 0644u);
    snprintf(header + 124, 12, "%011zo", member->bytes);
    header[156] = member->type ? member->type : '0';
    memcpy(header + 257, "ustar\00000", 8);
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    assert_int_equal(gzwrite(to, header, BLOCK), BLOCK);
}

void tar_make(const char *path, const struct tar_member *members)
{
    static const char zeros[2 * BLOCK];
    gzFile to = gzopen(path, "wb");

    assert_non_null(to);
    for (; members->name; members++) {
        const unsigned bytes = (unsigned)members->bytes;

        put_header(to, members);
        if (bytes > 0)
            assert_int_equal(gzwrite(to, members->data, bytes), bytes);
        if (bytes % BLOCK > 0)
            assert_int_equal(gzwrite(to, zeros, BLOCK - bytes % BLOCK), BLOCK - bytes % BLOCK);
    }
    assert_int_equal(gzwrite(to, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(gzclose(to), Z_OK);
}
