/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700
#include "support/fuzzing.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void need(bool holds)
{
    if (!holds)
        abort();
}

void need_text(const tarn_error *err)
{
    need(*err->text && memchr(err->text, '\0', sizeof err->text));
}

/* ---- Files -------------------------------------------------------------- */

static char folder[64];

static void remove_folder(void)
{
    DIR *const entries = opendir(folder);
    char path[512];

    for (struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (entries)
        closedir(entries);
    rmdir(folder);
}

const char *input_folder(void)
{
    if (!*folder) {
        strcpy(folder,
               access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuzz_XXXXXX" : "/tmp/fuzz_XXXXXX");
        need(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
    }
    return folder;
}

const char *input_file(const char *name, const uint8_t *data, size_t size)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", input_folder(), name);
    FILE *const file = fopen(path, "wb");

    need(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return path;
}

/* ---- Numbers ------------------------------------------------------------ */

size_t pick(unsigned *state, size_t n)
{
    *state = *state * 1664525u + 1013904223u;
    return n > 0 ? (*state >> 8) % n : 0;
}
