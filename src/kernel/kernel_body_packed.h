/* SPDX-License-Identifier: MIT */
/* kernel_body_packed.h - large products from packed operands: a part of kernel_body.h, which
 * includes it and explains how it is compiled.
 *
 * Read in place, rows that lie a power of two apart share a few sets of the cache and push each
 * other out. Packed, both operands stream: a panel of b stays in the first cache, one that is
 * held in the second (held.c), while all panels of a pass by, and PANEL_ROWS x two vectors of c
 * stay in registers for the sum over k. */

enum {
    A_WIDTH = (PANEL_ROWS + LANES - 1) / LANES * LANES, /* floats of a panel's row */
    B_WIDTH = PAIR * LANES,
    ROWS_AHEAD = 8,                             /* that packing asks the memory for */
    STEPS = 16,                                 /* of a sum between two requests */
    LINE_FLOATS = TN_ALIGN / (int)sizeof(float) /* of the cache */
};

/* ---- panels ------------------------------------------------------------- */

/* The first `larger` panels have one item more than the others. */
struct panel_cut {
    size_t panels, size, larger;
};

/* As few as hold all rows, of about equal size: what is computed for rows that a panel lacks is
 * lost, and a panel that lacks one has a loop of its own. */
FORCE_INLINE struct panel_cut cut_a(size_t rows)
{
    const size_t panels = (rows - 1) / PANEL_ROWS + 1;

    return (struct panel_cut){panels, rows / panels, rows % panels};
}

FORCE_INLINE struct panel_cut cut_b(size_t columns)
{
    return (struct panel_cut){(columns - 1) / B_WIDTH + 1, B_WIDTH, 0};
}

FORCE_INLINE size_t panel_first(struct panel_cut cut, size_t panel)
{
    return panel * cut.size + (panel < cut.larger ? panel : cut.larger);
}

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

/* A few rows of x at a time, from end to end: down one panel after the other, every row would
 * be visited for a single line of the cache, many times over. */
