/* SPDX-License-Identifier: MIT */
/* faults_streams.c - streams of the C library would call the system past faults.c. They are
 * made here as streams with functions of their own, which call it through faults.c. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static ssize_t stream_read(void *cookie, char *data, size_t count)
{
    return read((int)(intptr_t)cookie, data, count);
}

/* As the C library: all of it, but for errors. */
static ssize_t stream_write(void *cookie, const char *data, size_t count)
{
    size_t done = 0;

    while (done < count) {
        const ssize_t put = write((int)(intptr_t)cookie, data + done, count - done);

        if (put < 0)
            break;
        done += (size_t)put;
    }
    return (ssize_t)done;
}

static int stream_seek(void *cookie, off64_t *at, int whence)
{
    const off_t place = lseek((int)(intptr_t)cookie, *at, whence);

    if (place < 0)
        return -1;
    *at = place;
    return 0;
}

static int stream_close(void *cookie)
{
    return close((int)(intptr_t)cookie);
}

FILE *fdopen(int file, const char *mode)
{
    const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek,
                                             stream_close};

    return fopencookie((void *)(intptr_t)file, mode, functions);
}

static int flags_of(const char *mode)
{
    const int both = strchr(mode, '+') ? O_RDWR : -1;

    if (*mode == 'r')
        return both < 0 ? O_RDONLY : both;
    return (both < 0 ? O_WRONLY : both) | O_CREAT | (*mode == 'w' ? O_TRUNC : O_APPEND);
}

FILE *fopen(const char *path, const char *mode)
{
    const int file = open(path, flags_of(mode), 0666);
    FILE *const stream = file >= 0 ? fdopen(file, mode) : NULL;

    if (file >= 0 && !stream)
        syscall(SYS_close, file);
    return stream;
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

/* Before the first call is counted. */
__attribute__((constructor(101))) static void replace_streams(void)
{
    FILE *const output = fdopen(STDOUT_FILENO, "w"), *const errors = fdopen(STDERR_FILENO, "w");

    if (!output || !errors)
        abort();
    setvbuf(errors, NULL, _IONBF, 0);
    stdout = output;
    stderr = errors;
}
