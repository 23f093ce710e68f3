/* SPDX-License-Identifier: MIT */
/* tree_sum.h - the sum of arrays in a fixed order: neighbours first, then neighbouring sums,
 *
 *     ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))
 *
 * so that each process can sum what it has and the rest is done between processes, with the
 * same bits for 1, 2, 4 or 8 of them. With bf16, what is summed and every sum is rounded to
 * bf16, and half the bytes travel: again the same bits for any number of processes.
 *
 * Between processes an array is summed in parts, each as soon as it is final: of a part, every
 * process gets one piece from all others, sums it and sends the sum to all. So each process
 * sends twice the array at most, however many there are. */
#ifndef TN_TREE_SUM_H
#define TN_TREE_SUM_H

#include "comm/transfer.h"
#include "kernel/host.h"

/* y = y + x, or to bf16 and back; by all threads. x NULL: y is only rounded, if at all. */
void tn_tree_add(const struct tn_host *host, float *y, const float *x, size_t count, bool bf16);

/* Parts have at least so many floats, and there are not more than so many. */
enum { TN_SUM_LEAST = 1 << 17, TN_SUM_PARTS = 64 };

struct tn_tree_sum {
    const tarn_comm *comm; /* NULL, or of one process: there is nothing to do */
    const struct tn_host *host;
    bool bf16;
    size_t count; /* floats of the array */

    void *inbox;      /* pieces of the others */
    uint16_t *outbox; /* what is sent, where that is bf16 */

    /* Of the sum under way. */
    float *values;
    struct tn_sum_part {
        size_t from, count;
        enum { TN_PART_COLLECTS, TN_PART_SPREADS, TN_PART_DONE } stage;
    } parts[TN_SUM_PARTS];
    size_t started, rest; /* parts; and floats before them */
    tarn_status status;   /* the first failure, and its error */
    tarn_error err;
};

/* comm, host, bf16 and count are set. */
void tn_tree_sum_lay_out(struct tn_tree_sum *sum, struct tn_arena *arena);

/* Begins the sum of `values`. Its parts are the same for all processes and are started from the
 * end of the array to its beginning: the next one, unless floats before number `final` are in
 * it. Sums replace the values when tn_tree_sum_finish() returns; what fails is told then. */
void tn_tree_sum_begin(struct tn_tree_sum *sum, float *values);
bool tn_tree_sum_next(const struct tn_tree_sum *sum, size_t final, size_t *from, size_t *count);
void tn_tree_sum_start(struct tn_tree_sum *sum, size_t from, size_t count);
void tn_tree_sum_advance(struct tn_tree_sum *sum); /* what has arrived; returns at once */
tarn_status tn_tree_sum_finish(struct tn_tree_sum *sum, tarn_error *err);

#endif
