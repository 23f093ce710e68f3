/* SPDX-License-Identifier: MIT */
/* linear.h - linear attention.                                              Paper (4)-(20)
 *
 *   y_i = phi(q_i)^T S_i / (phi(q_i)^T z_i + eps)
 *   S_i = sum_j phi(k_j) v_j^T     z_i = sum_j phi(k_j)    over j <= i when causal, else all
 *
 *   linear_tile.c       rows on their way in and out
 *   linear_pass.c       the passes over a head
 *   linear_state.c      the recurrent network, and how sums are stored
 *   linear_tasks.c      parts and segments of sequences, tasks, memory
 *   linear_prefill.c    forward from states to states
 *   attention_linear.c  all of it in order */
#ifndef TN_LINEAR_H
#define TN_LINEAR_H

#include "layer/attention_kind.h"

/* ---- linear_tile.c ------------------------------------------------------- */

/* Rows of linear attention on their way in and out.
 *
 * Positions of a head go through tiles: the feature map writes packed rows, a pass
 * (linear_pass.c) runs on them, rows go back to the caller's arrays, where they may be far
 * apart.
 *
 * The denominator is one more column of the values that is always 1: with v' = (v, 1) and
 * g' = (dL/dnumerator, dL/ddenominator), (13)-(15) are also the gradients through the quotient.
 * In the forward pass that column is kept apart, as z, because it would cost a whole vector. */

enum { TN_LINEAR_EPS, TN_LINEAR_NORMALISE, TN_LINEAR_CHUNK }; /* the kind's options */

