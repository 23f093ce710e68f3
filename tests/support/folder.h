/* SPDX-License-Identifier: MIT */
/* folder.h - a temporary folder for the files of one test. */
#ifndef FOLDER_H
#define FOLDER_H

#include "support/testing.h"

enum { FOLDER_PATH = 512 };

struct folder {
    char path[FOLDER_PATH / 2];
};

struct folder folder_open(void);
struct folder folder_open_in(const char *root);

/* Removes the files in it, and it. Fails if it holds folders. */
void folder_close(struct folder *folder);

/* The path of a name in it; overwritten by the next call but three. */
const char *folder_file(const struct folder *folder, const char *name);

size_t folder_count(const struct folder *folder);

/* Whole files. */
void file_put(const char *path, const void *data, size_t size);
void file_check(const char *path, const void *data, size_t size);

/* The first `from` in the data, which is there, becomes `to`, of the same length. Its place. */
size_t edit_bytes(void *data, size_t size, const char *from, const char *to);

/* Bytes of a safetensors file become those of one without checksums: what is edited then is
 * found by other checks. The place of the key. */
size_t drop_checksums(void *data, size_t size);

#endif