FORCE_INLINE void pack_across(float *panels, struct panel_cut cut, size_t width, const float *x,
                              ptrdiff_t ld, size_t n, size_t k)
{
    for (size_t p = 0; p < k; p += FOUR) {
        const size_t depth = k - p < FOUR ? k - p : FOUR;
        float *panel = panels + p * width;

        for (size_t i = 0; i < cut.panels; i++, panel += k * width) {
            const size_t first = panel_first(cut, i);

            pack_across_panel(panel, width, x + (ptrdiff_t)p * ld + (ptrdiff_t)first, ld,
                              n - first, depth);
        }
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

FORCE_INLINE void pack_along(float *panels, struct panel_cut cut, size_t width, const float *x,
                             ptrdiff_t ld, size_t n, size_t k)
{
    for (size_t panel = 0; panel < cut.panels; panel++, panels += k * width) {
        const size_t first = panel_first(cut, panel), next = panel_first(cut, panel + 1);
        const size_t some = (next < n ? next : n) - first;
        const float *const from = x + (ptrdiff_t)first * ld;

        for (size_t i = 0; i < some; i += LANES)
            pack_along_lanes(panels + i, width, from + (ptrdiff_t)i * ld, ld, some - i, k);
        for (size_t i = (some + LANES - 1) / LANES * LANES; i < width; i += LANES)
            for (size_t p = 0; p < k; p++)
                store(panels + p * width + i, splat(0.0f));
    }
}

static void pack(float *panels, bool of_b, const float *x, ptrdiff_t ld, bool across, size_t n,
                 size_t k)
{
    if (of_b && across)
        pack_across(panels, cut_b(n), B_WIDTH, x, ld, n, k);
    else if (of_b)
        pack_along(panels, cut_b(n), B_WIDTH, x, ld, n, k);
    else if (across)
        pack_across(panels, cut_a(n), A_WIDTH, x, ld, n, k);
    else
        pack_along(panels, cut_a(n), A_WIDTH, x, ld, n, k);
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

/* `rows` is known where these are inlined, so that sums stay in registers. */
FORCE_INLINE void panel_steps(vec sum[PANEL_ROWS][PAIR], const float *a, const float *b,
                              size_t k, int rows)
{
    for (size_t p = 0; p < k; p++, a += A_WIDTH, b += B_WIDTH) {
        const vec row[PAIR] = {load(b), load(b + LANES)};

        for (int i = 0; i < rows; i++)
            for (int j = 0; j < PAIR; j++)
                sum[i][j] += a[i] * row[j];
    }
}

/* One panel of a by one of b. */
FORCE_INLINE void panel_sums(vec sum[PANEL_ROWS][PAIR], const float *a, const float *b,
                             size_t k, int rows, struct asking *asking)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < PAIR; j++)
            sum[i][j] = splat(0.0f);
    for (; k >= STEPS; k -= STEPS, a += STEPS * A_WIDTH, b += STEPS * B_WIDTH) {
        ask(asking);
        panel_steps(sum, a, b, STEPS, rows);
    }
    panel_steps(sum, a, b, k, rows);
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

/* A panel of a by one of b, and where in c that goes. */
struct panel_pair {
    const float *a, *b;
    size_t row, col;
};

FORCE_INLINE void panel_product_rows(const struct tn_panels *panels,
                                     const struct panel_pair *pair, struct asking *asking,
                                     int rows)
{
    const struct tn_panels copy = *panels, *const p = &copy; /* that no store can change */
    float *const c = p->c + (ptrdiff_t)pair->row * p->ldc + pair->col;
    vec sum[PANEL_ROWS][PAIR];

    for (int i = 0; i < rows; i++)
        __builtin_prefetch(c + i * p->ldc, 1);
    panel_sums(sum, pair->a, pair->b, p->k, rows, asking);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < PAIR; j++) {
            float *const at = c + i * p->ldc + j * LANES;

            store(at, finished(p, sum[i][j], at, pair->col + (size_t)j * LANES, LANES));
        }
}

static void panel_product(const struct tn_panels *p, const struct panel_pair *pair,
                          struct asking *asking)
{
    panel_product_rows(p, pair, asking, PANEL_ROWS);
}

static void panel_product_less(const struct tn_panels *p, const struct panel_pair *pair,
                               struct asking *asking)
{
    panel_product_rows(p, pair, asking, PANEL_ROWS - 1);
}

/* At the edges of c: `rows` of any number, and what columns there are. */
static void panel_product_part(const struct tn_panels *p, const struct panel_pair *pair,
                               struct asking *asking, size_t rows)
{
    const size_t left = p->n - pair->col, cols = left < B_WIDTH ? left : B_WIDTH;
    float *c = p->c + (ptrdiff_t)pair->row * p->ldc + pair->col;
    vec sum[PANEL_ROWS][PAIR];
    float whole[PANEL_ROWS][B_WIDTH];

    panel_sums(sum, pair->a, pair->b, p->k, PANEL_ROWS, asking);
    for (int i = 0; i < PANEL_ROWS; i++)
        for (int j = 0; j < PAIR; j++)
            store(whole[i] + j * LANES, sum[i][j]);
    for (size_t i = 0; i < rows; i++, c += p->ldc)
        for (size_t j = 0; j < cols; j += LANES)
            keep(c + j, finished(p, load(whole[i] + j), c + j, pair->col + j, cols - j),
                 cols - j);
}

static void product_packed(const struct tn_panels *p)
{
    const struct panel_cut down = cut_a(p->m), across = cut_b(p->n);
    const size_t times = down.panels * across.panels * (p->k / STEPS + 1);
    struct asking asking = {p->ahead, (lines_ahead(p->ahead) + times - 1) / times};
    struct panel_pair pair = {.b = p->b};

    for (; pair.col < p->n; pair.col += B_WIDTH, pair.b += p->k * B_WIDTH) {
        pair.a = p->a;
        for (size_t i = 0; i < down.panels; i++, pair.a += p->k * A_WIDTH) {
            const size_t rows = down.size + (i < down.larger);

            pair.row = panel_first(down, i);
            if (rows < PANEL_ROWS - 1 || p->n - pair.col < B_WIDTH)
                panel_product_part(p, &pair, &asking, rows);
            else if (rows < PANEL_ROWS)
                panel_product_less(p, &pair, &asking);
            else
                panel_product(p, &pair, &asking);
        }
    }
}
