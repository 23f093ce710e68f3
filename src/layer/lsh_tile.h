/* SPDX-License-Identifier: MIT */
/* lsh_tile.h - chunks of a sorted row, gathered into tiles, and their scores.
 *
 * A head of a sequence is one thread's. It packs its rows once, [q | v] or [q | v | dy],
 * because they are gathered in another order round after round: packed rows, whose widths are
 * whole vectors and whose padding is zero. Two chunks of that order lie side by side, one and
 * the one before it in either order, so that the keys of both are the columns of one product.
 */
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

/* Two chunks, as keys and as queries: `columns` places for each. */
struct tn_lsh_tiles {
    size_t count[2];
    int32_t *position; /* INT32_MAX past a count: later than any query */
    int32_t *bucket;   /* counted along the order; -1 past a count */
    float *by;         /* 1 / (|q| sqrt D); 0 past a count */
    int32_t *exists;   /* -1; 0 past a count */
    float *rows;       /* 2 columns x row; 0 past a count */
    float *q_turned;   /* D x 2 columns */
    float *v_turned;   /* M x 2 columns, backward only */
    float *gradients;  /* 2 columns x sum, backward only */
    float *w;          /* 2 columns, backward only: sums of ds s */
};

/* What one thread needs for one head. */
struct tn_lsh_scratch {
    float *rows;             /* N x row */
    float *sums;             /* N x sum */
    float *inverse;          /* N: 1 / (|q| sqrt D) */
    float *maximum, *total;  /* N: of scores so far, and of exp(score - maximum); forward */
    float *delta;            /* N: dy.y; backward */
    float *w;                /* N: sums of ds s; backward */
    float *order;            /* N: of a forward that saves nothing */
    float *scores, *dscores; /* chunk x 2 columns */
    float *turned;           /* chunk x columns: a transpose; chunk x M: outputs */
    struct tn_lsh_tiles tiles;
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
    size_t sum;        /* [y], backward [dq | dv] */
    bool bounded;      /* exponentials of its scores fit into floats */
    int32_t bucket;    /* of the last position loaded */
    size_t slot;       /* of the two tiles, the chunk that was loaded last */
    size_t used;       /* columns of keys: those of one or of both tiles */
    const float *next; /* entries of the chunk that will be loaded next */
    size_t next_count;
};

/* Scratch for each thread that can have a head. Lays out, twice: see tn_arena. */
struct tn_lsh_scratch *tn_lsh_lay_out(const tarn_attention *plan, struct tn_arena *arena);

/* Packs the rows of head `index` = b H + h. */
struct tn_lsh_head tn_lsh_head_open(const struct tn_attention_call *call,
                                    struct tn_lsh_scratch *scratch, size_t index,
                                    bool backward);

/* Gathers the chunk that starts at `first` into the other slot. Chunks of a round are loaded
 * one after another. */
void tn_lsh_load(struct tn_lsh_head *head, const float *order, size_t first);

/* The rows of a sorted order lie anywhere: asked for one chunk ahead, a quarter of them between
 * two pieces of work, they have arrived when they are gathered. */
void tn_lsh_fetch_ahead(const struct tn_lsh_head *head, size_t quarter);

/* q.q of the chunk's queries with all keys it may see, into scratch->scores, and what the
 * kernels need to make scores of them. */
struct tn_lsh_scores tn_lsh_scores(const struct tn_lsh_head *head);

/* What a forward saves. Of head h of sequence b: N log-sum-exps, infinite where a position saw
 * itself only; and per round an order, see lsh_hash.h. */
size_t tn_lsh_saved_floats(const tarn_attention *plan);
float *tn_lsh_saved_sums(const tarn_attention *plan, float *saved, size_t b, size_t h);
float *tn_lsh_saved_order(const tarn_attention *plan, float *saved, size_t b, size_t h,
                          size_t round);

#endif
