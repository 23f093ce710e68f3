/* SPDX-License-Identifier: MIT */
/* kernels.h - float arrays in, float arrays out, one table per instruction set.
 *
 * All loops are written once, in kernel_body*.h, and compiled into one table for each
 * instruction set. They run on the calling thread. A plan holds the table it was made with.
 *
 * Tiles are packed: rows of floats `ld` apart, whose width is rounded up to whole vectors, or
 * to `least` (tn_padded), and filled with zeros. An ld may be negative, which walks a tile
 * backwards. Rows of the caller's arrays have any width and are never read or written past it.
 */
#ifndef TN_KERNELS_H
#define TN_KERNELS_H

#include "base/base.h"

/* Position by position, for i = 0 .. n-1 (Algorithm 1):
 *     S  +=  k_i v_i^T        rows x width, in and out
 *     o_i =  q_i^T S          width
 * Causal linear attention and each of its three gradients are this one recurrence with other
 * arrays in the places of q, k and v. */
struct tn_recurrence {
    float *o, *S;
    const float *q, *k, *v; /* n x rows, n x rows, n x width */
    ptrdiff_t ldo, ldS, ldq, ldk, ldv;
    size_t n, rows, width; /* width: whole vectors */
};

/* One float per row, `ld` apart. */
struct tn_column {
    float *at;
    ptrdiff_t ld;
};

/* Rows of a matrix that will be read soon, which a long product asks the memory for as it goes.
 * Lists of them end with one of no rows. */
struct tn_ahead {
    const float *at;
    ptrdiff_t ld;
    size_t rows, cols, seen; /* seen: floats of the first row, 0 at the start */
};

/* What the gradient of a normalised row needs beside the row. */
struct tn_norm_stats {
    float mean, scale; /* scale: 1 / sqrt(variance + eps) */
};

/* An element is kept where the hash of its index, by three keys, reaches the threshold. */
struct tn_dropout_keys {
    uint32_t key[3], threshold;
    float scale; /* of what is kept */
};

/* What one update of an optimizer with two moments does to every parameter. */
struct tn_update {
    float gain1, gain2; /* 1 - beta1, 1 - beta2 */
    float l2;           /* of w, added to the gradient */
    float shrink;       /* of w, taken off w itself */
    float step, root, eps;
};

/* c (m x n) = a b + bias + c, then zero where that is negative; each of the last three is
 * optional. b is packed by pack(), and rounded by narrow_panels() if bf16. a is packed too or,
 * if lda is not 0, read in place: k floats of each row, rows lda apart, which is for few rows.
 */
struct tn_panels {
    float *c;
    const float *a;
    const void *b;
    const float *bias; /* NULL: none */
    ptrdiff_t ldc, lda;
    size_t m, n, k;
    bool bf16, add, relu;
    struct tn_ahead *ahead; /* used up: what is read next; NULL: nothing. Not with lda */
};

/* How likely symbols are by a mixture of K logistics over `values` values placed evenly on
 * [-1, 1] (kernel_body_logistic.h). x is n rows of K logits, K means, K log-scales. Symbol i
 * has -log p = log(ratio[i]) - peak[i] and dx_i is dloss[i] times its gradient. */
#define TN_LOGISTIC_LEAST (-7.0f) /* log-scales below count as this, as the authors clamp */
struct tn_logistics {
    float *dx; /* n x 3 K without gaps; NULL: not wanted; may be x */
    float *ratio, *peak;
    const float *x;
    ptrdiff_t ldx;          /* 0: all rows are one */
    const int32_t *symbols; /* 0 .. values - 1 */
    const float *dloss;
    size_t n, K, values;
    float *work; /* tn_logistics_work() floats */
};

enum { TN_LANES_MOST = 16 };
/* Probabilities of any size as m 2^e, m in [1, 2) or, with e = TN_WIDE_NONE, 0: a float's
 * relative precision however small they are, and sums without a logarithm
 * (kernel_body_ctc.h). */
#define TN_WIDE_NONE (-(1 << 30))
struct tn_wide {
    float *m;
    int32_t *e;
};

/* How likely the states of CTC are at one frame: L labels, and L + 1 blanks of which number i
 * stands before label i. Each array has whole vectors, and one more at both ends, of zeros. */
struct tn_ctc_states {
    struct tn_wide labels, blanks;
};

/* Products q.q of the queries of a chunk with keys, which by the inverse lengths of the keys
 * become scores s (kernel_body_lsh.h). A query sees earlier positions if causal, else all but
 * its own, and only those of its bucket if same_bucket. */
