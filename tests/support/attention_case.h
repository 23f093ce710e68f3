/* SPDX-License-Identifier: MIT */
/* attention_case.h - one attention on random arrays, with guards around all that it may write.
 *
 * An element's value depends on the case's seed and on its place in (B, N, H, width), not on
 * where it lies in memory: runs that differ in layout, threads or instruction set compare
 * element by element. Memory that a call is given is exactly as large as it asked, aligned to
 * nothing, and NaN before. */
#ifndef ATTENTION_CASE_H
#define ATTENTION_CASE_H

#include "support/guarded.h"
#include "tarn/attention.h"

/* ---- What there is to test ---------------------------------------------- */

/* How queries and keys are drawn, so that denominators stay away from zero. */
enum inputs {
    NORMAL,  /* of variance 1, and not within 0.1 of zero, where maps have corners */
    SMALL,   /* of length 0.15: the estimates of random features then are positive */
    POSITIVE /* for maps whose features have the signs of x */
};

/* A kind with options and, if it takes one, a map. */
struct variant {
    const char *kind, *map;
    bool has_keys; /* or the queries are the keys, and N = Nk */
    bool has_step;
    enum inputs inputs;
};

/* Every kind with every map it takes, then kinds and maps with options; NULL past the last. */
const struct variant *variant_at(size_t i);

/* One that is not in the list. */
struct variant variant_of(const char *kind, const char *map);

/* ---- Cases -------------------------------------------------------------- */

enum { CASE_BATCH_MAX = 3 };

struct attention_case {
    tarn_attention_desc desc;
    bool has_keys;
    bool has_lengths;
    size_t lengths[CASE_BATCH_MAX];
    enum layout layout, layout_out; /* of inputs and dy, of y and gradients */
    enum inputs inputs;
    uint64_t seed; /* of the arrays */
};

/* A random shape, layout, seed and number of threads. `budget` bounds B H N Nk (C + M), what
 * the definition costs. */
struct attention_case case_draw(const struct variant *variant, bool causal, double budget,
                                struct tn_random *random);

/* Sizes as given, all lengths full, (B, N, H, D), two threads. */
struct attention_case case_of(const struct variant *variant, bool causal, size_t B, size_t H,
                              size_t N, size_t D, size_t M);

size_t case_length(const struct attention_case *is, size_t b);

/* ---- Runs --------------------------------------------------------------- */

/* The inputs as their kind lists them, dy, y, and the gradients in the order of the inputs; the
 * letters are of kinds that list query, key and value. Arrays that a kind has not have no
 * rows. */
enum array {
    Q,
    K,
    V,
    DY = TARN_ATTENTION_INPUTS,
    Y,
    DQ,
    DK,
    DV,
    ARRAYS = 2 * (TARN_ATTENTION_INPUTS + 1)
};

struct attention_run {
    struct attention_case is;
    tarn_attention *plan;
    const tarn_attention_input *in; /* what the kind lists */
    size_t in_count;
    struct tensor tensors[ARRAYS];
    struct pool inputs, outputs;
    struct block saved, work, state;
    void **states; /* one per sequence, one behind the other */
};

/* Fails with the refusal if there is no such plan. */
void run_open(struct attention_run *run, const struct attention_case *is);
void run_close(struct attention_run *run);

/* Each checks the guards. A step takes and gives position n. */
void run_forward(struct attention_run *run);
void run_backward(struct attention_run *run);
void run_step(struct attention_run *run, size_t n);

tarn_attention_arrays run_arrays(const struct attention_run *run);

/* ---- Comparisons -------------------------------------------------------- */

/* The gradient of input i, and the input called so. */
enum array run_gradient(size_t i);
enum array run_input(const struct attention_run *run, const char *name);

/* "query", "dy", "y", "gradient of query". */
const char *run_array_name(const struct attention_run *run, enum array array);

/* "linear elu causal, B 2 H 3 N 17 ..." for messages; overwritten by the next call. */
const char *run_name(const struct attention_run *run);

/* Bit for bit: y, and with `gradients` those of the inputs. */
void check_same(const struct attention_run *a, const struct attention_run *b, bool gradients);

/* |a - b| <= tolerance (|b| + root mean square of b), element by element; for
 * gradients of queries and keys also of what may have cancelled in b. */
void check_close(const struct attention_run *a, const struct attention_run *b, bool gradients,
                 double tolerance);
void check_array_close(const struct attention_run *a, enum array array, const double *want,
                       double tolerance);

/* Linear attention of this case is the quadratic kind with the same map. */
void check_linear_equals_kernel(struct attention_case is);

void check_finite(const struct attention_run *run, bool gradients);

#endif
