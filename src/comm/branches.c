/* SPDX-License-Identifier: MIT */
#include "comm/branches.h"

#include "comm/tree_sum.h"

bool tn_is_power_of_two(size_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Branches that wait at most: one of each size, and the leaf under way. */
void tn_branches_lay_out(struct tn_branches *b, struct tn_arena *arena)
{
    b->sums[0] = tn_arena_floats(arena, b->floats);
    for (size_t depth = 1; (size_t)1 << (depth - 1) < b->leaves; depth++)
        b->sums[depth] = tn_arena_floats(arena, b->floats);
}

void tn_branches_begin(struct tn_branches *b)
{
    b->done = b->waiting = 0;
}

float *tn_branches_leaf(const struct tn_branches *b)
{
    return b->sums[b->waiting];
}

/* How many branches end with the leaf under way: its number ends with as many ones in binary.
 */
static size_t branches_that_end(const struct tn_branches *b)
{
    size_t count = 0;

    while (b->done >> count & 1)
        count++;
    return count;
}

void tn_branches_add(const struct tn_branches *b, size_t from, size_t count)
{
    const size_t top = b->waiting;

    tn_tree_add(b->host, b->sums[top] + from, NULL, count, b->bf16);
    for (size_t i = 0; i < branches_that_end(b); i++)
        tn_tree_add(b->host, b->sums[top - i - 1] + from, b->sums[top - i] + from, count,
                    b->bf16);
}

void tn_branches_end_leaf(struct tn_branches *b)
{
    b->waiting = b->waiting + 1 - branches_that_end(b);
    b->done++;
}