struct tn_lsh_scores {
    float *s, *ds; /* rows ld apart */
    ptrdiff_t ld;
    size_t rows, columns;                     /* columns: whole vectors */
    const int32_t *row_position, *row_bucket; /* of queries */
    const int32_t *position, *bucket;         /* of keys */
    const int32_t *exists;                    /* -1; 0 where there is no key */
    const float *by;
    float *total;             /* by position: weigh */
    const float *lse, *delta; /* by position: backward */
    float *w;                 /* columns: backward */
    bool causal, same_bucket;
    bool bounded; /* neither s nor s - lse of what is seen is beyond +-87 */
};

struct tn_kernels {
    const char *name; /* as in tarn_cpu_name() */
    size_t lanes;     /* floats in a vector */
    size_t least;     /* floats of the shortest rows of tiles */

    /* ---- tiles ---- */

    /* c (m x n) = a b, or c += a b. Element (i, p) of a is a[i*a_row + p*a_col], so that either
     * orientation of a serves; b is k x n; n is whole vectors. The sum over p is formed from
     * zero and added to c once, so splitting a sum over calls rounds the same on every path. */
    void (*product)(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
                    const float *b, ptrdiff_t ldb, size_t m, size_t n, size_t k, bool add);

    /* The same from operands packed into panels: of `panel_rows` rows of a or of two vectors of
     * columns of b. An element of c is one sum from zero, multiply-add by multiply-add,
     * whatever rows and columns are beside it. A panel holds k rows of floats, at most
     * tn_panel_width() apart. How a last panel that is not full lies there is the table's own
     * affair; what its vectors lack is zero, and what that gives is dropped.
     *
     * pack: n rows of a, or columns of b, into panels. Those lie `ld` floats apart and run
     * along k, or, if `across`, lie side by side while k runs in steps of ld. */
    size_t panel_rows;
    void (*pack)(float *panels, bool of_b, const float *x, ptrdiff_t ld, bool across, size_t n,
                 size_t k);

    /* Some steps of the panels y of n columns of b and k steps, to bf16; x is packed alone. */
    void (*narrow_panels)(uint16_t *y, const float *x, size_t n, size_t k, size_t from,
                          size_t steps);
    void (*product_packed)(const struct tn_panels *panels);

    /* The same with packed weights in int8 (int8.h). quantise: m rows of k inputs, into rows
     * tn_int8_row_size() bytes apart. product_int8: .a is such rows, .lda their bytes; all of
     * the sum at once; `bf16` and `ahead` are not looked at. */
    void (*quantise)(void *rows, const float *x, ptrdiff_t ldx, size_t m, size_t k);
    void (*product_int8)(const struct tn_panels *panels);

    /* The same of two bf16 numbers: .a is rows of them, .lda their bytes; k in pairs, with a 0
     * where it is odd. Panels of b are words of two numbers along k, column after column. With
     * lda 0, if burn_bf16() has instructions, .a is such words packed by pack().
     *
     * pair_rows: such words of n rows of f32, the first of two rows in the lower half; a last
     * one alone. */
    void (*product_bf16)(const struct tn_panels *panels);
    void (*pair_rows)(uint32_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                      size_t width);

    void (*recur)(const struct tn_recurrence *r);

    /* z += k_i, then den[i] = q_i . z: the recurrence for a value that is always 1. */
    void (*recur_sum)(float *den, float *z, const float *q, ptrdiff_t ldq, const float *k,
                      ptrdiff_t ldk, size_t n, size_t width);

    /* out (cols x rows) = the transpose of in (rows x cols). */
    void (*transpose)(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi, size_t rows,
                      size_t cols);

    /* ---- rows of any width n ---- */

    float (*dot)(const float *x, const float *y, size_t n);
    float (*max)(const float *x, size_t n);                     /* -inf for n = 0 */
    void (*scale)(float *y, const float *x, float a, size_t n); /* y = a x */
    void (*axpy)(float *y, float a, const float *x, size_t n);  /* y += a x */

    /* y = exp(x - c); returns the sum of y. Below -87 the result is 0. */
    float (*exp_sum)(float *y, const float *x, float c, size_t n);

    /* With p = exp(s - lse):  s = p,  dp = p (dp - delta). The gradient of a softmax row.
     * */
    void (*softmax_backward)(float *s, float *dp, float lse, float delta, size_t n);

