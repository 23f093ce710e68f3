/* SPDX-License-Identifier: MIT */
#include "comm/tree_sum.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = 1024 };       /* floats that are summed at once */
enum { PIECE_LEAST = 4096 }; /* floats of a message */

static void round_block(const struct tn_kernels *kernels, float *y, size_t n)
{
    uint16_t narrow[BLOCK];
    const ptrdiff_t ld = (ptrdiff_t)n;

    kernels->narrow(narrow, ld, y, ld, 1, n);
    kernels->widen(y, ld, narrow, ld, 1, n);
}

/* ---- In one process ----------------------------------------------------- */

struct addition {
    const struct tn_kernels *kernels;
    float *y;
    const float *x;
    size_t count;
    bool bf16;
};

static void add_block(void *arg, size_t block, size_t thread)
{
    const struct addition *const a = arg;
    const size_t from = block * BLOCK, n = tn_min(BLOCK, a->count - from);

    (void)thread;
    if (a->x)
        a->kernels->add(a->y + from, a->y + from, a->x + from, n);
    if (a->bf16)
        round_block(a->kernels, a->y + from, n);
}

void tn_tree_add(const struct tn_host *host, float *y, const float *x, size_t count, bool bf16)
{
    if (x || bf16)
        tn_parallel(host->threads, tn_blocks(count, BLOCK), add_block,
                    &(struct addition){host->kernels, y, x, count, bf16});
}

/* ---- Places ------------------------------------------------------------- */

static size_t size_of(const struct tn_tree_sum *sum)
{
    return tn_comm_size(sum->comm);
}

static size_t element(const struct tn_tree_sum *sum)
{
    return sum->bf16 ? sizeof(uint16_t) : sizeof(float);
}

/* Floats of all pieces but shorter ones at the end. */
static size_t piece_length(const struct tn_tree_sum *sum, const struct tn_sum_part *part)
{
    return tn_blocks(part->count, size_of(sum));
}

/* The piece of a part that process `rank` sums: its first float in the array, and its floats.
 */
static size_t piece_from(const struct tn_tree_sum *sum, const struct tn_sum_part *part,
                         size_t rank)
{
    return part->from + tn_min(rank * piece_length(sum, part), part->count);
}

static size_t piece_count(const struct tn_tree_sum *sum, const struct tn_sum_part *part,
                          size_t rank)
{
    return piece_from(sum, part, rank + 1) - piece_from(sum, part, rank);
}

/* Where the others' pieces of a part are: as many as there are processes, of one length each.
 * Rounding makes that less than a float more for each process, in every part before it in the
 * array. */
static char *place(const struct tn_tree_sum *sum, const struct tn_sum_part *part, size_t rank)
{
    const size_t before = (TN_SUM_PARTS - 1 - (size_t)(part - sum->parts)) * size_of(sum);

    return (char *)sum->inbox +
           (part->from + before + rank * piece_length(sum, part)) * element(sum);
}

static void *out_at(const struct tn_tree_sum *sum, size_t from)
{
    return sum->bf16 ? (void *)(sum->outbox + from) : (void *)(sum->values + from);
}

void tn_tree_sum_lay_out(struct tn_tree_sum *sum, struct tn_arena *arena)
{
    const size_t room = sum->count + TN_SUM_PARTS * size_of(sum);

    if (size_of(sum) == 1)
        return;
    sum->inbox = tn_arena_alloc(arena, room, element(sum));
    if (sum->bf16)
        sum->outbox = tn_arena_alloc(arena, sum->count, sizeof *sum->outbox);
}

/* ---- Conversions -------------------------------------------------------- */

struct conversion {
    const struct tn_kernels *kernels;
    float *wide;
    uint16_t *narrow;
    size_t count;
    bool widens;
};

