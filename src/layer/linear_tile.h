/* SPDX-License-Identifier: MIT */
/* linear_tile.h - rows of linear attention on their way in and out.
 *
 * Positions go through tiles: the feature map writes packed rows, a pass (linear_pass.c) runs
 * on them, rows go back to the caller's arrays. The heads of a sequence go together, as a
 * group, where a position's heads lie side by side in memory: one by one, each head would touch
 * a few bytes of every page. A position's rows of all heads are neighbours in a tile, too, so
 * that maps of single floats see them as one wide row.
 *
 * The denominator is one more column of the values that is always 1: with v' = (v, 1) and
 * g' = (dL/dnumerator, dL/ddenominator), (13)-(15) are also the gradients through the quotient.
 * In the forward pass that column is kept apart, as z, because it would cost a whole vector. */
#ifndef TN_LINEAR_TILE_H
#define TN_LINEAR_TILE_H

#include "layer/attention_kind.h"

enum { TN_LINEAR_EPS, TN_LINEAR_NORMALISE, TN_LINEAR_CHUNK }; /* the kind's options */

enum {
    TN_LINEAR_TILE = 24, /* positions: a multiple of every RECUR_STEPS */
    TN_LINEAR_GROUP = 8  /* heads of a group at most */
};

struct tn_linear_sizes {
    bool normalises;
    size_t C, M;
    size_t rows;        /* columns of v' and g' that count: M + 1, or M */
    size_t C_ld, width; /* C and M in whole vectors */
    size_t S_ld, St_ld; /* rows of the sums S and R, St and Rt */
    size_t chunk;       /* positions per chunk of the recurrence; 0: one by one */
    bool streams;       /* outputs are too large to be found in the cache again */
};

/* Packed rows of the heads of a group, `ld` floats apart, position by position. */
struct tn_linear_packed {
    float *at;
    size_t ld;
};

/* What a thread works in: packed rows and each head's running sums. Forward advances S and z,
 * backward St, Rt and R. */
struct tn_linear_tiles {
    struct tn_linear_packed q, k; /* features */
    struct tn_linear_packed v, g; /* v', g' */
    struct tn_linear_packed o;    /* results of one tile */
    float *den;                   /* TILE of each head: denominators; in backward, dy . y */
    float *S, *R;     /* C x S_ld      sum phi(k) v^T (10); sum phi(q) g^T, of (15), or with a
                                       state in forward, the far sums */
    float *z, *far_z; /* C_ld          sum phi(k)     (11) */
    float *St;        /* rows x St_ld  sum v' phi(k)^T, of (13) */
    float *Rt;        /* rows x St_ld  sum g' phi(q)^T, of (14) */
    float *chunk;     /* scratch of the chunked recurrence */
    size_t rows;      /* of all heads that q, k, v and g have room for */
};

/* Denominators of the heads of a group: that of head h at position i is at[h * ld + i - from].
 */
struct tn_linear_denominators {
    float *at;
    size_t ld, from;
};

/* Heads h .. h+heads of sequence b. */
struct tn_linear_group {
    const tarn_attention *plan;
    const struct tn_attention_call *call;
    const struct tn_linear_tiles *tiles;
    size_t b, h, heads;
    size_t length; /* keys that exist */
    bool far;      /* forward adds the far sums, R and far_z */
    bool keeps;    /* rows that were loaded stay packed, those of position `first` first */
    size_t first;
    struct tn_linear_denominators pending; /* forward leaves numerators in y, and denominators
                                              here; NULL: it divides */
    struct tn_linear_sizes sizes;
};

struct tn_linear_sizes tn_linear_sizes_of(const tarn_attention *plan);

/* Floats of the packed rows of a position of one head; and tiles for a group of heads that hold
 * `rows` of them. */
size_t tn_linear_packed_floats(const tarn_attention *plan);
struct tn_linear_tiles tn_linear_tiles_take(const tarn_attention *plan, size_t heads,
                                            size_t rows, struct tn_arena *arena);

/* Fills in the length and the sizes and prepares a tile: clears what pads packed rows and fills
 * in the column of ones. Where more than a tile is kept, so many positions. */
void tn_linear_group_open(struct tn_linear_group *group);
void tn_linear_group_clear(const struct tn_linear_group *group, size_t positions);

/* A head's packed rows; the next position's are `ld` floats further. */
struct tn_linear_rows {
    float *at;
    ptrdiff_t ld;
};

struct tn_linear_rows tn_linear_rows(const struct tn_linear_group *a,
                                     struct tn_linear_packed tile, size_t head, size_t from);

/* The results of the tile that is worked on. */
struct tn_linear_rows tn_linear_results(const struct tn_linear_group *a, size_t head);

/* Loads n positions from `from` on: features of queries; of keys, and values; gradients. */
enum { TN_LINEAR_QUERIES = 1, TN_LINEAR_KEYS = 2, TN_LINEAR_GRADIENTS = 4 };
void tn_linear_load(const struct tn_linear_group *a, unsigned arrays, size_t from, size_t n);

/* Asks memory for a head's positions from .. to, which will be loaded soon. A pass moves rows
 * and then computes on them for a while. Hardware looks ahead only while rows move, within a
 * page and along one row after another; so a pass asks for the rows of its next tile itself, a
 * few positions at a time between pieces of arithmetic. */
void tn_linear_prefetch(const struct tn_linear_group *a, unsigned arrays, size_t head,
                        size_t from, size_t to);

/* Storing takes results from the tile o; gradients of features go through the map, phi being
 * those of x, and positions past `length` have none. */
void tn_linear_store_output(const struct tn_linear_group *a, size_t from, size_t n);
void tn_linear_load_output(const struct tn_linear_group *a, size_t from, size_t n);
void tn_linear_store_gradients(const struct tn_linear_group *a, tarn_output dx, tarn_input x,
                               struct tn_linear_packed phi, size_t from, size_t n,
                               size_t length);
void tn_linear_store_dv(const struct tn_linear_group *a, size_t from, size_t n);

/* What to multiply a numerator with whose denominator is den. Maps with signs can bring that to
 * zero or below it; nearer to zero than eps it is held at eps, so that everything stays finite.
 * */
float tn_linear_inverse(const tarn_attention *plan, float den);

#endif
