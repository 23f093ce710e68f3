/* SPDX-License-Identifier: MIT */
#include "base/base.h"

struct tn_arena tn_arena_over(void *memory)
{
    const uintptr_t address = (uintptr_t)memory;
    const size_t skip = (size_t)(-address & (TN_ALIGN - 1));

    return (struct tn_arena){.base = memory ? (char *)memory + skip : NULL};
}

void *tn_arena_alloc(struct tn_arena *arena, size_t count, size_t size)
{
    const size_t limit = SIZE_MAX / 2 - TN_ALIGN;
    size_t bytes;
    void *const taken = arena->base ? arena->base + arena->used : NULL;

    if (!tn_size_product(&bytes, (size_t[]){count, size}, 2) || arena->used == SIZE_MAX ||
        bytes > limit || arena->used > limit - bytes) {
        arena->used = SIZE_MAX; /* only while measuring: such a block cannot exist */
        return NULL;
    }
    arena->used += tn_round_up(bytes, TN_ALIGN);
    return taken;
}

float *tn_arena_floats(struct tn_arena *arena, size_t count)
{
    return tn_arena_alloc(arena, count, sizeof(float));
}

size_t tn_arena_bytes(const struct tn_arena *arena)
{
    if (arena->used == SIZE_MAX || arena->used == 0)
        return arena->used;
    return arena->used + TN_ALIGN - 1;
}

bool tn_size_product(size_t *out, const size_t *factors, size_t n)
{
    size_t product = 1;

    for (size_t i = 0; i < n; i++) {
        if (factors[i] && product > SIZE_MAX / factors[i])
            return false;
        product *= factors[i];
    }
    *out = product;
    return true;
}
