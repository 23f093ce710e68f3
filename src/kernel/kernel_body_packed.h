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

/* ---- multiplying -------------------------------------------------------- */

/* One panel of a by one of b. */
FORCE_INLINE void panel_sums(vec sum[PANEL_ROWS][PAIR], const float *a, const float *b,
                             size_t k)
{
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++)
            sum[i][j] = splat(0.0f);
    for (size_t p = 0; p < k; p++, a += A_WIDTH, b += B_WIDTH) {
        const vec row[PAIR] = {load(b), load(b + LANES)};

        for (int i = 0; i < PANEL_ROWS; i++)
            for (int j = 0; j < PAIR; j++)
                sum[i][j] += a[i] * row[j];
    }
}

static void panel_product(float *c, ptrdiff_t ldc, const float *a, const float *b, size_t k,
                          bool add_c)
{
    vec sum[PANEL_ROWS][PAIR];

    for (int i = 0; i < PANEL_ROWS; i++)
        __builtin_prefetch(c + i * ldc, 1);
    panel_sums(sum, a, b, k);
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++) {
            float *const at = c + i * ldc + j * LANES;

            store(at, add_c ? load(at) + sum[i][j] : sum[i][j]);
        }
}

/* At the edges of c: `rows` x `cols` of it. */
static void panel_product_part(float *c, ptrdiff_t ldc, const float *a, const float *b,
                               size_t k, size_t rows, size_t cols, bool add_c)
{
    float whole[PANEL_ROWS * B_WIDTH];

    panel_product(whole, B_WIDTH, a, b, k, false);
    for (size_t i = 0; i < rows; i++, c += ldc)
        for (size_t j = 0; j < cols; j += LANES) {
            const vec v = load(whole + i * B_WIDTH + j);

            keep(c + j, add_c ? fetch(c + j, cols - j) + v : v, cols - j);
        }
}

static size_t lines_ahead(const struct tn_ahead *ahead)
{
    size_t lines = 0;

    for (; ahead->rows > 0; ahead++)
        lines += ahead->rows * ((ahead->cols - 1) / LINE_FLOATS + 1);
    return lines;
}

/* Asks for the next `count` lines; returns where to go on. */
FORCE_INLINE struct tn_ahead *look_ahead(struct tn_ahead *ahead, size_t count)
{
    for (; count > 0 && ahead->rows > 0; count--) {
        __builtin_prefetch(ahead->at + ahead->seen, 0, 2);
        ahead->seen += LINE_FLOATS;
        if (ahead->seen >= ahead->cols) {
            ahead->seen = 0;
            ahead->at += ahead->ld;
            if (--ahead->rows == 0)
                ahead++;
        }
    }
    return ahead;
}

static void product_packed(float *c, ptrdiff_t ldc, const float *a, const float *b, size_t m,
                           size_t n, size_t k, bool add_c, struct tn_ahead *ahead)
{
    const size_t tiles = ((m - 1) / PANEL_ROWS + 1) * ((n - 1) / B_WIDTH + 1);
    const size_t lines = (lines_ahead(ahead) + tiles - 1) / tiles;

    for (size_t j = 0; j < n; j += B_WIDTH, b += k * B_WIDTH) {
        const float *panel = a;

        for (size_t i = 0; i < m; i += PANEL_ROWS, panel += k * A_WIDTH) {
            float *const at = c + (ptrdiff_t)i * ldc + j;

            ahead = look_ahead(ahead, lines);
            if (m - i >= PANEL_ROWS && n - j >= B_WIDTH)
                panel_product(at, ldc, panel, b, k, add_c);
            else
                panel_product_part(at, ldc, panel, b, k,
                                   m - i < PANEL_ROWS ? m - i : PANEL_ROWS,
                                   n - j < B_WIDTH ? n - j : B_WIDTH, add_c);
        }
    }
}
