/* SPDX-License-Identifier: MIT */
#include "train/pieces.h"

static size_t end_of(struct tn_range range)
{
    return range.from + range.count;
}

static size_t block_count(const struct tn_range *tensors, size_t count)
{
    return count ? tn_blocks(end_of(tensors[count - 1]), TN_PIECES_BLOCK) : 0;
}

size_t tn_pieces_count(const struct tn_range *tensors, size_t count)
{
    return block_count(tensors, count) + count;
}

/* The first tensor that ends after `position`, by halves. */
static size_t first_after(const struct tn_range *tensors, size_t count, size_t position)
{
    size_t low = 0;

    while (count > 0) {
        const size_t half = count / 2;

        if (end_of(tensors[low + half]) <= position) {
            low += half + 1;
            count -= half + 1;
        } else
            count = half;
    }
    return low;
}

struct walk {
    const struct tn_range *tensors;
    size_t count;
    tn_piece_task *task;
    void *arg;
};

static void walk_block(void *arg, size_t block, size_t thread)
{
    const struct walk *const walk = arg;
    const size_t from = block * TN_PIECES_BLOCK, to = from + TN_PIECES_BLOCK;

    (void)thread;
    for (size_t i = first_after(walk->tensors, walk->count, from); i < walk->count; i++) {
        const size_t start = tn_max(from, walk->tensors[i].from);
        const size_t end = tn_min(to, end_of(walk->tensors[i]));

        if (walk->tensors[i].from >= to)
            break;
        if (start < end)
            walk->task(walk->arg, (struct tn_piece){i, block, start, end - start});
    }
}

void tn_pieces_parallel(const struct tn_range *tensors, size_t count, tn_piece_task *task,
                        void *arg, size_t threads)
{
    struct walk walk = {tensors, count, task, arg};

    tn_parallel(threads, block_count(tensors, count), walk_block, &walk);
}