    /* ---- n rows of any width, ld apart; numbers that go with rows lie in `struct tn_column`s
     * ---- */

    /* y_i = by_i x_i; by.at NULL: copies. `streams`: y will not be read again soon, and may go
     * past the cache. */
    void (*scale_rows)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                       struct tn_column by, size_t n, size_t width, bool streams);

    /* y_i = by_i x_i, and dot_i = x_i . z_i on the way. */
    void (*scale_dot_rows)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                           struct tn_column by, struct tn_column dot, const float *z,
                           ptrdiff_t ldz, size_t n, size_t width);

    /* s_j = x . y_j, and y (+)= sum_j p_j x_j: of rows behind each other that come from
     * memory. */
    void (*dot_rows)(float *s, const float *x, const float *y, size_t n, size_t width);
    void (*mix_rows)(float *y, const float *p, const float *x, size_t n, size_t width,
                     bool add);

    /* y = elu(x) + 1,  and  dx = dy min(y, 1): elu's derivative is 1 above zero and exp(x)
     * below. (7) */
    void (*elu1)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                 size_t width);
    void (*elu1_backward)(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                          const float *y, ptrdiff_t ldy, size_t n, size_t width, bool streams);

    /* After rows that streamed, before another thread may look at them. */
    void (*settle)(void);

    /* ---- layers; y may be x, dx may be dy ---- */

    /* f32 to bf16, to nearest, ties to even, and back. Not in place. */
    void (*narrow)(uint16_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                   size_t width);
    void (*widen)(float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx, size_t n,
                  size_t width);

    void (*add)(float *y, const float *x, const float *z, size_t n); /* y = x + z */

    /* sum (width floats) += the sum of n rows. */
    void (*sum_rows)(float *sum, const float *x, ptrdiff_t ldx, size_t n, size_t width);

    /* table[rows[i]] += x_i, for i in order. */
    void (*scatter_rows)(float *table, ptrdiff_t ld, const int32_t *rows, const float *x,
                         ptrdiff_t ldx, size_t n, size_t width);

    /* y_i = table[rows[i]];  y_i += x_i. */
    void (*gather_rows)(float *y, ptrdiff_t ldy, const float *table, ptrdiff_t ld,
                        const int32_t *rows, size_t n, size_t width);
    void (*add_rows)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                     size_t width);

    /* Layer normalisation of n rows behind each other; stats may be NULL. Its gradients are
     * added to dgain and dbias, and to dx if add_dx. */
    void (*norm)(float *y, struct tn_norm_stats *stats, const float *x, const float *gain,
                 const float *bias, float eps, size_t n, size_t width);
    void (*norm_backward)(float *dx, bool add_dx, float *dgain, float *dbias, const float *dy,
                          const float *x, const struct tn_norm_stats *stats, const float *gain,
                          size_t n, size_t width);

    /* relu's derivative is seen in its result y, gelu's in its argument x. */
    void (*relu)(float *y, const float *x, size_t n);
    void (*relu_backward)(float *dx, const float *dy, const float *y, size_t n);
    void (*gelu)(float *y, const float *x, size_t n);
    void (*gelu_backward)(float *dx, const float *dy, const float *x, size_t n);

    /* y = scale x where the element is kept, else 0, and + residual if there is one. Element i
     * has index first + i, modulo 2^32. The same bits in every table. */
    void (*dropout)(float *y, const float *x, const float *residual,
                    const struct tn_dropout_keys *keys, uint32_t first, size_t n);

    void (*logistics)(const struct tn_logistics *to);

    /* One row of a step of an LSTM (lstm.h). z: 4 H floats of x, which become the gates i, f,
     * g, o; more: 4 H floats of h. c may be c_before. */
    void (*lstm)(float *z, float *c, float *h, const float *more, const float *c_before,
                 size_t H);

    /* Its gradient: dz from the gates, in whose place it may lie, and from dh; dc, in that of c
     * and out that of c_before. */
    void (*lstm_backward)(float *dz, float *dc, const float *dh, const float *gates,
                          const float *c, const float *c_before, size_t H);

    /* ---- hashed attention; columns are whole vectors ---- */

    /* bucket[j] = the first i at which |x_ij| is largest, plus `half` where x_ij is negative,
     * of `half` rows of n columns. */
    void (*lsh_buckets)(int32_t *bucket, const float *x, ptrdiff_t ld, size_t half, size_t n);

    /* score: s, -infinity where a query does not look. weigh: exp(s), and the sum of a row
     * added to its total; bounded only. backward: with p = exp(s - lse), which s becomes,
     * ds = p (ds - delta); then w_j += sum_i ds_ij s_ij, and ds_ij is multiplied with by_j. */
    void (*lsh_score)(const struct tn_lsh_scores *scores);
    void (*lsh_weigh)(const struct tn_lsh_scores *scores);
    void (*lsh_backward)(const struct tn_lsh_scores *scores);

    /* ---- connectionist temporal classification; arrays end with whole vectors ---- */

    /* y_i = by exp(x[symbols[i]] - most), not below 2^least unless x is -infinity; zeros behind
     * the n-th. */
    void (*ctc_emit)(struct tn_wide y, const float *x, const int32_t *symbols, size_t n,
                     float most, float by, int32_t least);

    /* One frame on: label i may come from itself, blank i and, where skips[i] is -1 and not 0,
     * label i - 1; blank i from itself and label i - 1. y: L labels, then the blank. */
    void (*ctc_forward)(struct tn_ctc_states to, struct tn_ctc_states from, struct tn_wide y,
                        const int32_t *skips, size_t L);

    /* The same backwards: what comes after a frame, from what comes after the next. `met` is
     * worked in. */
    void (*ctc_backward)(struct tn_ctc_states after, struct tn_ctc_states met, struct tn_wide y,
                         const int32_t *skips, size_t L);

    /* before after 2^-e of the labels into posteriors (whole vectors); sums[0] of the blanks,
     * sums[1] of all. */
    void (*ctc_posteriors)(float *posteriors, float sums[2], struct tn_ctc_states before,
                           struct tn_ctc_states after, int32_t e, size_t L);

    /* ---- parameters ---- */

    /* With g' = scale g + l2 w:
     *     m += gain1 (g' - m)     v += gain2 (g'^2 - v)
     *     w -= shrink w + step m / (root sqrt(v) + eps)
     * Moments below 1e-36 become 0. eps must be positive. */
    void (*update)(float *w, float *m, float *v, const float *g, float scale,
                   const struct tn_update *by, size_t n);

    /* ---- the machine ---- */

    /* Fused multiply-adds in registers; returns how many flops that was. */
    double (*burn)(size_t rounds);

    /* The same with products of pairs of bf16; 0: the processor, or the compiler, has no
     * instruction for them. */
    double (*burn_bf16)(size_t rounds);

    /* Reads n floats (whole cache lines) once; the sum keeps the reads alive. */
    float (*read)(const float *x, size_t n);
};

