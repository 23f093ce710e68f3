/* SPDX-License-Identifier: MIT */
/* faults.c - makes calls of the system fail, counts them and records them: a library to
 * preload, or a part of a program that calls fault_set(). For Linux with glibc.
 *
 * FAULT=CALL:AT:ERROR:LENGTH - of all calls CALL, counted from 0, LENGTH from AT on fail with
 * the error number ERROR; 0: half of the bytes are transferred. "memory" is an allocation of
 * the program itself, not of a library: from that one on at most LENGTH bytes more may be in
 * use.
 *
 * FAULT_FILES=1 - only reads and writes of regular files count and fail, not those of sockets,
 * pipes and events.
 *
 * FAULT_UNDER=PATH - only calls about files whose names begin with PATH, and for memory only
 * those of the program itself, not of libraries.
 *
 * FAULT_COUNTS=FILE - becomes, per call of `enum call`, how often it was made, and then how
 * often one failed: 64-bit numbers.
 *
 * FAULT_RECORD=FILE - becomes the record that tests/power_loss.py reads: a line per call that
 * succeeded, and after that of a write its bytes. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE /* its checked calls are inline functions of the same names */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "faults.h"

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

const char *const call_names[CALLS] = {"malloc", "write", "read",  "fsync",
                                       "rename", "open",  "close", "ftruncate",
                                       "unlink", "mkdir", "memory"};

/* ---- Which call fails --------------------------------------------------- */

static _Atomic int64_t unshared[CALLS + 1];
static _Atomic int64_t *made = unshared; /* the last: failed */
static int record = -1;
static bool files_only;

static struct fault fault = {.call = CALLS};
static const char *under;   /* NULL: all files */
static bool is_under[4096]; /* by descriptor */

void fault_set(struct fault next)
{
    for (size_t i = 0; i <= CALLS; i++)
        made[i] = 0;
    fault = next;
}

long fault_count(void)
{
    return (long)made[CALLS];
}

static int open_own(const char *variable, int flags)
{
    const char *const path = getenv(variable);

    return path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC | flags,
                               0666)
                : -1;
}

static void share_counts(void)
{
    const size_t bytes = sizeof unshared;
    const int file = open_own("FAULT_COUNTS", O_TRUNC);

    for (size_t i = 0; i <= CALLS; i++)
        unshared[i] = 0;
    if (file < 0 || syscall(SYS_ftruncate, file, bytes) != 0)
        return;
    void *const shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (shared != MAP_FAILED)
        made = shared;
    syscall(SYS_close, file);
}

static void choose(const char *text)
{
    char name[16] = "";
    long from = -1, length = 0;
    int error = 0;

    if (!text || sscanf(text, "%15[a-z]:%ld:%d:%ld", name, &from, &error, &length) != 4)
        return;
    for (int call = 0; call < CALLS; call++)
        if (strcmp(name, call_names[call]) == 0)
            fault = (struct fault){(enum call)call, from, length, error};
}

/* What loading the program needed is not counted, and programs it starts are left alone. */
__attribute__((constructor)) static void start(void)
{
    unsetenv("LD_PRELOAD");
    share_counts();
    record = open_own("FAULT_RECORD", O_TRUNC | O_APPEND);
    files_only = getenv("FAULT_FILES") != NULL;
    choose(getenv("FAULT"));
    under = getenv("FAULT_UNDER");
}

static bool fails(enum call call)
{
    const long n = (long)atomic_fetch_add(&made[call], 1);
    const bool yes = call == fault.call && n >= fault.from && n - fault.from < fault.length;

    if (yes) {
        atomic_fetch_add(&made[CALLS], 1);
        if (fault.error)
            errno = fault.error;
    }
    return yes;
}

