/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "file/sha256.h"

#include <sys/types.h>

#include <sha2.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"

enum { BLOCK = 1 << 20 };

tarn_status tn_sha256_file(char sum[TN_SHA256_TEXT], const char *path, tarn_error *err)
{
    FILE *const file = fopen(path, "rb");
    unsigned char *const block = malloc(BLOCK);
    tarn_status status = TARN_OK;
    SHA2_CTX hash;

    SHA256Init(&hash);
    if (!file)
        status = tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(path), strerror(errno));
    else if (!block)
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for %d bytes", BLOCK);
    for (size_t got = 1; status == TARN_OK && got > 0;) {
        got = fread(block, 1, BLOCK, file);
        SHA256Update(&hash, block, got);
    }
    if (status == TARN_OK && ferror(file))
        status = tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(path), strerror(errno));
    SHA256End(&hash, sum);
    free(block);
    if (file)
        fclose(file);
    return status;
}
