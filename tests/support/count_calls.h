/* SPDX-License-Identifier: MIT */
/* count_calls.h - the program's own malloc and its kin, which count the calls of everything in
 * the process and hand them to glibc, or refuse them. For one file of a program; COUNTS_CALLS
 * says whether they are there. */
#ifndef COUNT_CALLS_H
#define COUNT_CALLS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTS_CALLS 1

static atomic_size_t calls;

/* The calls, counted from 0, that get no memory: refused_from <= call < refused_to. */
static atomic_size_t refused_from, refused_to;

/* From now on: call n, from 0, and `length` - 1 after it. */
static inline void refuse_calls(size_t n, size_t length)
{
    const size_t now = atomic_load(&calls);

    atomic_store(&refused_to, now + n + length);
    atomic_store(&refused_from, now + n);
}

static inline void refuse_no_calls(void)
{
    atomic_store(&refused_to, 0);
}

static bool call_is_refused(void)
{
    const size_t call = atomic_fetch_add(&calls, 1);

    return call >= atomic_load(&refused_from) && call < atomic_load(&refused_to);
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    if (call_is_refused()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (call_is_refused()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    if (call_is_refused()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(memory, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    if (call_is_refused()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = memalign(alignment, bytes);
    return *memory ? 0 : ENOMEM;
}

#endif
#endif
