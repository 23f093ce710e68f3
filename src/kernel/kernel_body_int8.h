/* SPDX-License-Identifier: MIT */
/* kernel_body_int8.h - products with weights in int8 (int8.h): a part of kernel_body.h, which
 * includes it for every way in which the processor may multiply bytes.
 *
 * By words: bytes become 16-bit numbers, of which an instruction that is as old as vectors
 * multiplies and adds pairs. A word of weights has the inputs 0 and 2 of four, or 1 and 3,
 * since a mask makes those of the bytes, and so have the inputs. Nothing can overflow.
 *
 * By quads: one instruction for the products of four bytes, and their sum.
 *
 * kernel_body.h defines NARROW(name), how functions are called, and for quads INT8_QUADS. */

#ifdef INT8_QUADS
#define NARROW_TARGET QUAD_TARGET
#define NARROW_INLINE static inline __attribute__((always_inline)) QUAD_TARGET
#define INT8_BYTES 4 /* of four inputs */
#define INT8_OFFSET QUAD_OFFSET
#else
#define NARROW_TARGET
#define NARROW_INLINE FORCE_INLINE
#define INT8_BYTES 8
#define INT8_OFFSET 128
#endif

/* ---- inputs ------------------------------------------------------------- */

/* A vector of them. */
NARROW_INLINE void NARROW(put)(char *to, uvec q)
{
#ifdef INT8_QUADS
    QUAD_PUT(to, q);
#else
    /* Of four numbers, words of the first and third and of the second and fourth. */
    const uvec pairs = (q & 0xffff) | (uvec)SWAP_TWOS((vec)q) << 16;
    uint32_t words[LANES];

    memcpy(words, &pairs, sizeof words);
    for (int i = 0; i < LANES; i += 4)
        memcpy(to + i / 4 * INT8_BYTES, words + i, INT8_BYTES);
#endif
}

/* n inputs, at most a block. */
NARROW_INLINE struct tn_int8_input NARROW(quantise_block)(char *to, const float *x, size_t n)
{
    const struct int8_scale scale = int8_scale_of(int8_most_bits(x, n));
    uvec sum = {0};

    for (size_t i = 0; i < n; i += LANES) {
        uvec q = {0};

        if (scale.inverse > 0.0f) /* else numbers may not be finite */
            q = (uvec)(fetch(x + i, n - i) * scale.inverse + splat(exp_shift)) -
                (uvec)splat(exp_shift);
        NARROW(put)(to + i / 4 * INT8_BYTES, q);
        sum += q;
    }
    return (struct tn_int8_input){scale.scale, -(int32_t)int8_sum_lanes(sum) * INT8_OFFSET};
}

NARROW_TARGET static void NARROW(quantise)(void *rows, const float *x, ptrdiff_t ldx, size_t m,
                                           size_t k)
{
    const size_t size = tn_int8_row_size(k), values = tn_int8_inputs_at(k);

    for (size_t i = 0; i < m; i++, x += ldx) {
        char *const row = (char *)rows + i * size;
        struct tn_int8_input *block = (void *)row;

        for (size_t p = 0; p < k; p += TN_INT8_BLOCK)
            *block++ = NARROW(quantise_block)(row + values + p / 4 * INT8_BYTES, x + p,
                                              k - p < TN_INT8_BLOCK ? k - p : TN_INT8_BLOCK);
    }
}

/* ---- sums --------------------------------------------------------------- */

/* Adds the products of four inputs of a row and one vector of columns. */
NARROW_INLINE ivec NARROW(dot)(ivec sum, uvec w, const char *a)
{
#ifdef INT8_QUADS
    uint32_t four;

    memcpy(&four, a, sizeof four);
    return (ivec)QUAD_DOT(sum, w, (uvec){0} + four);
#else
    uint32_t even, odd; /* read one by one: both at once, gcc takes them apart in registers */

    memcpy(&even, a, sizeof even);
    memcpy(&odd, a + sizeof even, sizeof odd);
    return sum + MADD(w & 0x00ff00ff, (uvec){0} + even) +
           MADD(w >> 8 & 0x00ff00ff, (uvec){0} + odd);
#endif
}

/* A tile of c: some rows, and `panels` panels of b side by side. */
NARROW_INLINE void NARROW(sums)(vec *total, const struct tn_panels *p, const char *a,
                                const char *b, int rows, int panels)
{
    const size_t blocks = tn_int8_blocks(p->k), quads = tn_blocks(p->k, 4);
    const size_t size = tn_int8_panel_size(B_WIDTH, p->k);
    const size_t block_size = tn_int8_panel_size(B_WIDTH, TN_INT8_BLOCK);
    const int vecs = panels * PAIR;
    const char *v = a + tn_int8_inputs_at(p->k);

    for (int i = 0; i < rows * vecs; i++)
        total[i] = splat(0.0f);
    for (size_t g = 0; g < blocks; g++, b += block_size) {
        const size_t left = quads - g * (TN_INT8_BLOCK / 4);
        const size_t steps = left < TN_INT8_BLOCK / 4 ? left : TN_INT8_BLOCK / 4;
        const char *w = b + B_WIDTH * sizeof(float);
        ivec sum[TILE_SUMS];

        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vecs; j++)
                sum[i * vecs + j] =
                    (ivec){0} +
                    ((const struct tn_int8_input *)(const void *)(a + i * p->lda))[g].start;
        for (size_t s = 0; s < steps; s++, w += 4 * B_WIDTH, v += INT8_BYTES)
            for (int j = 0; j < vecs; j++) {
                const uvec weights =
                    *(const uvec_anywhere *)(w + (size_t)(j / PAIR) * size +
                                             (size_t)(j % PAIR) * sizeof(uvec));

                for (int i = 0; i < rows; i++)
                    sum[i * vecs + j] = NARROW(dot)(sum[i * vecs + j], weights, v + i * p->lda);
            }
        for (int j = 0; j < vecs; j++) {
            const vec scale =
                load((const float *)(const void *)(b + (size_t)(j / PAIR) * size) +
                     j % PAIR * LANES);

            for (int i = 0; i < rows; i++)
                total[i * vecs + j] +=
                    __builtin_convertvector(sum[i * vecs + j], vec) * scale *
                    ((const struct tn_int8_input *)(const void *)(a + i * p->lda))[g].scale;
        }
    }
}

/* ---- tiles -------------------------------------------------------------- */

NARROW_INLINE void NARROW(tile)(const struct tn_panels *p, const struct strip *s, size_t col,
                                int rows, int panels)
{
    const struct tile t = {
        .c = p->c + (ptrdiff_t)s->row * p->ldc + (ptrdiff_t)col,
        .bias = p->bias ? p->bias + col : NULL,
        .left = p->n - col,
    };
    const size_t size = tn_int8_panel_size(B_WIDTH, p->k);
    vec total[TILE_SUMS];

    NARROW(sums)
    (total, p, (const char *)s->a, (const char *)p->b + col / B_WIDTH * size, rows, panels);
    finish_tile(p, &t, total, (struct tile_shape){rows, panels, false, false, PAIR});
}

#if LANES == 16
#define NARROW_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define NARROW_ROWS(X) X(1) X(2) X(3)
#endif
#define NARROW_PANELS(rows) ((rows) == 1 ? 2 : 1)
#define NARROW_PANELS_MOST 2
#define NARROW_PANEL_AT(p, i, row) ((ptrdiff_t)(row) * (p)->lda)
#include "kernel/kernel_body_strips.h"

#undef INT8_BYTES
#undef INT8_OFFSET
