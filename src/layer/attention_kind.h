/* SPDX-License-Identifier: MIT */
/* attention_kind.h - what a kind of attention declares and computes.
 *
 * A kind is one file that defines one row, and one line in attention_kinds.def. All arguments
 * are checked before a kind sees them (attention_check.c), so its functions return void. */
#ifndef TN_ATTENTION_KIND_H
#define TN_ATTENTION_KIND_H

#include "base/option.h"
#include "kernel/host.h"
#include "layer/feature_map.h"
#include "tarn/attention.h"

enum { TN_KV_BLOCK = 64 }; /* positions */

/* The plan. `tarn_attention` is this. */
struct tarn_attention {
    const struct tn_attention_kind *kind;
    struct tn_host host;
    struct tn_options options;
    struct tn_feature_map map; /* kinds with a feature map only */
    bool causal;
    size_t B, H, N, Nk, D, M; /* causal, N = Nk */
    size_t capacity;          /* positions of a growing cache */
    size_t steps;             /* positions that a state takes at most; 0: no limit */
    float *draws;             /* kind->draws() floats */
    uint64_t whose;           /* of its states; see tn_state_fits() */
};

/* One call: the caller's arrays, and memory that is large enough and aligned. */
struct tn_attention_call {
    const tarn_attention *plan;
    const tarn_attention_arrays *arrays;
    float *saved; /* kind->saved() floats; NULL in a forward without a backward */
    void *work;   /* what kind->work() or kind->step_work() laid out */

    /* A step's. */
    void *const *states; /* n of them */
    size_t n, threads;
};

/* Of a kind whose state is a sum over positions: of a slice of the sequences alone, from which
 * others can begin. Sums of B sequences lie one after the other. */
struct tn_attention_sums {
    size_t (*floats)(const tarn_attention *plan); /* of one sequence */

    /* What the positions of a call add to a state; and, from arrays and saved of a backward, to
     * the gradient of the state before them. */
    void (*of_keys)(const struct tn_attention_call *call, float *sums);
    void (*of_queries)(const struct tn_attention_call *call, float *sums);

    /* The floats of a state after `count` positions, or of a gradient, given their sum. */
    void (*to_state)(const tarn_attention *plan, float *floats, const float *sum, size_t count);
    void (*to_gradient)(const tarn_attention *plan, float *floats, const float *sum);

    /* Not causal: forward and backward of a slice, given the sums of all. */
    void (*forward)(const struct tn_attention_call *call, const float *keys);
    void (*backward)(const struct tn_attention_call *call, const float *keys,
                     const float *queries);
};

/* Of a kind that saves one float for each query and whose queries attend to every key: keys in
 * parts, each in a call of its own, whose results are joined in the order of the calls. */
struct tn_part_kept {
    double most, sum; /* zeros are the start */
};

struct tn_attention_parts {
    void (*adapt)(tarn_attention *part, bool backward); /* a copy of the plan, for such calls */

    /* Of a query: y (M) and `saved` of one more part to what is kept; and those of a call with
     * all of them, which backward takes for every part. */
    void (*join)(const tarn_attention *plan, struct tn_part_kept *kept, float *sum,
                 const float *y, float saved);
    void (*finish)(const tarn_attention *plan, float *y, float *saved,
                   const struct tn_part_kept *kept, const float *sum);
};

struct tn_attention_kind {
    tarn_table_row about;
    bool has_map; /* takes a feature map, if uses_map (NULL: always) says so of its options */
    bool (*uses_map)(const tarn_attention *plan);
    const tarn_attention_input *inputs; /* ended by a NULL name */

    /* Refuses what this kind cannot do beyond its options' ranges. NULL: nothing more. */
    tarn_status (*check)(const tarn_attention *plan, tarn_error *err);

    /* Random numbers: how many floats, and drawing them. NULL: none. */
    size_t (*draws)(const tarn_attention *plan);
    void (*draw)(const tarn_attention *plan, struct tn_random *random);

    /* Lays out, twice: see tn_arena. `saved` returns floats per call; SIZE_MAX: too many. */
    size_t (*saved)(const tarn_attention *plan);
    void (*work)(const tarn_attention *plan, struct tn_arena *arena);

    void (*forward)(const struct tn_attention_call *call);
    void (*backward)(const struct tn_attention_call *call);