static bool is_file(int file)
{
    struct stat about;

    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

static bool counts_path(const char *path)
{
    return !under || strncmp(path, under, strlen(under)) == 0;
}

static bool counts_file(int file)
{
    return !under || ((size_t)file < sizeof is_under && is_under[file]);
}

static bool path_fails(enum call call, const char *path)
{
    return counts_path(path) && fails(call);
}

static bool file_fails(enum call call, int file)
{
    return counts_file(file) && fails(call);
}

/* Bytes to transfer in the place of `count`; -1: fails. */
static ssize_t transfer(enum call call, int file, size_t count)
{
    if ((files_only && !is_file(file)) || !file_fails(call, file))
        return (ssize_t)count;
    return fault.error ? -1 : (ssize_t)(count + 1) / 2;
}

/* ---- The record --------------------------------------------------------- */

/* A line, and bytes that belong to it. errno is the caller's. */
__attribute__((format(printf, 3, 4))) static void note(const void *data, size_t bytes,
                                                       const char *format, ...)
{
    char line[4200];
    va_list arguments;
    const int number = errno;

    if (record < 0)
        return;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);

    va_end(arguments);
    if (syscall(SYS_write, record, line, (size_t)length) != length ||
        (bytes > 0 && syscall(SYS_write, record, data, bytes) != (long)bytes))
        abort();
    errno = number;
}

/* ---- Memory ------------------------------------------------------------- */

#ifndef FAULTS_NOT_OF_MEMORY /* which is a sanitizer's */

static uintptr_t code, code_end; /* of the program itself */

