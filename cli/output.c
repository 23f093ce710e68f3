/* SPDX-License-Identifier: MIT */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"

static struct {
    const char *path;
    char temporary[TARN_PATH_SIZE + 40]; /* "": the path is written itself */
    int descriptor;
} output;

static void remove_temporary(void)
{
    if (*output.temporary)
        unlink(output.temporary);
    *output.temporary = '\0';
}

/* What a program that was killed left. Anything else of that name is somebody's. */
static bool remove_left(const char *temporary)
{
    struct stat about;

    return lstat(temporary, &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1 &&
           about.st_uid == geteuid() && unlink(temporary) == 0;
}

/* With the mode of the file that it will replace. */
static int open_temporary(mode_t mode)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int file = open(output.temporary, flags, 0666);

    if (file < 0 && errno == EEXIST && remove_left(output.temporary))
        file = open(output.temporary, flags, 0666);
    if (file >= 0 && mode && fchmod(file, mode & 07777) != 0) {
        const int number = errno;

        close(file);
        unlink(output.temporary);
        errno = number;
        file = -1;
    }
    return file;
}

FILE *output_open(const char *path)
{
    static bool removes;
    struct stat about;
    const bool exists = stat(path, &about) == 0;
    const bool direct = exists && !S_ISREG(about.st_mode);

    output.path = path;
    *output.temporary = '\0';
    if (strlen(path) >= TARN_PATH_SIZE) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    if (!direct)
        snprintf(output.temporary, sizeof output.temporary, "%s.tmp", path);
    output.descriptor =
        direct ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(exists ? about.st_mode : 0);
    if (output.descriptor < 0) {
        *output.temporary = '\0'; /* not ours to remove */
        return NULL;
    }
    if (!removes)
        removes = atexit(remove_temporary) == 0;
    FILE *const file = fdopen(output.descriptor, "w");

    if (!file) {
        close(output.descriptor);
        remove_temporary();
        errno = ENOMEM;
    }
    return file;
}

/* Also for the name "". */
_Noreturn static void fail_output(void)
{
    fail("%s: %s", *output.path ? output.path : "''", strerror(errno));
}

FILE *output_begin(const char *path)
{
    FILE *const file = output_open(path);

    if (!file)
        fail_output();
    return file;
}

void output_end(FILE *file)
{
    if (!output_close(file))
        fail_output();
}

/* Whether everything is in the file, on the disk. */
static bool is_written(FILE *file)
{
    return !ferror(file) && fflush(file) == 0 &&
           (!*output.temporary || fsync(output.descriptor) == 0);
}

bool output_close(FILE *file)
{
    errno = 0;
    bool good = is_written(file);
    int number = errno;

    if (fclose(file) != 0 && good) {
        good = false;
        number = errno;
    }
    if (good && *output.temporary && rename(output.temporary, output.path) != 0) {
        good = false;
        number = errno;
    }
    if (good)
        *output.temporary = '\0';
    remove_temporary();
    errno = number ? number : EIO;
    return good;
}