static void convert_block(void *arg, size_t block, size_t thread)
{
    const struct conversion *const c = arg;
    const size_t from = block * BLOCK, n = tn_min(BLOCK, c->count - from);
    const ptrdiff_t ld = (ptrdiff_t)n;

    (void)thread;
    if (c->widens)
        c->kernels->widen(c->wide + from, ld, c->narrow + from, ld, 1, n);
    else
        c->kernels->narrow(c->narrow + from, ld, c->wide + from, ld, 1, n);
}

static void convert(const struct tn_tree_sum *sum, float *wide, uint16_t *narrow, size_t count,
                    bool widens)
{
    if (sum->bf16)
        tn_parallel(sum->host->threads, tn_blocks(count, BLOCK), convert_block,
                    &(struct conversion){sum->host->kernels, wide, narrow, count, widens});
}

/* ---- Stages ------------------------------------------------------------- */

static size_t tag_of(const struct tn_tree_sum *sum, const struct tn_sum_part *part)
{
    return TN_TAG_SUMS + 2 * (size_t)(part - sum->parts) +
           (part->stage == TN_PART_SPREADS ? 1 : 0);
}

static void keep(struct tn_tree_sum *sum, tarn_status status)
{
    if (sum->status == TARN_OK)
        sum->status = status;
}

/* To and from every other process: what it sums of ours and we of its, or the sums. */
static void exchange(struct tn_tree_sum *sum, const struct tn_sum_part *part)
{
    const size_t rank = sum->comm->rank, tag = tag_of(sum, part);
    const bool spreads = part->stage == TN_PART_SPREADS;

    for (size_t i = 1; i < size_of(sum) && sum->status == TARN_OK; i++) {
        const size_t to = (rank + i) % size_of(sum);
        const size_t from = (rank + size_of(sum) - i) % size_of(sum);
        const size_t sent = spreads ? rank : to, got = spreads ? from : rank;
        void *const in = spreads && !sum->bf16
                             ? (void *)(sum->values + piece_from(sum, part, from))
                             : (void *)place(sum, part, from);

        keep(sum, tn_comm_receive(sum->comm, in, piece_count(sum, part, got) * element(sum),
                                  from, tag, &sum->err));
        if (sum->status == TARN_OK)
            keep(sum,
                 tn_comm_send(sum->comm, out_at(sum, piece_from(sum, part, sent)),
                              piece_count(sum, part, sent) * element(sum), to, tag, &sum->err));
    }
}

struct summing {
    const struct tn_tree_sum *sum;
    const struct tn_sum_part *part;
    float *own; /* our piece of the array */
    size_t count;
};

/* n floats from number `at` of the pieces of processes lo .. hi-1 into y. */
static void sum_ranks(const struct summing *s, float *y, size_t at, size_t n, size_t lo,
                      size_t hi)
{
    const struct tn_kernels *const kernels = s->sum->host->kernels;
    const ptrdiff_t ld = (ptrdiff_t)n;
    float right[BLOCK];

    if (hi - lo == 1) {
        const char *const piece = place(s->sum, s->part, lo) + at * element(s->sum);

        if (lo == s->sum->comm->rank)
            memcpy(y, s->own + at, n * sizeof *y);
        else if (s->sum->bf16)
            kernels->widen(y, ld, (const uint16_t *)(const void *)piece, ld, 1, n);
        else
            memcpy(y, piece, n * sizeof *y);
        return;
    }
    sum_ranks(s, y, at, n, lo, lo + (hi - lo) / 2);
    sum_ranks(s, right, at, n, lo + (hi - lo) / 2, hi);
    kernels->add(y, y, right, n);
    if (s->sum->bf16)
        round_block(kernels, y, n);
}

static void sum_block(void *arg, size_t block, size_t thread)
{
    const struct summing *const s = arg;
    const size_t at = block * BLOCK, n = tn_min(BLOCK, s->count - at);
    float total[BLOCK];

    (void)thread;
    sum_ranks(s, total, at, n, 0, size_of(s->sum));
    memcpy(s->own + at, total, n * sizeof *total);
}

