/* SPDX-License-Identifier: MIT */
/* kernel_body_bf16.h - products of inputs and weights that are both bf16: a part of
 * kernel_body.h, which includes it for every way in which the processor may multiply them.
 *
 * A word has two numbers along the sum, the first in its lower half: one instruction adds both
 * products of a word of inputs and a word of weights. Without it a shift and a mask make floats
 * of the halves. Whatever the tile, an element of c is one sum from zero, word after word.
 *
 * kernel_body.h defines NARROW(name), how functions are called, BF16_PAIRS where there is the
 * instruction, and BF16_PACKED where inputs are panels of pack(), not rows. */

#ifdef BF16_PAIRS
#define NARROW_TARGET PAIR_TARGET
#define NARROW_INLINE static inline __attribute__((always_inline)) PAIR_TARGET
#else
#define NARROW_TARGET
#define NARROW_INLINE FORCE_INLINE
#endif

#if defined(BF16_PAIRS) && !defined(BF16_PACKED)
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

NARROW_INLINE void NARROW(tile)(const struct tn_panels *p, const struct strip *s, size_t col,
                                int rows, int panels)
{
    const size_t words = tn_blocks(p->k, 2), size = words * B_WIDTH * sizeof(uint32_t);
    const int vecs = panels * PAIR;
    const char *a = (const char *)s->a;
    const char *b = (const char *)p->b + col / B_WIDTH * size;
#ifdef BF16_PACKED
    const ptrdiff_t row = sizeof(uint32_t), step = A_WIDTH * sizeof(uint32_t);
#else
    const ptrdiff_t row = p->lda, step = sizeof(uint32_t);
#endif
    const struct tile t = {
        .c = p->c + (ptrdiff_t)s->row * p->ldc + (ptrdiff_t)col,
        .bias = p->bias ? p->bias + col : NULL,
        .left = p->n - col,
    };
    vec sum[TILE_SUMS];

    for (int i = 0; i < rows * vecs; i++)
        sum[i] = splat(0.0f);
#ifdef BF16_PACKED
    for (int i = 0; i < rows; i++)
        __builtin_prefetch(t.c + i * p->ldc, 1);
#endif
    for (size_t w = 0; w < words; w++, a += step, b += B_WIDTH * sizeof(uint32_t)) {
#ifdef BF16_PACKED
        if (w % STEPS == 0)
            ask(s->asking);
#endif
        for (int j = 0; j < vecs; j += PAIR) {
            const uvec_anywhere *const at = (const void *)(b + (size_t)(j / PAIR) * size);
            const uvec weights[PAIR] = {at[0], at[1]};

            for (int i = 0; i < rows; i++)
                for (int v = 0; v < PAIR; v++)
                    sum[i * vecs + j + v] =
                        NARROW(dot)(sum[i * vecs + j + v], weights[v], a + i * row);
        }
    }
    finish_tile(p, &t, sum, (struct tile_shape){rows, panels, false, false, PAIR});
}

#define NARROW_ROWS EACH_ROWS
#define NARROW_PANELS(rows) ((rows) == 1 ? 4 : (rows) == 2 ? 2 : 1)
#define NARROW_PANELS_MOST 4
#ifdef BF16_PACKED
#define NARROW_PANEL_AT(p, i, row) ((i)*tn_blocks((p)->k, 2) * A_WIDTH * sizeof(uint32_t))
#else
#define NARROW_PANEL_AT(p, i, row) ((ptrdiff_t)(row) * (p)->lda)
#endif
#include "kernel/kernel_body_strips.h"
