/* SPDX-License-Identifier: MIT */
#include "comm/tree_scan.h"

#include <string.h>

#include "comm/tree_sum.h"

static size_t level_of(size_t leaves)
{
    size_t level = 0;

    while ((size_t)1 << level < leaves)
        level++;
    return level;
}

static size_t level_length(const struct tn_tree_scan *scan, size_t level)
{
    return (level < scan->own_level ? scan->own : scan->all) >> level;
}

void tn_tree_scan_lay_out(struct tn_tree_scan *scan, struct tn_arena *arena)
{
    scan->all = scan->own * tn_comm_size(scan->comm);
    scan->own_level = level_of(scan->own);
    scan->top_level = level_of(scan->all);
    for (size_t level = 0; level <= scan->top_level; level++)
        scan->levels[level] = tn_arena_floats(arena, level_length(scan, level) * scan->floats);
}

/* Of branch `index` of a level, counted as leaves are; below the processes' level, among those
 * of this process. */
static float *branch(const struct tn_tree_scan *scan, size_t level, size_t index)
{
    return scan->levels[level] + index * scan->floats;
}

float *tn_tree_scan_leaf(const struct tn_tree_scan *scan, size_t i)
{
    return branch(scan, 0, scan->own_level == 0 ? tn_comm_rank(scan->comm) : i);
}

static void join(const struct tn_tree_scan *scan, float *sum, const float *more)
{
    tn_tree_add(scan->host, sum, more, scan->floats, false);
}

/* Branch `to` of a level from its two halves, numbers `from` and the next of the level below.
 */
static void join_pair(const struct tn_tree_scan *scan, size_t level, size_t to, size_t from)
{
    float *const sum = branch(scan, level, to);

    memcpy(sum, branch(scan, level - 1, from), scan->floats * sizeof *sum);
    join(scan, sum, branch(scan, level - 1, from + 1));
}

tarn_status tn_tree_scan_exchange(struct tn_tree_scan *scan, tarn_error *err)
{
    const size_t size = tn_comm_size(scan->comm), own = scan->own_level;
    const size_t bytes = scan->floats * sizeof(float);

    for (size_t level = 1; level < own; level++)
        for (size_t i = 0; i < level_length(scan, level); i++)
            join_pair(scan, level, i, 2 * i);
    if (own > 0)
        join_pair(scan, own, tn_comm_rank(scan->comm), 0);
    const tarn_status status =
        tn_comm_gather(scan->comm, scan->levels[own], bytes, TN_SHORT, err);

    scan->sent += (size - 1) * bytes;
    for (size_t level = own + 1; level <= scan->top_level && status == TARN_OK; level++)
        for (size_t i = 0; i < level_length(scan, level); i++)
            join_pair(scan, level, i, 2 * i);
    return status;
}

const float *tn_tree_scan_total(const struct tn_tree_scan *scan)
{
    return branch(scan, scan->top_level, 0);
}

/* Leaves are counted from the end they are summed from: leaf n has as many branches before it
 * as n has ones, that of bit `level` being number n >> level, less 1. */
void tn_tree_scan_add(const struct tn_tree_scan *scan, float *sum, size_t i)
{
    const size_t leaf = tn_comm_rank(scan->comm) * scan->own + i;
    const size_t n = scan->behind ? scan->all - 1 - leaf : leaf;

    for (size_t level = 0; n >> level > 0; level++) {
        const size_t index = (n >> level) - 1;
        const size_t length = scan->all >> level;
        size_t from_left = scan->behind ? length - 1 - index : index;

        if (!(n >> level & 1))
            continue;
        if (level < scan->own_level)
            from_left -= tn_comm_rank(scan->comm) * (scan->own >> level);
        join(scan, sum, branch(scan, level, from_left));
    }
}
