/* SPDX-License-Identifier: MIT */
/* allocate.c - memory from the caller's allocator, or the system's. */
#define _DEFAULT_SOURCE /* madvise */

#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"

/* Where the system gives huge pages for the asking, large blocks ask: walking through many long
 * arrays at once otherwise waits for address translations. */
enum { HUGE_PAGE = 2 * 1024 * 1024 };

static void *from_system(size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes >= 2 * HUGE_PAGE && bytes <= PTRDIFF_MAX - HUGE_PAGE) {
        const size_t rounded = tn_round_up(bytes, HUGE_PAGE);
        void *const block = aligned_alloc(HUGE_PAGE, rounded);

        if (block)
            madvise(block, rounded, MADV_HUGEPAGE);
        return block;
    }
#endif
    return malloc(bytes);
}

void *tn_allocate(const tarn_allocator *allocator, size_t bytes)
{
    return allocator && allocator->allocate ? allocator->allocate(allocator->context, bytes)
                                            : from_system(bytes);
}

void tn_release(const tarn_allocator *allocator, void *memory)
{
    if (allocator && allocator->release)
        allocator->release(allocator->context, memory);
    else
        free(memory);
}

bool tn_has_memory(size_t bytes)
{
    void *volatile some = malloc(bytes); /* volatile: it is not optimised away */

    free(some);
    return some != NULL;
}

void *tn_grow(void *array, size_t *room, size_t count, size_t size)
{
    if (count < *room)
        return array;
    const size_t wanted = 2 * *room + 64;
    void *const grown = realloc(array, wanted * size);

    if (grown)
        *room = wanted;
    return grown;
}

tarn_status tn_allocator_check(const tarn_allocator *allocator, tarn_error *err)
{
    if (allocator && (!allocator->allocate || !allocator->release))
        return tn_fail(err, TARN_EINVAL, "allocator: allocate and release must not be NULL");
    return TARN_OK;
}
