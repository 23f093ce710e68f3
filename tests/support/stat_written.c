/* SPDX-License-Identifier: MIT */
/* stat_written.c - stat() and its kin as MemorySanitizer should see them: clang 14 does not
 * know what glibc's since 2.33 write. Nothing with another sanitizer, or none. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>

#include "base/written.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)

/* Each with offsets of 64 bits by either name; they are the same. */
#define STAT_OF(suffix)                                                                        \
    static int about_of##suffix(int folder, const char *path, struct stat##suffix *about,      \
                                int flags)                                                     \
    {                                                                                          \
        const int status = fstatat##suffix(folder, path, about, flags);                        \
                                                                                               \
        if (status == 0)                                                                       \
            TN_WRITTEN(about, sizeof *about);                                                  \
        return status;                                                                         \
    }                                                                                          \
    int stat##suffix(const char *restrict path, struct stat##suffix *restrict about)           \
    {                                                                                          \
        return about_of##suffix(AT_FDCWD, path, about, 0);                                     \
    }                                                                                          \
    int lstat##suffix(const char *restrict path, struct stat##suffix *restrict about)          \
    {                                                                                          \
        return about_of##suffix(AT_FDCWD, path, about, AT_SYMLINK_NOFOLLOW);                   \
    }                                                                                          \
    int fstat##suffix(int file, struct stat##suffix *about)                                    \
    {                                                                                          \
        return about_of##suffix(file, "", about, AT_EMPTY_PATH);                               \
    }

STAT_OF()
STAT_OF(64)

#endif
#endif