/* The program is the first. */
static int find_code(struct dl_phdr_info *about, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < about->dlpi_phnum; i++)
        if (about->dlpi_phdr[i].p_type == PT_LOAD && about->dlpi_phdr[i].p_flags & PF_X) {
            code = about->dlpi_addr + about->dlpi_phdr[i].p_vaddr;
            code_end = code + about->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((constructor)) static void find_program(void)
{
    dl_iterate_phdr(find_code, NULL);
}

static bool is_own(const void *caller)
{
    return (uintptr_t)caller >= code && (uintptr_t)caller < code_end;
}

static _Atomic int64_t in_use, limit = INT64_MAX; /* bytes */

static bool passes_limit(const void *caller, size_t bytes)
{
    if (is_own(caller) && atomic_fetch_add(&made[MEMORY], 1) == fault.from &&
        fault.call == MEMORY)
        limit = in_use + fault.length;
    if (in_use + (int64_t)bytes <= limit)
        return false;
    atomic_fetch_add(&made[CALLS], 1);
    return true;
}

static bool no_memory(const void *caller, size_t bytes)
{
    if ((under && !is_own(caller)) || (!passes_limit(caller, bytes) && !fails(MALLOC)))
        return false;
    errno = ENOMEM;
    return true;
}

static void *taken(void *memory)
{
    in_use += (int64_t)malloc_usable_size(memory);
    return memory;
}

void free(void *memory)
{
    in_use -= (int64_t)malloc_usable_size(memory);
    __libc_free(memory);
}

void *malloc(size_t bytes)
{
    return no_memory(__builtin_return_address(0), bytes) ? NULL : taken(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    return no_memory(__builtin_return_address(0), count * bytes)
               ? NULL
               : taken(__libc_calloc(count, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    const size_t before = malloc_usable_size(memory);

    if (no_memory(__builtin_return_address(0), bytes > before ? bytes - before : 0))
        return NULL;
    void *const moved = __libc_realloc(memory, bytes);

    if (moved || bytes == 0)
        in_use -= (int64_t)before;
    return taken(moved);
}

static void *aligned_for(const void *caller, size_t alignment, size_t bytes)
{
    return no_memory(caller, bytes) ? NULL : taken(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return aligned_for(__builtin_return_address(0), alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *const made_here = aligned_for(__builtin_return_address(0), alignment, bytes);

    if (made_here)
        *memory = made_here;
    return made_here ? 0 : ENOMEM;
}

#endif

/* ---- Files -------------------------------------------------------------- */

/* What a program says about a failure is not to fail itself. */
ssize_t write(int file, const void *data, size_t count)
{
    const ssize_t most = file == STDERR_FILENO ? (ssize_t)count : transfer(WRITE, file, count);
    const ssize_t put = most < 0 ? -1 : syscall(SYS_write, file, data, (size_t)most);

    if (put > 0)
        note(data, (size_t)put, "write %d %zd\n", file, put);
    return put;
}

ssize_t read(int file, void *data, size_t count)
{
    const ssize_t most = transfer(READ, file, count);

    return most < 0 ? -1 : syscall(SYS_read, file, data, (size_t)most);
}

ssize_t pread(int file, void *data, size_t count, off_t at)
{
    const ssize_t most = transfer(READ, file, count);

    return most < 0 ? -1 : syscall(SYS_pread64, file, data, (size_t)most, at);
}

int fsync(int file)
{
    const int status = file_fails(FSYNC, file) ? -1 : (int)syscall(SYS_fsync, file);

    if (status == 0)
        note(NULL, 0, "fsync %d\n", file);
    return status;
}

int rename(const char *from, const char *to)
{
    const int status = path_fails(RENAME, from)
                           ? -1
                           : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);

    if (status == 0)
        note(NULL, 0, "rename %s\t%s\n", from, to);
    return status;
}

static int open_any(const char *path, int flags, unsigned mode)
{
    const int file =
        path_fails(OPEN, path) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);

    if (file >= 0 && (size_t)file < sizeof is_under)
        is_under[file] = under && counts_path(path);
    if (file >= 0)
        note(NULL, 0, "open %d %d %d %s\n", file, (flags & O_TRUNC) != 0,
             (flags & O_APPEND) != 0, path);
    return file;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const unsigned mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;

    va_end(arguments);
    return open_any(path, flags, mode);
}

int close(int file)
{
    const bool failed = file_fails(CLOSE, file);
    const int number = errno, status = (int)syscall(SYS_close, file);

    if ((size_t)file < sizeof is_under)
        is_under[file] = false;
    note(NULL, 0, "close %d\n", file);
    if (failed)
        errno = number;
    return failed ? -1 : status;
}

int ftruncate(int file, off_t size)
{
    const int status =
        file_fails(FTRUNCATE, file) ? -1 : (int)syscall(SYS_ftruncate, file, size);

    if (status == 0)
        note(NULL, 0, "ftruncate %d %jd\n", file, (intmax_t)size);
    return status;
}

int unlink(const char *path)
{
    const int status =
        path_fails(UNLINK, path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);

    if (status == 0)
        note(NULL, 0, "unlink %s\n", path);
    return status;
}

int remove(const char *path)
{
    return unlink(path);
}

int mkdir(const char *path, mode_t mode)
{
    const int status =
        path_fails(MKDIR, path) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

    if (status == 0)
        note(NULL, 0, "mkdir %s\n", path);
    return status;
}

/* Their names with offsets of 64 bits, and those that check their arguments. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));
ssize_t __read_chk(int file, void *data, size_t count, size_t room);
ssize_t __pread_chk(int file, void *data, size_t count, off_t at, size_t room);
ssize_t __pread64_chk(int file, void *data, size_t count, off_t at, size_t room)
    __attribute__((alias("__pread_chk")));

ssize_t pread64(int file, void *data, size_t count, off_t at) __attribute__((alias("pread")));
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int ftruncate64(int file, off_t size) __attribute__((alias("ftruncate")));

int __open_2(const char *path, int flags)
{
    return open_any(path, flags, 0);
}

ssize_t __read_chk(int file, void *data, size_t count, size_t room)
{
    return count > room ? (abort(), -1) : read(file, data, count);
}

ssize_t __pread_chk(int file, void *data, size_t count, off_t at, size_t room)
{
    return count > room ? (abort(), -1) : pread(file, data, count, at);
}

/* ---- Folders ------------------------------------------------------------ */

typedef DIR *opendir_function(const char *);
typedef struct dirent *readdir_function(DIR *);

DIR *opendir(const char *path)
{
    static opendir_function *next;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "opendir");
    return path_fails(OPEN, path) ? NULL : next(path);
}

/* Is neither interrupted nor short. */
struct dirent *readdir(DIR *folder)
{
    static readdir_function *next;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "readdir");
    return !under && fault.error != 0 && fault.error != EINTR && fails(READ) ? NULL
                                                                             : next(folder);
}

struct dirent64 *readdir64(DIR *folder)
{
    return (struct dirent64 *)(void *)readdir(folder); /* the same where off_t has 64 bits */
}
