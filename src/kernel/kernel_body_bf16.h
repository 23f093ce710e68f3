/* SPDX-License-Identifier: MIT */
/* kernel_body_bf16.h - products of inputs and weights that are both bf16: a part of
 * kernel_body.h, which includes it for every way in which the processor may multiply them.
 *
 * A word has two numbers along the sum, the first in its lower half: one instruction adds both
 * products of a word of inputs and a word of weights. Without it a shift and a mask make floats
 * of the halves. Whatever the tile, an element of c is one sum from zero, word after word.
 *
 * kernel_body.h defines BF16(name), how functions are called, and BF16_PAIRS where there is the
 * instruction. */

#ifdef BF16_PAIRS
#define BF16_TARGET PAIR_TARGET
#define BF16_INLINE static inline __attribute__((always_inline)) PAIR_TARGET
#else
#define BF16_TARGET
#define BF16_INLINE FORCE_INLINE
#endif

BF16_INLINE vec BF16(dot)(vec sum, uvec w, const char *a)
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

BF16_INLINE void BF16(tile)(const struct tn_panels *p, size_t row, size_t col, int rows,
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
                    sum[i * vecs + j + v] = BF16(dot)(sum[i * vecs + j + v], w[v], a + i * lda);
        }
    finish_tile(p, &t, sum, (struct tile_shape){rows, panels, false, false, PAIR});
}

/* Rows of c from `row` on, columns from .. to - 1, `panels` panels at a time. */
BF16_INLINE void BF16(strip)(const struct tn_panels *p, size_t row, size_t from, size_t to,
                             int rows, int panels)
{
    const size_t wide = (size_t)panels * B_WIDTH;
    size_t col = from;

    for (; col + wide <= to; col += wide)
        BF16(tile)(p, row, col, rows, panels);
    for (; col < to; col += B_WIDTH)
        BF16(tile)(p, row, col, rows, 1);
}

/* One or two rows take several panels side by side, so that sums do not wait for themselves. */
#define BF16_STRIP(rows)                                                                       \
    BF16_TARGET static void BF16(strip_##rows)(const struct tn_panels *p, size_t row,          \
                                               size_t from, size_t to)                         \
    {                                                                                          \
        BF16(strip)(p, row, from, to, rows, (rows) == 1 ? 4 : (rows) == 2 ? 2 : 1);            \
    }
#define BF16_NAME(rows) BF16(strip_##rows),
EACH_ROWS(BF16_STRIP)

BF16_TARGET static void BF16(product)(const struct tn_panels *p)
{
    static void (*const strips[])(const struct tn_panels *p, size_t row, size_t from,
                                  size_t to) = {EACH_ROWS(BF16_NAME)};
    const struct panel_cut down = cut_a(p->m, sizeof strips / sizeof strips[0]);
    const size_t wide = 4 * B_WIDTH;

    for (size_t col = 0; col < p->n; col += wide)
        for (size_t i = 0; i < down.panels; i++)
            strips[down.size + (i < down.larger) - 1](p, panel_first(down, i), col,
                                                      p->n - col < wide ? p->n : col + wide);
}

#undef BF16_TARGET
#undef BF16_INLINE
#undef BF16_STRIP
#undef BF16_NAME
