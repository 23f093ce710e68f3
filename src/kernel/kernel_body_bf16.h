/* SPDX-License-Identifier: MIT */
/* kernel_body_bf16.h - products of inputs and weights that are both bf16: a part of
 * kernel_body.h, which includes it for every way in which the processor may multiply them.
 *
 * A word has two numbers along the sum, the first in its lower half: one instruction adds both
 * products of a word of inputs and a word of weights. Without it a shift and a mask make floats
 * of the halves. Whatever the tile, an element of c is one sum from zero, word after word.
 *
 * kernel_body.h defines NARROW(name), how functions are called, and BF16_PAIRS where there is
 * the instruction. */

#ifdef BF16_PAIRS
#define NARROW_TARGET PAIR_TARGET
#define NARROW_INLINE static inline __attribute__((always_inline)) PAIR_TARGET
#else
#define NARROW_TARGET
#define NARROW_INLINE FORCE_INLINE
#endif

#ifdef BF16_PAIRS
/* As burn() does, of ones. */
NARROW_TARGET static double NARROW(burn)(size_t rounds)
{
    volatile float unknown = 0.0f;
    const uvec ones = (uvec){0} + 0x3f803f80;
    vec x[CHAINS], sum = splat(0.0f);

    for (int i = 0; i < CHAINS; i++)
        x[i] = splat(unknown);
    for (size_t n = 0; n < rounds; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = (vec)PAIR_DOT(x[i], ones, ones);
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    unknown = sum_lanes(sum);
    return 4.0 * CHAINS * LANES * (double)rounds;
}
#endif

NARROW_INLINE vec NARROW(dot)(vec sum, uvec w, const char *a)
{
    uint32_t pair;

    memcpy(&pair, a, sizeof pair);
#ifdef BF16_PAIRS
    return (vec)PAIR_DOT(sum, w, (uvec){0} + pair);
#else
    const uint32_t bits[2] = {pair << 16, pair & 0xffff0000};
    float x[2];

    memcpy(x, bits, sizeof x);
    sum += x[0] * (vec)(w << 16);
    return sum + x[1] * (vec)(w & 0xffff0000);
#endif
}

NARROW_INLINE void NARROW(tile)(const struct tn_panels *p, size_t row, size_t col, int rows,
                                int panels)
{
    const size_t words = tn_blocks(p->k, 2), size = words * B_WIDTH * sizeof(uint32_t);
    const int vecs = panels * PAIR;
    const char *a = (const char *)p->a + (ptrdiff_t)row * p->lda;
    const char *b = (const char *)p->b + col / B_WIDTH * size;
    const ptrdiff_t lda = p->lda;
    const struct tile t = {
        .c = p->c + (ptrdiff_t)row * p->ldc + (ptrdiff_t)col,
        .bias = p->bias ? p->bias + col : NULL,
        .left = p->n - col,
    };
    vec sum[TILE_SUMS];

    for (int i = 0; i < rows * vecs; i++)
        sum[i] = splat(0.0f);
    for (size_t s = 0; s < words; s++, a += sizeof(uint32_t), b += B_WIDTH * sizeof(uint32_t))
        for (int j = 0; j < vecs; j += PAIR) {
            const uvec_anywhere *const at = (const void *)(b + (size_t)(j / PAIR) * size);
            const uvec w[PAIR] = {at[0], at[1]};

            for (int i = 0; i < rows; i++)
                for (int v = 0; v < PAIR; v++)
                    sum[i * vecs + j + v] =
                        NARROW(dot)(sum[i * vecs + j + v], w[v], a + i * lda);
        }
    finish_tile(p, &t, sum, (struct tile_shape){rows, panels, false, false, PAIR});
}

#define NARROW_ROWS EACH_ROWS
#define NARROW_PANELS(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define NARROW_PANELS_MOST 4
#include "kernel/kernel_body_strips.h"
