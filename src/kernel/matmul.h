/* SPDX-License-Identifier: MIT */
/* matmul.h - the dense product, planned once and run many times:
 *
 *     c = activation(a b + bias + c),   bias, activation and the old c each optional
 *
 * a is m x k, b is k x n, c is m x n, rows lie ld elements apart; a transposed operand is
 * stored as its transpose, a as k x m, b as n x k. Sums are in f32 whatever the elements are.
 *
 * Who multiplies is a row of the table in matmul.c. Every backend cuts c into tiles by the
 * shape alone and sums a tile on one thread, so results are the same to the last bit for any
 * number of threads; between backends and instruction sets they differ by rounding.
 *
 * With a packed b, as when generating, a row of c is the same to the last bit whatever m is: a
 * sequence alone equals that sequence in a batch. */
#ifndef TN_MATMUL_H
#define TN_MATMUL_H

#include "kernel/host.h"

/* ---- Types -------------------------------------------------------------- */

/* bf16: the upper half of a float. Packed weights are stored in it, and a stays f32; without,
 * a and b are rounded to it as they are multiplied. int8: blocks with scales (int8.h); and
 * bf16-inputs: weights in bf16 and a rounded to meet them; both of packed weights only. The
 * first three are what files store. */
enum tn_element {
    TN_F32,
    TN_BF16,
    TN_INT8,
    TN_BF16_INPUTS,
    TN_ELEMENTS,
    TN_ELEMENTS_STORED = TN_BF16_INPUTS
};

/* By its name, one of the first `count`; NULL: f32. And the other way. */
tarn_status tn_element_named(enum tn_element *element, const char *name, size_t count,
                             tarn_error *err);
const char *tn_element_name(enum tn_element element);

/* Bytes of a matrix, with its scales. */
size_t tn_element_bytes(enum tn_element element, size_t rows, size_t columns);

enum tn_activation { TN_IDENTITY, TN_RELU, TN_GELU }; /* gelu: x Phi(x), by erf */

/* Zero is a valid default for every field but the sizes. */
struct tn_matmul_desc {
    const char *backend; /* "packed", "int8", "bf16", "plain"; NULL: the first that can */
    size_t m, n, k;
    size_t lda, ldb, ldc; /* 0: rows lie behind each other */
    bool transpose_a, transpose_b;
    enum tn_element elements;
    enum tn_activation activation;
    bool bias, add; /* n floats to every row; the old c */
    bool packed;    /* b is what tn_matmul_pack() made of it, once for many products */
};

/* A plan. Immutable, so any number of threads may run it at once, each with its own scratch. */
struct tn_matmul {
    struct tn_matmul_desc desc; /* without zeros that stand for something */
    const struct tn_matmul_backend *backend;
    const struct tn_host *host;
    size_t scratch; /* bytes, set by the backend */
    void *own;      /* the backend's */
};

struct tn_matmul_arrays {
    float *c;
    const float *a;
    const void *b;     /* floats, or what tn_matmul_pack() made of them */
    const float *bias; /* NULL in a plan without */
    void *scratch;
    size_t m; /* rows of this run */
};

struct tn_matmul_backend {
    const char *name;
    tarn_status (*create)(struct tn_matmul *plan,
                          tarn_error *err);              /* TARN_EMACHINE: not here */
    size_t (*packed_size)(const struct tn_matmul *plan); /* NULL: takes no packed weights */
    void (*pack)(const struct tn_matmul *plan, void *packed, const float *b);
    void (*run)(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays);
    void (*free)(
        struct tn_matmul *plan); /* accepts a plan that create refused; NULL: nothing */
    const struct tn_narrow_format *format; /* of a backend in matmul_narrow.c; else NULL */
};

/* ---- Life --------------------------------------------------------------- */

tarn_status tn_matmul_create(struct tn_matmul **plan, const struct tn_matmul_desc *desc,
                             const struct tn_host *host, tarn_error *err);
void tn_matmul_free(struct tn_matmul *plan); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* Bytes of scratch that one run needs, of any alignment; 0: it takes NULL. */
size_t tn_matmul_scratch_size(const struct tn_matmul *plan);

/* c may not overlap a, b or bias. */
void tn_matmul_run(const struct tn_matmul *plan, float *c, const float *a, const void *b,
                   const float *bias, void *scratch);

/* The first `rows` of c, from as many rows of a, at most m; fewer only if b is packed. */
void tn_matmul_run_rows(const struct tn_matmul *plan, float *c, const float *a, const void *b,
                        const float *bias, size_t rows, void *scratch);

/* Bytes of b as a plan with `packed` wants it, aligned to TN_ALIGN. They are made of b in f32,
 * rounded if the elements are bf16 or int8, and are a function of n, k and the processor: plans
 * that agree in these may share one. */
size_t tn_matmul_packed_size(const struct tn_matmul *plan);
void tn_matmul_pack(const struct tn_matmul *plan, void *packed, const float *b);

/* The backend that was chosen. */
const char *tn_matmul_name(const struct tn_matmul *plan);

/* Whether a and b are rounded to bf16 in the product. */
static inline bool tn_matmul_rounds(const struct tn_matmul_desc *desc)
{
    return desc->elements == TN_BF16 && !desc->packed;
}

static inline size_t tn_element_size(enum tn_element element)
{
    static const unsigned char sizes[TN_ELEMENTS] = {[TN_F32] = sizeof(float),
                                                     [TN_BF16] = sizeof(uint16_t),
                                                     [TN_INT8] = sizeof(int8_t),
                                                     [TN_BF16_INPUTS] = sizeof(uint16_t)};

    return sizes[element];
}

/* ---- bf16 --------------------------------------------------------------- */

/* Whether the loops of a host multiply pairs of bf16, in which dense products are then
 * faster. */
static inline bool tn_host_has_bf16(const struct tn_host *host)
{
    return host->kernels->burn_bf16(1) > 0.0;
}

float tn_bf16_to_f32(uint16_t x);
uint16_t tn_bf16_from_f32(float x); /* to nearest, ties to even; NaN stays NaN */

#endif
