/* SPDX-License-Identifier: MIT */
/* kernel_body.h - every vector loop, written once with GCC's and clang's vector types: the
 * table of all of them. They are in the parts kernel_body_*.h, which it includes.
 *
 * Included by one file per instruction set, which defines
 *   TN_TABLE      the table to define          TN_NAME    its name
 *   LANES         floats in a vector register
 *   PRODUCT_ROWS  rows of c that product() keeps in registers, two vectors each
 *   PANEL_ROWS    the same for product_packed()
 *   RECUR_STEPS   positions that recur() advances per pass over S, two vectors each
 *   LARGER, SMALLER  optional: instructions that vector types cannot name; the second operand
 *                    where one is NaN
 *   STREAM, STREAMED  optional: a store past the cache, and what orders such stores
 *   LOAD_TAIL, STORE_TAIL  optional: the first n < LANES floats at p by a mask
 *   LOAD_TAIL_ZERO  optional: the same with zeros in the other lanes
 *   FULL_MASKS    optional: these are single instructions
 *   JOIN_QUADS    optional: eight floats of two times four
 *   NARROWER      optional: a table of half as many lanes and as many PANEL_ROWS, for rows
 *                 that it has fewer empty lanes for (kernel_body_narrow.h)
 *   COMPARER      optional: another table for loops that compare numbers most of the time, and
 *                 CTC_NARROW, LSH_NARROW: the most labels and hashes that go there
 *   ONLY_NARROW   optional: this is such a table; it has nothing but what they need, and loops
 *                 of CTC if COMPARES is defined
 *   MADD          optional: sums of pairs of products of 16-bit numbers
 *   QUAD_DOT, and QUAD_PUT, QUAD_TARGET, QUAD_OFFSET, HAS_QUAD_DOT  optional: adds the
 *                 products of four bytes; stores the low bytes of a vector; the attribute of
 *                 functions that use these; what was added to bytes of weights that is to be
 *                 taken off again; whether the processor has them
 *   PAIR_DOT, and PAIR_TARGET, HAS_PAIR_DOT  optional: adds the products of pairs of bf16
 *
 * so that a new instruction set is a file of a few lines. */
#include <math.h>
#include <string.h>

#include "kernel/int8.h"
#include "kernel/kernels.h"

#include "kernel/kernel_body_vector.h"
#include "kernel/kernel_body_exp.h"
#ifndef ONLY_NARROW
#include "kernel/kernel_body_machine.h"
#endif
#include "kernel/kernel_body_product.h"
#include "kernel/kernel_body_rows.h"
#include "kernel/kernel_body_cache.h"
#include "kernel/kernel_body_layer.h"
#include "kernel/kernel_body_logistic.h"
#include "kernel/kernel_body_lstm.h"
#include "kernel/kernel_body_update.h"
#include "kernel/kernel_body_packed.h"
#if !defined(ONLY_NARROW) || defined(COMPARES)
#include "kernel/kernel_body_ctc.h"
#endif
#ifndef ONLY_NARROW
#include "kernel/kernel_body_lsh.h"
#include "kernel/kernel_body_quantised.h"
#endif

#ifdef NARROWER
#include "kernel/kernel_body_narrow.h"
#define ANY(name) name##_any
#else
#define ANY(name) name
#endif

extern const struct tn_kernels TN_TABLE;
const struct tn_kernels TN_TABLE = {
    .name = TN_NAME,
    .lanes = LANES,
#ifdef NARROWER
    .least = LANES / 2,
#else
    .least = LANES,
#endif
    .panel_rows = PANEL_ROWS,
    .pack = ANY(pack),
    .narrow_panels = ANY(narrow_panels),
    .product_packed = ANY(product_packed),
    .product = ANY(product),
    .recur = ANY(recur),
    .recur_sum = ANY(recur_sum),
    .elu1 = ANY(elu1),
    .elu1_backward = ANY(elu1_backward),
    .scale_rows = ANY(scale_rows),
    .scale_dot_rows = ANY(scale_dot_rows),
    .dot_rows = ANY(dot_rows),
    .mix_rows = ANY(mix_rows),
    .narrow = ANY(narrow),
    .widen = ANY(widen),
    .sum_rows = ANY(sum_rows),
    .scatter_rows = ANY(scatter_rows),
    .norm = ANY(norm),
    .norm_backward = ANY(norm_backward),
    .dropout = ANY(dropout),
    .logistics = ANY(logistics),
    .lstm = ANY(lstm),
    .lstm_backward = ANY(lstm_backward),
    .update = ANY(update),
#if !defined(ONLY_NARROW) || defined(COMPARES)
    .ctc_emit = ANY(ctc_emit),
    .ctc_forward = ANY(ctc_forward),
    .ctc_backward = ANY(ctc_backward),
    .ctc_posteriors = ANY(ctc_posteriors),
#endif
#ifndef ONLY_NARROW
    .quantise = quantise,
    .product_int8 = product_int8,
    .product_bf16 = product_bf16,
    .pair_rows = pair_rows,
    .burn = burn,
    .burn_bf16 = burn_bf16,
    .read = read,
    .transpose = transpose,
    .dot = dot,
    .max = max,
    .scale = scale,
    .axpy = axpy,
    .exp_sum = exp_sum,
    .softmax_backward = softmax_backward,
    .settle = settle,
    .add = add,
    .gather_rows = gather_rows,
    .add_rows = add_rows,
    .lsh_buckets = ANY(lsh_buckets),
    .lsh_score = lsh_score,
    .lsh_weigh = lsh_weigh,
    .lsh_backward = lsh_backward,
    .relu = relu,
    .relu_backward = relu_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
#endif
};