    /* The recurrent form; NULL: none. Floats of one sequence's state, SIZE_MAX: too many; the
     * workspace of a step with so many threads; and the step. */
    size_t (*state)(const tarn_attention *plan);
    void (*step_work)(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
    void (*step)(const struct tn_attention_call *call);
    bool caches; /* the state is a cache of plan->capacity positions, kv_cache.h */

    /* For sequences that are cut, one of these; NULL: the state is no sum, keys cannot come in
     * parts. */
    const struct tn_attention_sums *sums;
    const struct tn_attention_parts *parts;

    /* As tarn_attention_forward_flops(); NULL: 0. */
    double (*forward_flops)(const tarn_attention *plan);
    double (*backward_flops)(const tarn_attention *plan);
};

extern const struct tn_table tn_attention_kinds; /* of attention_kinds.def */

/* The kinds in attention_kinds.def, ended by NULL. */
extern const struct tn_attention_kind *const tn_attention_kind_rows[];

/* Fills a plan in the caller's memory and allocates only what a kind or map draws at random.
 * desc->host is not read. */
tarn_status tn_attention_init(tarn_attention *plan, const tarn_attention_desc *desc,
                              const struct tn_host *host, tarn_error *err);
void tn_attention_clear(tarn_attention *plan);

/* tarn_attention_forward() and tarn_attention_backward() of what was checked before. */
void tn_attention_forward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                          void *saved, void *workspace);
void tn_attention_backward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                           const void *saved, void *workspace);

/* The call of a forward, or of a backward, which only reads `saved`; *used becomes its arrays.
 */
struct tn_attention_call tn_attention_call_of(const tarn_attention *plan,
                                              tarn_attention_arrays *used,
                                              const tarn_attention_arrays *arrays,
                                              const void *saved, void *workspace);

/* The kind's sums of a slice, for sequences that are cut. `saved` NULL: of keys; else it is
 * that of a forward, and they are those of queries and gradients. */
void tn_attention_sum(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                      const void *saved, float *sums, void *workspace);

/* Of a slice, if not causal: the sums of all keys, and of all queries and gradients. */
void tn_attention_forward_slice(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                                void *saved, const float *keys, void *workspace);
void tn_attention_backward_slice(const tarn_attention *plan,
                                 const tarn_attention_arrays *arrays, const void *saved,
                                 const float *keys, const float *queries, void *workspace);

/* tarn_attention_step(), likewise: threads may step different states at once, each thread with
 * a workspace of tn_attention_step_size() bytes for the `threads` that its step may use. */
size_t tn_attention_step_size(const tarn_attention *plan, size_t threads);
void tn_attention_step(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                       void *const *states, size_t n, size_t threads, void *workspace);

/* ---- States -------------------------------------------------------------
 *
 * A state is a header and the kind's floats. The header, which attention.c checks and writes,
 * has the number of positions and a number that says whose state it is; zeros are the start.
 * Kinds read the count before the positions of a call and leave the header alone. */
enum { TN_STATE_HEADER = 64 }; /* bytes */

size_t tn_state_count(const void *state); /* NULL: 0 */
void tn_state_set(const tarn_attention *plan, void *state, size_t count);

static inline float *tn_state_floats(void *state)
{
    return (float *)(void *)((char *)state + TN_STATE_HEADER);
}

/* Whether a forward or backward has states, and those of sequence b; NULL: none. Gradients are
 * those of the kind's floats. */
bool tn_call_has_states(const struct tn_attention_call *call);
size_t tn_call_count(const struct tn_attention_call *call, size_t b);
const float *tn_call_state0(const struct tn_attention_call *call, size_t b);
float *tn_call_state1(const struct tn_attention_call *call, size_t b);
const float *tn_call_dstate1(const struct tn_attention_call *call, size_t b);
float *tn_call_dstate0(const struct tn_attention_call *call, size_t b);

/* ---- Inputs ------------------------------------------------------------- */

/* The inputs of most kinds, in this order. */
enum { TN_QUERY, TN_KEY, TN_VALUE };
extern const tarn_attention_input tn_query_key_value[];

size_t tn_input_count(const tarn_attention_input *inputs);

/* Floats per head; sequences of B; and positions. */
size_t tn_input_width(const tarn_attention *plan, const tarn_attention_input *input);
size_t tn_input_batch(const tarn_attention_input *input, size_t B);
size_t tn_input_length(const tarn_attention *plan, const tarn_attention_input *input);

static inline const float *tn_in(tarn_input a, size_t b, size_t h, size_t n)
{
    return a.data + (ptrdiff_t)b * a.batch + (ptrdiff_t)h * a.head + (ptrdiff_t)n * a.position;
}

static inline float *tn_out(tarn_output a, size_t b, size_t h, size_t n)
{
    return a.data + (ptrdiff_t)b * a.batch + (ptrdiff_t)h * a.head + (ptrdiff_t)n * a.position;
}

/* Keys of sequence b that exist. */
static inline size_t tn_key_length(const struct tn_attention_call *call, size_t b)
{
    return call->arrays->key_lengths ? call->arrays->key_lengths[b] : call->plan->Nk;
}

#endif
