/* SPDX-License-Identifier: MIT */
/* kernel_body_packed.h - large products from packed operands: the third part of kernel_body.h,
 * which includes it and explains how it is compiled.
 *
 * Read in place, rows that lie a power of two apart share a few sets of the cache and push each
 * other out. Packed, both operands stream: a panel of b stays in the first cache while all
 * panels of a pass by, and PANEL_ROWS x two vectors of c stay in registers for the sum over k. */

enum {
    A_WIDTH = (PANEL_ROWS + LANES - 1) / LANES * LANES, /* floats of a panel's row */
    B_WIDTH = PAIR * LANES,
    ROWS_AHEAD = 8,                             /* that packing asks the memory for */
    STEPS = 16,                                 /* of a sum between two requests */
    LINE_FLOATS = TN_ALIGN / (int)sizeof(float) /* of the cache */
};

/* ---- packing ------------------------------------------------------------ */

/* The next `depth` rows of one panel. Items lie side by side: a panel's row is a piece of a row
 * of x, of which n floats are left. */
FORCE_INLINE void pack_across_panel(float *panel, size_t width, const float *x, ptrdiff_t ld,
                                    size_t n, size_t depth)
{
    for (size_t p = 0; p < depth; p++, panel += width, x += ld) {
        __builtin_prefetch(x + ROWS_AHEAD * ld);
        for (size_t i = 0; i < width; i += LANES)
            store(panel + i, n >= i + LANES ? load(x + i)
                             : n > i        ? load_tail(x + i, n - i, 0.0f)
                                            : splat(0.0f));
    }
}

/* A few rows of x at a time, from end to end: down one panel after the other, every row would be
 * visited for a single line of the cache, many times over. */
FORCE_INLINE void pack_across(float *panels, size_t size, size_t width, const float *x,
                              ptrdiff_t ld, size_t n, size_t k)
{
    for (size_t p = 0; p < k; p += FOUR) {
        const size_t depth = k - p < FOUR ? k - p : FOUR;
        float *panel = panels + p * width;

        for (size_t first = 0; first < n; first += size, panel += k * width)
            pack_across_panel(panel, width, x + (ptrdiff_t)p * ld + first, ld, n - first,
                              depth);
    }
}

/* LANES items that run along k, of which there are n: 0 < n. */
FORCE_INLINE void pack_along_lanes(float *panel, size_t width, const float *x, ptrdiff_t ld,
                                   size_t n, size_t k)
{
    const float *item[LANES];
    size_t p = 0;

    for (size_t i = 0; i < LANES; i++)
        item[i] =
            x + (ptrdiff_t)(i < n ? i : n - 1) * ld; /* the last stands for those beyond */
    for (; p + LANES <= k; p += LANES) {
        vec row[LANES];

        for (int i = 0; i < LANES; i++)
            row[i] = load(item[i] + p);
        transpose_vectors(row);
        for (size_t i = 0; i < LANES; i++)
            store(panel + (p + i) * width, row[i]);
    }
    for (; p < k; p++)
        for (size_t i = 0; i < LANES; i++)
            panel[p * width + i] = item[i][p];
}

FORCE_INLINE void pack_along(float *panels, size_t size, size_t width, const float *x,
                             ptrdiff_t ld, size_t n, size_t k)
{
    for (size_t first = 0; first < n; first += size, panels += k * width) {
        const size_t some = n - first < size ? n - first : size;
        const float *const from = x + (ptrdiff_t)first * ld;

        for (size_t i = 0; i < some; i += LANES)
            pack_along_lanes(panels + i, width, from + (ptrdiff_t)i * ld, ld, some - i, k);
    }
}

static void pack(float *panels, bool of_b, const float *x, ptrdiff_t ld, bool across, size_t n,
                 size_t k)
{
    if (of_b && across)
        pack_across(panels, B_WIDTH, B_WIDTH, x, ld, n, k);
    else if (of_b)
        pack_along(panels, B_WIDTH, B_WIDTH, x, ld, n, k);
    else if (across)
        pack_across(panels, PANEL_ROWS, A_WIDTH, x, ld, n, k);
    else
        pack_along(panels, PANEL_ROWS, A_WIDTH, x, ld, n, k);
}

/* ---- asking ahead ------------------------------------------------------- */

/* Requests that go out between steps of a sum, a few at a time: many at once would hold up the
 * operands, which come from a cache. */
struct asking {
    struct tn_ahead *ahead;
    size_t lines; /* at a time */
};

static size_t lines_ahead(const struct tn_ahead *ahead)
{
    size_t lines = 0;

    for (; ahead->rows > 0; ahead++)
        lines += ahead->rows * ((ahead->cols - 1) / LINE_FLOATS + 1);
    return lines;
}

