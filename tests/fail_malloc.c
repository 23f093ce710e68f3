/* SPDX-License-Identifier: MIT */
/* fail_malloc.c - a library to preload: allocation FAIL_AT of the process, counted from 0,
 * fails, and with FAIL_REST all after it. For glibc. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static atomic_long calls;
static long first = -1;
static int rest;

__attribute__((constructor)) static void start(void)
{
    const char *const at = getenv("FAIL_AT");

    rest = getenv("FAIL_REST") != NULL;
    atomic_store(&calls, 0);
    first = at ? atol(at) : -1;
}

static int fails(void)
{
    const long call = atomic_fetch_add(&calls, 1);
    const int yes = first >= 0 && (call == first || (rest && call > first));

    if (yes)
        errno = ENOMEM;
    return yes;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(memory, bytes);
}
