/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tarn/tarn.h"

static bool complain(const char *command, const char *path, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", command, path, why);
    return false;
}

bool target_can_be(const char *command, const char *option, const char *path)
{
    char folder[TARN_PATH_SIZE] = ".";
    const char *const slash = strrchr(path, '/');
    struct stat about;

    if (!*path)
        return complain(command, option, "the file name is empty");
    if (strlen(path) >= sizeof folder)
        return complain(command, path, strerror(ENAMETOOLONG));
    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return complain(command, path,
                        S_ISDIR(about.st_mode) ? strerror(EISDIR)
                                               : "is a device, pipe or socket; it must be "
                                                 "a regular file");
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    return access(folder, W_OK) == 0 || complain(command, path, strerror(errno));
}
