/* SPDX-License-Identifier: MIT */
#include "support/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder folder_open_in(const char *root)
{
    struct folder folder;

    snprintf(folder.path, sizeof folder.path, "%s/tarn_test_XXXXXX", root);
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

struct folder folder_open(void)
{
    const char *const root = getenv("TMPDIR");

    return folder_open_in(root ? root : "/tmp");
}

const char *folder_file(const struct folder *folder, const char *name)
{
    static char paths[4][FOLDER_PATH];
    static size_t next;
    char *const path = paths[next++ % 4];

    snprintf(path, FOLDER_PATH, "%s/%s", folder->path, name);
    return path;
}

static size_t visit(const struct folder *folder, bool removing)
{
    DIR *const directory = opendir(folder->path);
    size_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (removing)
            assert_int_equal(unlink(folder_file(folder, entry->d_name)), 0);
    }
    closedir(directory);
    return count;
}

size_t folder_count(const struct folder *folder)
{
    return visit(folder, false);
}

void folder_close(struct folder *folder)
{
    visit(folder, true);
    assert_int_equal(rmdir(folder->path), 0);
}

/* A file that is cut to nothing and written again is on its way to the disk when it is closed,
 * as ext4 has it, and the next one waits for that: a new file in its place does not. */
void file_put(const char *path, const void *data, size_t size)
{
    remove(path);
    FILE *const file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void file_check(const char *path, const void *data, size_t size)
{
    FILE *const file = fopen(path, "rb");
    char *const found = take(size + 1, 1);

    assert_non_null(file);
    assert_int_equal(fread(found, 1, size + 1, file), size);
    assert_memory_equal(found, data, size);
    fclose(file);
    free(found);
}

size_t edit_bytes(void *data, size_t size, const char *from, const char *to)
{
    unsigned char *const bytes = data;
    const size_t length = strlen(from);
    size_t at = 0;

    while (at + length <= size && memcmp(bytes + at, from, length) != 0)
        at++;
    assert_true(at + length <= size && strlen(to) == length);
    memcpy(bytes + at, to, length);
    return at;
}

size_t drop_checksums(void *data, size_t size)
{
    return edit_bytes(data, size, "\"tarn_crc32\"", "\"xarn_crc32\"");
}
