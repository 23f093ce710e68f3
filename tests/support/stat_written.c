/* SPDX-License-Identifier: MIT */
/* stat_written.c - stat() and its kin as MemorySanitizer should see them: clang 14 does not
 * know what glibc's since 2.33 write. Nothing with another sanitizer, or none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "base/written.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)

static int about_of(int folder, const char *path, struct stat *about, int flags)
{
    const int status = fstatat(folder, path, about, flags);

    if (status == 0)
        TN_WRITTEN(about, sizeof *about);
    return status;
}

int stat(const char *restrict path, struct stat *restrict about)
{
    return about_of(AT_FDCWD, path, about, 0);
}

int lstat(const char *restrict path, struct stat *restrict about)
{
    return about_of(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);
}

int fstat(int file, struct stat *about)
{
    return about_of(file, "", about, AT_EMPTY_PATH);
}

#endif
#endif
