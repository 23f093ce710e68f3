/* SPDX-License-Identifier: MIT */
/* kernel_body_few.h - products of few rows with weights that are read once: the part of
 * kernel_body.h for generating one position at a time, and included by it.
 *
 * The weights lie in panels of two vectors of columns, as for product_packed(), and every sum
 * is formed as it is there, so that a row is the same to the last bit beside fifteen others or
 * fifteen thousand. What differs is what waits: a panel by one row is two chains of additions,
 * which cannot keep up with memory, so that up to four panels go side by side, eight chains.
 * Each is a stream of its own, read front to back.
 *
 * In bf16 a panel's step is one vector of 32-bit words, the columns of its first vector in
 * their lower halves, the others in the upper ones: a shift makes floats of those, a mask of
 * these. */

enum { FEW_PANELS = 4, FEW_SUMS = 12 }; /* side by side; vectors in registers */

/* ---- panels in bf16 ----------------------------------------------------- */

typedef uint32_t uvec_anywhere __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

FORCE_INLINE void few_widen(vec w[PAIR], const uint16_t *step)
{
    const uvec both = *(const uvec_anywhere *)step;

    w[0] = (vec)(both << 16);
    w[1] = (vec)(both & 0xffff0000);
}

static void narrow_panel(uint16_t *y, const float *x, size_t steps)
{
    for (; steps > 0; steps--, x += B_WIDTH, y += B_WIDTH)
        *(uvec_anywhere *)y = narrow_bits(load(x)) | narrow_bits(load(x + LANES)) << 16;
}

static void widen_panel(float *y, const uint16_t *x, size_t steps)
{
    for (; steps > 0; steps--, x += B_WIDTH, y += B_WIDTH) {
        vec w[PAIR];

        few_widen(w, x);
        store(y, w[0]);
        store(y + LANES, w[1]);
    }
}

/* ---- sums --------------------------------------------------------------- */

/* `rows` rows of a from column p of the sum on, by `panels` panels of b, `depth` steps. */
struct few_piece {
    const float *a;
    const void *b;
    size_t depth;
};

FORCE_INLINE void few_weights(vec w[PAIR], const void *b, size_t at, bool bf16)
{
    if (bf16) {
        few_widen(w, (const uint16_t *)b + at);
    } else {
        w[0] = load((const float *)b + at);
        w[1] = load((const float *)b + at + LANES);
    }
}

FORCE_INLINE void few_sums(vec sum[FEW_SUMS], const struct tn_few *few, struct few_piece of,
                           int rows, int panels, bool bf16)
{
    for (int i = 0; i < rows * panels * PAIR; i++)
        sum[i] = splat(0.0f);
    for (size_t s = 0; s < of.depth; s++)
        for (int j = 0; j < panels; j++) {
            vec w[PAIR];

            few_weights(w, of.b, ((size_t)j * of.depth + s) * B_WIDTH, bf16);
            for (int i = 0; i < rows; i++)
                for (int v = 0; v < PAIR; v++)
                    sum[(i * panels + j) * PAIR + v] +=
                        of.a[i * few->lda + (ptrdiff_t)s] * w[v];
        }
}

/* ---- tiles -------------------------------------------------------------- */

/* The old c goes first into the sum over pieces, bias last, as in product_packed(). Where there
 * is none, -0 changes no number; 0 would turn -0, to which a product may underflow, into 0. */
FORCE_INLINE void few_start(vec *total, const struct tn_few *few, const float *c, size_t left,
                            int rows, int vecs)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++) {
            const size_t at = (size_t)j * LANES;

            total[i * vecs + j] = few->add && at < left
                                      ? fetch(c + i * few->ldc + j * LANES, left - at)
                                      : -splat(0.0f);
        }
}

FORCE_INLINE void few_finish(const struct tn_few *few, const vec *total, float *c,
                             const float *bias, size_t left, int rows, int vecs)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs && (size_t)(j * LANES) < left; j++) {
            const size_t at = (size_t)j * LANES, n = left - at;
            vec x = total[i * vecs + j];

            if (bias)
                x += fetch(bias + at, n);
            if (few->relu)
                x = larger(splat(0.0f), x); /* NaN stays NaN */
            keep(c + i * few->ldc + (ptrdiff_t)at, x, n);
        }
}

/* `rows` rows from `row` on, `panels` panels from column `col` on. */
FORCE_INLINE void few_tile(const struct tn_few *few, size_t row, size_t col, int rows,
                           int panels, bool bf16)
{
    const int vecs = panels * PAIR;
    const size_t element = bf16 ? sizeof(uint16_t) : sizeof(float), left = few->to - col;
    float *const c = few->c + (ptrdiff_t)row * few->ldc + (ptrdiff_t)col;
    vec total[FEW_SUMS], sum[FEW_SUMS];

    few_start(total, few, c, left, rows, vecs);
    for (size_t p = 0; p < few->k; p += few->piece) {
        const size_t depth = few->k - p < few->piece ? few->k - p : few->piece;
        const size_t at = p * few->width + col * depth;

        few_sums(sum, few,
                 (struct few_piece){few->a + (ptrdiff_t)row * few->lda + (ptrdiff_t)p,
                                    (const char *)few->b + at * element, depth},
                 rows, panels, bf16);
        for (int i = 0; i < rows * vecs; i++)
            total[i] += sum[i];
    }
    few_finish(few, total, c, few->bias ? few->bias + col : NULL, left, rows, vecs);
}

/* Columns col to end, whole panels but for the last of c: `panels` at a time, then one by
 * one. */
FORCE_INLINE void few_strip(const struct tn_few *few, size_t row, size_t col, size_t end,
                            int rows, int panels, bool bf16)
{
    const size_t wide = (size_t)panels * B_WIDTH;

    for (; col + wide <= end; col += wide)
        few_tile(few, row, col, rows, panels, bf16);
    for (; panels > 1 && col < end; col += B_WIDTH)
        few_tile(few, row, col, rows, 1, bf16);
    if (panels == 1 && col < end)
        few_tile(few, row, col, rows, 1, bf16);
}

typedef void few_rows(const struct tn_few *few, size_t row, size_t col, size_t end);

#define FEW_ROWS(rows, panels)                                                                 \
    static void few_rows_##rows(const struct tn_few *few, size_t row, size_t col, size_t end)  \
    {                                                                                          \
        if (few->bf16)                                                                         \
            few_strip(few, row, col, end, rows, panels, true);                                 \
        else                                                                                   \
            few_strip(few, row, col, end, rows, panels, false);                                \
    }

FEW_ROWS(1, 4)
FEW_ROWS(2, 2)
FEW_ROWS(3, 2)
FEW_ROWS(4, 1)
FEW_ROWS(5, 1)
FEW_ROWS(6, 1)

/* As few groups of rows as hold them all, and as equal as can be. Panels stay close while the
 * groups pass by. */
static void few(const struct tn_few *few)
{
    static few_rows *const by_rows[] = {few_rows_1, few_rows_2, few_rows_3,
                                        few_rows_4, few_rows_5, few_rows_6};
    const size_t together = sizeof by_rows / sizeof by_rows[0];
    const size_t groups = (few->m - 1) / together + 1, wide = FEW_PANELS * B_WIDTH;

    for (size_t col = few->from; col < few->to; col += wide) {
        const size_t end = few->to - col < wide ? few->to : col + wide;

        for (size_t i = 0, row = 0, rows; i < groups; i++, row += rows) {
            rows = few->m / groups + (i < few->m % groups);
            by_rows[rows - 1](few, row, col, end);
        }
    }
}
