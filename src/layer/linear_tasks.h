/* SPDX-License-Identifier: MIT */
/* linear_tasks.h - how a call of linear attention is divided, by the sizes alone: never by the
 * number of threads, which keeps results equal to the last bit.
 *
 * A task is a part of a sequence and a group of its heads. Sequences have one part, or several
 * where heads are few: these start from sums over other parts, which are formed first and cost
 * an extra product.
 *
 * Causal, a part has one segment or, if it is the only one, a row of segments. Backward goes
 * from the last segment to the first, over each from left to right (13) and then from right to
 * left (14), (15), when its rows still are packed in a cache; forward keeps the sums that each
 * segment starts from. Segments are so long that these are few floats beside the rows. */
#ifndef TN_LINEAR_TASKS_H
#define TN_LINEAR_TASKS_H

#include "layer/linear_state.h"

struct tn_linear_cut {
    size_t parts, q_part, k_part; /* positions of a part, whole tiles, but for the last */
    size_t segment;               /* positions; q_part if there are several parts */
    size_t kept; /* sums of each head that forward leaves for backward: causal, what all
                    segments but the first start from; else the total; 0: backward sums again */
};

struct tn_linear_cut tn_linear_cut_of(const tarn_attention *plan);

/* Stored sums of all heads, `count` of each: the i-th of all heads, then the next. */
struct tn_linear_sums {
    float *at;
    size_t count;
};

/* Everything a call works in. */
struct tn_linear_work {
    const struct tn_attention_call *call;
    struct tn_linear_cut cut;
    size_t group, groups;          /* heads of a group, groups of a sequence */
    struct tn_linear_tiles *tiles; /* one per thread */
    struct tn_linear_sums saved;   /* from forward to backward */
    struct tn_linear_sums S, R;    /* of parts, between tasks; R transposed */
    size_t blocks;                 /* at once, where blocks are tasks (linear_prefill.c) */
    float *ends;                   /* blocks + 1 sums of all heads */
    float *pending;                /* denominators, B x H x N */
};

size_t tn_linear_saved(const tarn_attention *plan);
void tn_linear_work_size(const tarn_attention *plan, struct tn_arena *arena);
struct tn_linear_work tn_linear_work_open(const struct tn_attention_call *call);

/* Task `index` of parts x B x groups, or without parts of B x groups. */
struct tn_linear_task {
    const struct tn_linear_work *work;
    struct tn_linear_group group;
    size_t part;
};

struct tn_linear_task tn_linear_task_open(const struct tn_linear_work *work, size_t index,
                                          size_t thread);
size_t tn_linear_task_count(const struct tn_linear_work *work);

/* The i-th sum of the group's heads; NULL past the last. */
float *tn_linear_sums_at(const struct tn_linear_task *task, struct tn_linear_sums sums,
                         size_t i);

/* Prefix sums of each head's stored sums, or suffix sums. */
void tn_linear_scan(const struct tn_linear_work *work, struct tn_linear_sums sums, bool suffix);

/* ---- States (linear_prefill.c) ------------------------------------------ */

/* Positions of the sequence before position i of the call. */
size_t tn_linear_count_at(const struct tn_linear_group *a, size_t i);

/* Far of the group in a state or gradient, where it is in use after `count` positions. */
float *tn_linear_far_of(const struct tn_linear_group *a, const float *state, size_t count);

/* Forward from states to states: what single steps give, bit for bit. */
void tn_linear_prefill(struct tn_linear_work *work);

#endif
