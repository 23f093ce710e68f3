/* SPDX-License-Identifier: MIT */
/* lsh_tile.h - chunks of a sorted row, gathered into tiles, and their scores.
 *
 * A head of a sequence is one thread's. It packs its rows once, [q | v] or [q | v | dy],
 * because they are gathered in another order round after round. A tile holds one chunk of that
 * order: packed rows, whose widths are whole vectors and whose padding is zero. */
#ifndef TN_LSH_TILE_H
#define TN_LSH_TILE_H

#include "layer/attention_kind.h"
#include "layer/lsh_hash.h"

enum { TN_LSH_ROUNDS, TN_LSH_BUCKETS, TN_LSH_CHUNK, TN_LSH_SAME_BUCKET }; /* options */
enum { TN_LSH_QUERY, TN_LSH_VALUE };                                      /* inputs */

static inline size_t tn_lsh_option(const tarn_attention *plan, size_t index)
{
    return (size_t)plan->options.value[index];
}

/* One chunk, as keys and as queries. */
struct tn_lsh_tile {
    size_t count;
    int32_t *position; /* INT32_MAX past count: later than any query */
    int32_t *bucket;   /* counted along the order; -1 past count */
    float *rows;       /* chunk x row */
    float *k;          /* chunk x D: k / sqrt D */
    float *k_turned;   /* D x columns */
    float *v_turned;   /* M x columns, backward only */
    float *gradients;  /* chunk x sum, backward only */
};

/* What one thread needs for one head. */
struct tn_lsh_scratch {
    float *rows;            /* N x row */
    float *sums;            /* N x sum */
    float *inverse;         /* N: 1 / (|q| sqrt D) */
    float *maximum, *total; /* N: of scores so far, and of exp(score - maximum); forward */
    float *delta;           /* N: dy.y; backward */
    float *order;           /* N: of a forward that saves nothing */
    float *scores, *slopes; /* chunk x 2 columns */
    float *out;             /* chunk x M */
    float *factor;          /* chunk */
    struct tn_lsh_tile tiles[2];
    struct tn_lsh_hash hash;
};

struct tn_lsh_head {
    const struct tn_attention_call *call;
    const tarn_attention *plan;
    const struct tn_kernels *kernels;
    struct tn_lsh_scratch *scratch;
    size_t b, h;
    size_t n;          /* positions that exist */
    size_t chunk;      /* positions of a chunk */
    size_t columns;    /* chunk in whole vectors */
    size_t D, M;       /* in whole vectors */
    size_t row;        /* [q | v], backward [q | v | dy] */
    size_t sum;        /* [y], backward [dq | dk | dv] */
    int32_t bucket;    /* of the last position loaded */
    const float *next; /* entries of the chunk that will be loaded next */
    size_t next_count;
};

/* Scratch for each thread that can have a head. Lays out, twice: see tn_arena. */
struct tn_lsh_scratch *tn_lsh_lay_out(const tarn_attention *plan, struct tn_arena *arena);

/* Packs the rows of head `index` = b H + h. */
struct tn_lsh_head tn_lsh_head_open(const struct tn_attention_call *call,
                                    struct tn_lsh_scratch *scratch, size_t index,
                                    bool backward);

/* Gathers the chunk that starts at `first`. Chunks of a round are loaded one after another. */
void tn_lsh_tile_load(struct tn_lsh_head *head, struct tn_lsh_tile *tile, const float *order,
                      size_t first);

/* scores = q k^T / sqrt D of this chunk's queries with its own keys, and behind them with those
 * of the chunk before, if any; -inf where a query must not look. Returns how many columns. */
size_t tn_lsh_scores(const struct tn_lsh_head *head, const struct tn_lsh_tile *chunk,
                     const struct tn_lsh_tile *before);

/* What a forward saves. Of head h of sequence b: N log-sum-exps, infinite where a position saw
 * itself only; and per round an order, see lsh_hash.h. */
size_t tn_lsh_saved_floats(const tarn_attention *plan);
float *tn_lsh_saved_sums(const tarn_attention *plan, float *saved, size_t b, size_t h);
float *tn_lsh_saved_order(const tarn_attention *plan, float *saved, size_t b, size_t h,
                          size_t round);

#endif