static void sum_piece(const struct tn_tree_sum *sum, const struct tn_sum_part *part)
{
    const size_t from = piece_from(sum, part, sum->comm->rank);
    const size_t count = piece_count(sum, part, sum->comm->rank);

    tn_parallel(sum->host->threads, tn_blocks(count, BLOCK), sum_block,
                &(struct summing){sum, part, sum->values + from, count});
    convert(sum, sum->values + from, sum->bf16 ? sum->outbox + from : NULL, count, false);
}

static void take_sums(const struct tn_tree_sum *sum, const struct tn_sum_part *part)
{
    for (size_t i = 0; i < size_of(sum); i++)
        if (i != sum->comm->rank)
            convert(sum, sum->values + piece_from(sum, part, i),
                    (uint16_t *)(void *)place(sum, part, i), piece_count(sum, part, i), true);
}

/* ---- Use ---------------------------------------------------------------- */

/* Floats of a part. Many processes get larger ones, so that messages do not become too short.
 */
static size_t part_length(const struct tn_tree_sum *sum)
{
    return tn_max(tn_max(TN_SUM_LEAST, PIECE_LEAST * size_of(sum)),
                  tn_blocks(sum->count, TN_SUM_PARTS));
}

void tn_tree_sum_begin(struct tn_tree_sum *sum, float *values)
{
    sum->values = values;
    sum->started = 0;
    sum->rest = sum->count;
    sum->status = TARN_OK;
}

bool tn_tree_sum_next(const struct tn_tree_sum *sum, size_t final, size_t *from, size_t *count)
{
    *count = tn_min(part_length(sum), sum->rest);
    *from = sum->rest - *count;
    return *count > 0 && *from >= final;
}

void tn_tree_sum_start(struct tn_tree_sum *sum, size_t from, size_t count)
{
    assert(from + count == sum->rest);
    sum->rest = from;
    if (size_of(sum) == 1)
        return;
    assert(sum->started < TN_SUM_PARTS);
    struct tn_sum_part *const part = &sum->parts[sum->started++];

    *part = (struct tn_sum_part){from, count, TN_PART_COLLECTS};
    convert(sum, sum->values + from, sum->bf16 ? sum->outbox + from : NULL, count, false);
    exchange(sum, part);
}

static void advance_part(struct tn_tree_sum *sum, struct tn_sum_part *part)
{
    if (part->stage == TN_PART_COLLECTS) {
        sum_piece(sum, part);
        part->stage = TN_PART_SPREADS;
        exchange(sum, part);
    } else {
        take_sums(sum, part);
        part->stage = TN_PART_DONE;
    }
}

void tn_tree_sum_advance(struct tn_tree_sum *sum)
{
    for (size_t i = 0; i < sum->started && sum->status == TARN_OK; i++) {
        struct tn_sum_part *const part = &sum->parts[i];
        bool complete = false;
        size_t missing;

        if (part->stage == TN_PART_DONE)
            continue;
        keep(sum, sum->comm->test(sum->comm->context, &complete, &missing, tag_of(sum, part),
                                  &sum->err));
        if (complete && sum->status == TARN_OK)
            advance_part(sum, part);
    }
}

/* First all pieces are summed, so that nobody waits for ours. */
static void finish_stage(struct tn_tree_sum *sum, int stage)
{
    for (size_t i = 0; i < sum->started && sum->status == TARN_OK; i++) {
        struct tn_sum_part *const part = &sum->parts[i];

        if ((int)part->stage != stage)
            continue;
        keep(sum, tn_comm_wait(sum->comm, tag_of(sum, part), TN_SHORT, &sum->err));
        if (sum->status == TARN_OK)
            advance_part(sum, part);
    }
}

tarn_status tn_tree_sum_finish(struct tn_tree_sum *sum, tarn_error *err)
{
    finish_stage(sum, TN_PART_COLLECTS);
    finish_stage(sum, TN_PART_SPREADS);
    return sum->status == TARN_OK ? TARN_OK : tn_fail(err, sum->status, "%s", sum->err.text);
}