/* The best table this processor runs, or the one called `name`; NULL if there is none such. */
const struct tn_kernels *tn_kernels_pick(const char *name);

/* The i-th table that this processor runs, best first; NULL past the last. */
const struct tn_kernels *tn_kernels_row(size_t i);

static inline size_t tn_padded(const struct tn_kernels *kernels, size_t width)
{
    return width <= kernels->least ? kernels->least : tn_round_up(width, kernels->lanes);
}

static inline size_t tn_logistics_work(const struct tn_kernels *kernels, size_t mixtures)
{
    return 5 * mixtures * kernels->lanes;
}

/* Floats of an array of struct tn_ctc_states, whose first state is one vector behind its
 * start. */
static inline size_t tn_ctc_width(const struct tn_kernels *kernels, size_t labels)
{
    return tn_padded(kernels, labels + 1) + 2 * kernels->lanes;
}

/* Rows of a, or columns of b, in a panel, and the floats between two of its rows. */
static inline size_t tn_panel_size(const struct tn_kernels *kernels, bool of_b)
{
    return of_b ? 2 * kernels->lanes : kernels->panel_rows;
}

static inline size_t tn_panels(const struct tn_kernels *kernels, bool of_b, size_t items)
{
    return tn_blocks(items, tn_panel_size(kernels, of_b));
}

/* The first of the rows of a panel of a: as few panels as hold them all, and as equal as can
 * be, since a kernel serves full panels and those that lack one row. */
static inline size_t tn_panel_row(const struct tn_kernels *kernels, size_t rows, size_t panel)
{
    const size_t panels = tn_panels(kernels, false, rows);

    return panel * (rows / panels) + tn_min(panel, rows % panels);
}

static inline size_t tn_panel_width(const struct tn_kernels *kernels, bool of_b)
{
    return tn_padded(kernels, tn_panel_size(kernels, of_b));
}

#endif