enum {
    TN_LINEAR_TILE = 48,      /* positions: a multiple of every RECUR_STEPS */
    TN_LINEAR_SHORT_TILE = 24 /* what most passes take of it at a time */
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

/* Packed rows of a head, position by position, `ld` floats apart. */
struct tn_linear_rows {
    float *at;
    ptrdiff_t ld;
};

/* What a thread works in: packed rows and running sums of one head. Forward advances S and z,
 * backward St, Rt and R. */
struct tn_linear_tiles {
    struct tn_linear_rows q, k; /* features */
    struct tn_linear_rows v, g; /* v', g' */
    struct tn_linear_rows o;    /* results of one tile */
    float *den;                 /* TILE  denominators; in backward, dy . y */
    float *S, *R;     /* C x S_ld      sum phi(k) v^T (10); sum phi(q) g^T, of (15), or with a
                                       state in forward, the far sums */
    float *z, *far_z; /* C_ld          sum phi(k)     (11) */
    float *St;        /* rows x St_ld  sum v' phi(k)^T, of (13) */
    float *Rt;        /* rows x St_ld  sum g' phi(q)^T, of (14) */
    float *chunk;     /* scratch of the chunked recurrence */
    size_t rows;      /* that q, k, v and g have room for */
};

/* Head h of sequence b. */
struct tn_linear_head {
    const tarn_attention *plan;
    const struct tn_attention_call *call;
    const struct tn_linear_tiles *tiles;
    size_t b, h;
    size_t length; /* keys that exist */
    bool far;      /* forward adds the far sums, R and far_z */
    bool keeps;    /* gradients leave rows packed, those of position `first` first */
    size_t first;
    size_t then;    /* key gradients: where the next pass will begin; from N on: nowhere */
    float *pending; /* N: forward leaves numerators in y, and denominators here; NULL: it
                       divides */
    struct tn_linear_sizes sizes;
};

struct tn_linear_sizes tn_linear_sizes_of(const tarn_attention *plan);

/* Floats of the packed rows of a position, and tiles that hold those of so many. */
size_t tn_linear_packed_floats(const tarn_attention *plan);
struct tn_linear_tiles tn_linear_tiles_lay_out(const tarn_attention *plan, size_t rows,
                                               struct tn_arena *arena);

/* Fills in the length and the sizes and prepares a tile: clears what pads packed rows and fills
 * in the column of ones. Where more than a tile is kept, so many positions. */
void tn_linear_head_open(struct tn_linear_head *a);
void tn_linear_head_clear(const struct tn_linear_head *a, size_t positions);

/* Rows of q, k, v or g from a position on that is being worked on. */
struct tn_linear_rows tn_linear_rows(const struct tn_linear_head *a, struct tn_linear_rows tile,
                                     size_t from);

/* Loads n positions from `from` on: features of queries; of keys, and values; gradients. */
enum { TN_LINEAR_QUERIES = 1, TN_LINEAR_KEYS = 2, TN_LINEAR_GRADIENTS = 4 };
void tn_linear_load(const struct tn_linear_head *a, unsigned arrays, size_t from, size_t n);

/* Asks memory for positions from .. to, which will be loaded soon. A pass moves rows and then
 * computes on them for a while. Hardware looks ahead only while rows move, within a page and
 * along one row after another; so a pass asks for the rows of its next tile itself, a few
 * positions at a time between pieces of arithmetic. */
void tn_linear_prefetch(const struct tn_linear_head *a, unsigned arrays, size_t from,
                        size_t to);

/* Storing takes results from the tile o; gradients of features go through the map, phi being
 * those of x, and positions past `length` have none. */
void tn_linear_store_output(const struct tn_linear_head *a, size_t from, size_t n);
void tn_linear_load_output(const struct tn_linear_head *a, size_t from, size_t n);
void tn_linear_store_gradients(const struct tn_linear_head *a, tarn_output dx, tarn_input x,
                               struct tn_linear_rows phi, size_t from, size_t n, size_t length);
void tn_linear_store_dv(const struct tn_linear_head *a, size_t from, size_t n);

/* What to multiply a numerator with whose denominator is den. Maps with signs can bring that to
 * zero or below it; nearer to zero than eps it is held at eps, so that everything stays finite.
 * */
float tn_linear_inverse(const tarn_attention *plan, float den);

/* ---- linear_pass.c ------------------------------------------------------- */

/* The passes of linear attention over positions from .. to of a head.
 *
 *   forward           o_i  = phi(q_i)^T S_i                    (8)-(12)
 *   query gradients   dphi(q_i) = St_i^T g'_i                  (13)
 *   key gradients     dphi(k_i) = Rt_i^T v'_i                  (14)
 *                     dv_i = R_i^T phi(k_i)                    (15)
 *
 * Causal, the sums advance with the positions, S, z and St to the right, R and Rt to the left;
 * else they are those of all positions and stay. */

/* S and z += keys and values; Rt += queries and gradients. */
void tn_linear_sum_keys(const struct tn_linear_head *a, size_t from, size_t to);
void tn_linear_sum_queries(const struct tn_linear_head *a, size_t from, size_t to);

void tn_linear_forward(const struct tn_linear_head *a, size_t from, size_t to);

/* The far sums added to outputs that a forward left in numerators and denominators. */
void tn_linear_add_far(const struct tn_linear_head *a, size_t from, size_t to);

/* If not causal, the first adds the queries to Rt, too. */
void tn_linear_query_gradients(const struct tn_linear_head *a, size_t from, size_t to);
void tn_linear_key_gradients(const struct tn_linear_head *a, size_t from, size_t to);

/* St from S and z. */
void tn_linear_transpose_S(const struct tn_linear_head *a);

/* ---- linear_state.c ------------------------------------------------------ */

/* Linear attention as a recurrent network.    Paper (16)-(20)
 *
 *   s_i = s_{i-1} + phi(k_i) v_i^T     z_i = z_{i-1} + phi(k_i)            (18), (19)
 *   y_i = phi(q_i)^T s_i / phi(q_i)^T z_i                                   (20)
 *
 * A sum that is stored, in a state, between tasks or from forward to backward, is s (C x M),
 * then z (C), with rows padded to TN_LINEAR_STATE_PAD floats: whole vectors on every machine,
 * so that a state can move to another one. Padding stays zero.
 *
 * A float that has a sum of a million terms rounds every further one, and rounds equal ones the
 * same way: a sequence that repeats itself was wrong by half a percent after a million steps.
 * So the sums of a state are of two parts, s = near + far: near has the last positions, up to
 * BLOCK of them, and is then added to far. Until then far is zero and not read.
 *
 * The floats of a state are near of every head, then far of every head. Sequences that end
 * before the first block does have no far. */

enum {
    TN_LINEAR_STATE_PAD = 16,
    TN_LINEAR_BLOCK = 1024 /* positions; a million are about as many blocks */
};

/* As a kind's state, step_work and step. */
size_t tn_linear_state(const tarn_attention *plan);
void tn_linear_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
void tn_linear_step(const struct tn_attention_call *call);

/* Floats of a head's sum, and where near and far of head h are in the floats of a state or of
 * its gradient; NULL if that is NULL, or has no far. */
size_t tn_linear_sum_floats(const tarn_attention *plan);
float *tn_linear_near(const tarn_attention *plan, const float *state, size_t h);
float *tn_linear_far(const tarn_attention *plan, const float *state, size_t h);

/* A head's stored sum to and from where passes have it, S with rows S_ld apart and z. Loading
 * NULL gives zeros; adding is to what is stored. */
void tn_linear_sum_load(const struct tn_linear_head *a, float *S, float *z, const float *sum);
void tn_linear_sum_store(const struct tn_linear_head *a, float *sum, const float *S,
                         const float *z);
void tn_linear_sum_add(const struct tn_linear_head *a, float *sum, const float *S,
                       const float *z);

/* The same transposed: St = sum^T, sum = St^T, and St += by sum^T. */
void tn_linear_sum_load_t(const struct tn_linear_head *a, float *St, const float *sum);
void tn_linear_sum_store_t(const struct tn_linear_head *a, float *sum, const float *St);
void tn_linear_sum_add_t(const struct tn_linear_head *a, float *St, const float *sum, float by);

/* ---- linear_tasks.c ------------------------------------------------------ */

/* How a call of linear attention is divided, by the sizes alone: never by the
 * number of threads, which keeps results equal to the last bit.
 *
 * A task is a head of a part of a sequence. Sequences have one part, or several where heads are
 * few: these start from sums over other parts, which are formed first. Causal, that costs an
 * extra product; else it costs nothing.
 *
 * Causal, a part has one segment or, if it is the only one, a row of segments. Backward goes
 * from the last segment to the first, over each from left to right (13) and then from right to
 * left (14), (15), when its rows still are packed in a cache; forward keeps the sums that each
 * segment starts from. Segments are so long that these are few floats beside the rows. */

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

/* Task `index` of parts x B x H, or without parts of B x H. */
struct tn_linear_task {
    const struct tn_linear_work *work;
    struct tn_linear_head head;
    size_t part;
};

struct tn_linear_task tn_linear_task_open(const struct tn_linear_work *work, size_t index,
                                          size_t thread);
size_t tn_linear_task_count(const struct tn_linear_work *work);

/* The i-th of ranges of so many positions; and those of queries and of keys of a task's part.
 */
struct tn_linear_range {
    size_t from, to;
};

struct tn_linear_range tn_linear_range_of(size_t i, size_t each, size_t end);
struct tn_linear_range tn_linear_queries_of(const struct tn_linear_task *task);
struct tn_linear_range tn_linear_keys_of(const struct tn_linear_task *task);

/* The i-th sum of the task's head; NULL past the last. */
float *tn_linear_sums_at(const struct tn_linear_task *task, struct tn_linear_sums sums,
                         size_t i);

/* Prefix sums of each head's stored sums, or suffix sums. */
void tn_linear_scan(const struct tn_linear_work *work, struct tn_linear_sums sums, bool suffix);

/* ---- linear_prefill.c --------------------------------------------------- */

/* Positions of the sequence before position i of the call. */
size_t tn_linear_count_at(const struct tn_linear_head *a, size_t i);

/* Far of the head in a state or gradient, where it is in use after `count` positions. */
float *tn_linear_far_of(const struct tn_linear_head *a, const float *state, size_t count);

/* Forward from states to states: what single steps give, bit for bit. */
void tn_linear_prefill(struct tn_linear_work *work);

/* ---- linear_slices.c ---------------------------------------------------- */

extern const struct tn_attention_sums tn_linear_slices;

#endif
