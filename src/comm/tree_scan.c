/* SPDX-License-Identifier: MIT */
#include "comm/tree_scan.h"

#include <string.h>

#include "comm/tree_sum.h"

static size_t size_of(const struct tn_tree_scan *scan)
{
    return tn_comm_size(scan->comm);
}

/* Level at which a branch is all leaves of a process; and of all processes. */
static size_t own_level(const struct tn_tree_scan *scan)
{
    size_t level = 0;

    while ((size_t)1 << level < scan->own)
        level++;
    return level;
}

static size_t top_level(const struct tn_tree_scan *scan)
{
    size_t level = own_level(scan);

    while ((size_t)1 << level < scan->own * size_of(scan))
        level++;
    return level;
}

static size_t level_length(const struct tn_tree_scan *scan, size_t level)
{
    const size_t leaves = level < own_level(scan) ? scan->own : scan->own * size_of(scan);

    return leaves >> level;
}

void tn_tree_scan_lay_out(struct tn_tree_scan *scan, struct tn_arena *arena)
{
    for (size_t level = 0; level <= top_level(scan); level++)
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
    return branch(scan, 0, own_level(scan) == 0 ? tn_comm_rank(scan->comm) : i);
}

static void join(const struct tn_tree_scan *scan, float *sum, const float *more)
{
    tn_tree_add(scan->host, sum, more, scan->floats, false);
}

static void join_pairs(const struct tn_tree_scan *scan, size_t level, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        float *const sum = branch(scan, level + 1, i);

        memcpy(sum, branch(scan, level, 2 * i), scan->floats * sizeof *sum);
        join(scan, sum, branch(scan, level, 2 * i + 1));
    }
}

tarn_status tn_tree_scan_exchange(struct tn_tree_scan *scan, tarn_error *err)
{
    const size_t own = own_level(scan), rank = tn_comm_rank(scan->comm);
    tarn_status status = TARN_OK;

    for (size_t level = 0; level + 1 < own; level++)
        join_pairs(scan, level, 0, level_length(scan, level + 1));
    if (own > 0) {
        float *const total = branch(scan, own, rank);

        memcpy(total, branch(scan, own - 1, 0), scan->floats * sizeof *total);
        join(scan, total, branch(scan, own - 1, 1));
    }
    if (size_of(scan) > 1) {
        const size_t bytes = scan->floats * sizeof(float);

        status = tn_comm_gather(scan->comm, scan->levels[own], bytes, TN_SHORT, err);
        scan->sent += (size_of(scan) - 1) * bytes;
    }
    for (size_t level = own; level < top_level(scan) && status == TARN_OK; level++)
        join_pairs(scan, level, 0, level_length(scan, level + 1));
    return status;
}

/* Leaves are counted from the end they are summed from: leaf n has as many branches before it
 * as n has ones, that of bit `level` being number n >> level, less 1. */
void tn_tree_scan_add(const struct tn_tree_scan *scan, float *sum, size_t i)
{
    const size_t all = scan->own * size_of(scan), own = own_level(scan);
    const size_t leaf = tn_comm_rank(scan->comm) * scan->own + i;
    const size_t n = scan->behind ? all - 1 - leaf : leaf;

    for (size_t level = 0; n >> level > 0; level++) {
        const size_t index = (n >> level) - 1;
        const size_t length = all >> level;
        size_t from_left = scan->behind ? length - 1 - index : index;

        if (!(n >> level & 1))
            continue;
        if (level < own)
            from_left -= tn_comm_rank(scan->comm) * (scan->own >> level);
        join(scan, sum, branch(scan, level, from_left));
    }
}