FORCE_INLINE void ask(struct asking *asking)
{
    struct tn_ahead *ahead = asking->ahead;

    for (size_t count = asking->lines; count > 0 && ahead->rows > 0; count--) {
        __builtin_prefetch(ahead->at + ahead->seen, 0, 2);
        ahead->seen += LINE_FLOATS;
        if (ahead->seen >= ahead->cols) {
            ahead->seen = 0;
            ahead->at += ahead->ld;
            if (--ahead->rows == 0)
                asking->ahead = ++ahead;
        }
    }
}

/* ---- multiplying -------------------------------------------------------- */

FORCE_INLINE void panel_steps(vec sum[PANEL_ROWS][PAIR], const float *a, const float *b,
                              size_t k)
{
    for (size_t p = 0; p < k; p++, a += A_WIDTH, b += B_WIDTH) {
        const vec row[PAIR] = {load(b), load(b + LANES)};

        for (int i = 0; i < PANEL_ROWS; i++)
            for (int j = 0; j < PAIR; j++)
                sum[i][j] += a[i] * row[j];
    }
}

/* One panel of a by one of b. */
FORCE_INLINE void panel_sums(vec sum[PANEL_ROWS][PAIR], const float *a, const float *b,
                             size_t k, struct asking *asking)
{
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++)
            sum[i][j] = splat(0.0f);
    for (; k >= STEPS; k -= STEPS, a += STEPS * A_WIDTH, b += STEPS * B_WIDTH) {
        ask(asking);
        panel_steps(sum, a, b, STEPS);
    }
    panel_steps(sum, a, b, k);
}

/* What becomes of a sum on its way into c: n floats of column `col`. */
FORCE_INLINE vec finished(const struct tn_panels *p, vec sum, const float *c, size_t col,
                          size_t n)
{
    if (p->add)
        sum = fetch(c, n) + sum;
    if (p->bias)
        sum += fetch(p->bias + col, n);
    return p->relu ? larger(splat(0.0f), sum) : sum; /* NaN stays NaN */
}

/* c from row `row` and column `col` on: a whole tile of it. */
static void panel_product(const struct tn_panels *p, struct asking *asking, const float *a,
                          const float *b, size_t row, size_t col)
{
    float *const c = p->c + (ptrdiff_t)row * p->ldc + col;
    vec sum[PANEL_ROWS][PAIR];

    for (int i = 0; i < PANEL_ROWS; i++)
        __builtin_prefetch(c + i * p->ldc, 1);
    panel_sums(sum, a, b, p->k, asking);
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++) {
            float *const at = c + i * p->ldc + j * LANES;

            store(at, finished(p, sum[i][j], at, col + (size_t)j * LANES, LANES));
        }
}

/* At the edges of c: what there is of a tile. */
static void panel_product_part(const struct tn_panels *p, struct asking *asking, const float *a,
                               const float *b, size_t row, size_t col)
{
    const size_t rows = p->m - row < PANEL_ROWS ? p->m - row : PANEL_ROWS;
    const size_t cols = p->n - col < B_WIDTH ? p->n - col : B_WIDTH;
    float *c = p->c + (ptrdiff_t)row * p->ldc + col;
    vec sum[PANEL_ROWS][PAIR];
    float whole[PANEL_ROWS][B_WIDTH];

    panel_sums(sum, a, b, p->k, asking);
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++)
            store(whole[i] + j * LANES, sum[i][j]);
    for (size_t i = 0; i < rows; i++, c += p->ldc)
        for (size_t j = 0; j < cols; j += LANES)
            keep(c + j, finished(p, load(whole[i] + j), c + j, col + j, cols - j), cols - j);
}

static void product_packed(const struct tn_panels *p)
{
    const size_t tiles = ((p->m - 1) / PANEL_ROWS + 1) * ((p->n - 1) / B_WIDTH + 1);
    const size_t times = tiles * (p->k / STEPS + 1);
    struct asking asking = {p->ahead, (lines_ahead(p->ahead) + times - 1) / times};
    const float *b = p->b;

    for (size_t j = 0; j < p->n; j += B_WIDTH, b += p->k * B_WIDTH) {
        const float *a = p->a;

        for (size_t i = 0; i < p->m; i += PANEL_ROWS, a += p->k * A_WIDTH)
            if (p->m - i >= PANEL_ROWS && p->n - j >= B_WIDTH)
                panel_product(p, &asking, a, b, i, j);
            else
                panel_product_part(p, &asking, a, b, i, j);
    }
}
