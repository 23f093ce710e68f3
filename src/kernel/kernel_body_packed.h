/* SPDX-License-Identifier: MIT */
/* kernel_body_packed.h - products with packed weights: a part of kernel_body.h, which includes
 * it and explains how it is compiled.
 *
 * Read in place, rows that lie a power of two apart share a few sets of the cache and evict
 * each other. Packed, operands are read front to back: a panel of b stays in a cache while all
 * rows of a pass by, and a tile of c stays in registers for the sum over k.
 *
 * Many rows of a are packed too, into panels of up to PANEL_ROWS rows. Up to IN_PLACE_ROWS rows
 * at a time are read where they are, since packing would take as long as multiplying them. One
 * to three rows take several panels of b side by side: the two chains of additions of a panel
 * and a row cannot keep up with memory.
 *
 * Whatever the tile, an element of c is one sum from zero, multiply-add by multiply-add. So a
 * row is the same to the last bit whatever rows are beside it.
 *
 * In bf16 a panel's step is one vector of 32-bit words, with the columns of its first vector in
 * their lower halves and the others in the upper ones: a shift makes floats of the former, a
 * mask of the latter. */

enum {
    A_WIDTH = (PANEL_ROWS + LANES - 1) / LANES * LANES, /* floats of a panel's row */
    B_WIDTH = PAIR * LANES,
    IN_PLACE_ROWS = 6,
    IN_PLACE_PANELS = 4, /* side by side, at most */
    TILE_SUMS = PAIR * (PANEL_ROWS > IN_PLACE_ROWS ? PANEL_ROWS : IN_PLACE_ROWS),
    ROWS_AHEAD = 8,                             /* that packing asks the memory for */
    STEPS = 16,                                 /* of a sum between two requests */
    LINE_FLOATS = TN_ALIGN / (int)sizeof(float) /* of the cache */
};

/* ---- panels ------------------------------------------------------------- */

/* The first `larger` panels have one item more than the others. */
struct panel_cut {
    size_t panels, size, larger;
};

/* As few as hold all rows, of about equal size: loops are slower the fewer rows they have. */
FORCE_INLINE struct panel_cut cut_a(size_t rows, size_t most)
{
    const size_t panels = (rows - 1) / most + 1;

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
 * of x, of which n floats are left. Vectors without an item are not read. */
FORCE_INLINE void pack_across_panel(float *panel, size_t width, const float *x, ptrdiff_t ld,
                                    size_t n, size_t depth)
{
    const size_t whole = n < width ? n / LANES * LANES : width,
                 rest = n < width ? n % LANES : 0;

    for (size_t p = 0; p < depth; p++, panel += width, x += ld) {
        __builtin_prefetch(x + ROWS_AHEAD * ld);
        for (size_t i = 0; i < whole; i += LANES)
            store(panel + i, load(x + i));
        if (rest)
            store(panel + whole, load_tail(x + whole, rest, 0.0f));
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

/* SQUARE items that run along k, of which there are n: 0 < n. */
FORCE_INLINE void pack_along_square(float *panel, size_t width, const float *x, ptrdiff_t ld,
                                    size_t n, size_t k)
{
    const float *item[SQUARE];
    size_t p = 0;

    for (size_t i = 0; i < SQUARE; i++)
        item[i] =
            x + (ptrdiff_t)(i < n ? i : n - 1) * ld; /* the last stands for those beyond */
    for (; p + FOUR <= k; p += FOUR)
        transpose_strip(panel + p * width, (ptrdiff_t)width, item, (ptrdiff_t)p, FOUR);
    for (; p < k; p++)
        for (size_t i = 0; i < SQUARE; i++)
            panel[p * width + i] = item[i][p];
}

FORCE_INLINE void pack_along(float *panels, struct panel_cut cut, size_t width, const float *x,
                             ptrdiff_t ld, size_t n, size_t k)
{
    for (size_t panel = 0; panel < cut.panels; panel++, panels += k * width) {
        const size_t first = panel_first(cut, panel), next = panel_first(cut, panel + 1);
        const size_t some = (next < n ? next : n) - first;
        const float *const from = x + (ptrdiff_t)first * ld;

        for (size_t i = 0; i < some; i += SQUARE)
            pack_along_square(panels + i, width, from + (ptrdiff_t)i * ld, ld, some - i, k);
        for (size_t i = (some + SQUARE - 1) / SQUARE * SQUARE; i % LANES > 0; i += SQUARE)
            for (size_t p = 0; p < k; p++)
                memset(panels + p * width + i, 0, SQUARE * sizeof(float));
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
        pack_across(panels, cut_a(n, PANEL_ROWS), A_WIDTH, x, ld, n, k);
    else
        pack_along(panels, cut_a(n, PANEL_ROWS), A_WIDTH, x, ld, n, k);
}

/* ---- asking ahead ------------------------------------------------------- */

/* Requests that go out between steps of a sum, a few at a time: many at once would hold up the
 * operands, which come from a cache. */
struct asking {
    struct tn_ahead *ahead;
    size_t lines; /* at a time */
};

/* Asks for all of it in that many times. */
static struct asking asking_of(struct tn_ahead *ahead, size_t times)
{
    size_t lines = 0;

    for (const struct tn_ahead *at = ahead; at && at->rows > 0; at++)
        lines += at->rows * ((at->cols - 1) / LINE_FLOATS + 1);
    return (struct asking){ahead, (lines + times - 1) / times};
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

/* ---- bf16 --------------------------------------------------------------- */

typedef uint32_t uvec_anywhere __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

FORCE_INLINE void narrow_panel(uint16_t *y, const float *x, size_t n, size_t steps)
{
    for (; steps > 0; steps--, x += B_WIDTH, y += B_WIDTH) {
        uvec both = narrow_bits(load(x));

        if (n > LANES)
            both |= narrow_bits(load(x + LANES)) << 16;
        *(uvec_anywhere *)y = both;
    }
}

static void narrow_panels(uint16_t *y, const float *x, size_t n, size_t k, size_t from,
                          size_t steps)
{
    for (size_t col = 0; col < n; col += B_WIDTH)
        narrow_panel(y + col * k + from * B_WIDTH, x + col * steps, n - col, steps);
}

/* The two vectors at element `at` of b, or the first of them. */
FORCE_INLINE void weights_at(vec w[PAIR], const void *b, size_t at, bool bf16, int vecs)
{
    if (bf16) {
        const uvec both = *(const uvec_anywhere *)((const uint16_t *)b + at);

        w[0] = (vec)(both << 16);
        if (vecs > 1)
            w[1] = (vec)(both & 0xffff0000);
    } else {
        w[0] = load((const float *)b + at);
        if (vecs > 1)
            w[1] = load((const float *)b + at + LANES);
    }
}

/* ---- sums --------------------------------------------------------------- */

/* Known where it is inlined, so that sums stay in registers. */
struct tile_shape {
    int rows, panels;
    bool in_place, bf16;
    int vecs; /* of a panel: one where c has no columns for the other */
};

/* A tile of c and what it is the product of. */
struct tile {
    float *c;
    const float *a, *bias; /* NULL: none */
    const void *b;
    size_t left; /* columns of c from the tile's first on */
};

FORCE_INLINE void tile_steps(vec sum[TILE_SUMS], const struct tn_panels *p,
                             const struct tile *t, size_t from, size_t to,
                             struct tile_shape shape)
{
    const ptrdiff_t row = shape.in_place ? p->lda : 1, step = shape.in_place ? 1 : A_WIDTH;

    for (size_t s = from; s < to; s++)
        for (int j = 0; j < shape.panels; j++) {
            vec w[PAIR];

            weights_at(w, t->b, ((size_t)j * p->k + s) * B_WIDTH, shape.bf16, shape.vecs);
            for (int i = 0; i < shape.rows; i++)
                for (int v = 0; v < shape.vecs; v++)
                    sum[(i * shape.panels + j) * shape.vecs + v] +=
                        t->a[i * row + (ptrdiff_t)s * step] * w[v];
        }
}

FORCE_INLINE void tile_sums(vec sum[TILE_SUMS], const struct tn_panels *p, const struct tile *t,
                            struct asking *asking, struct tile_shape shape)
{
    size_t s = 0;

    for (int i = 0; i < shape.rows * shape.panels * shape.vecs; i++)
        sum[i] = splat(0.0f);
    for (; !shape.in_place && s + STEPS <= p->k; s += STEPS) {
        ask(asking);
        tile_steps(sum, p, t, s, s + STEPS, shape);
    }
    tile_steps(sum, p, t, s, p->k, shape);
}

/* ---- into c ------------------------------------------------------------- */

/* What becomes of a sum on its way into c, of n floats of a row. */
FORCE_INLINE vec finished(const struct tn_panels *p, vec sum, const float *c, const float *bias,
                          size_t n)
{
    if (p->add)
        sum = fetch(c, n) + sum;
    if (bias)
        sum += fetch(bias, n);
    return p->relu ? larger(splat(0.0f), sum) : sum; /* NaN stays NaN */
}

/* Where c ends within the tile. */
static void finish_edge(const struct tn_panels *p, const struct tile *t, const float *sums,
                        size_t rows, size_t width)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < t->left; j += LANES) {
            float *const c = t->c + (ptrdiff_t)i * p->ldc + (ptrdiff_t)j;

            keep(c,
                 finished(p, load(sums + i * width + j), c, t->bias ? t->bias + j : NULL,
                          t->left - j),
                 t->left - j);
        }
}

FORCE_INLINE void finish(const struct tn_panels *p, const struct tile *t, const vec *sum,
                         struct tile_shape shape)
{
    const int vecs = shape.panels * shape.vecs;

    for (int i = 0; i < shape.rows; i++)
        for (int j = 0; j < vecs; j++) {
            float *const c = t->c + i * p->ldc + j * LANES;

            store(c, finished(p, sum[i * vecs + j], c, t->bias ? t->bias + j * LANES : NULL,
                              LANES));
        }
}

/* ---- tiles -------------------------------------------------------------- */

FORCE_INLINE void finish_tile(const struct tn_panels *p, const struct tile *t, const vec *sum,
                              struct tile_shape shape)
{
    const size_t width = (size_t)(shape.panels * shape.vecs) * LANES;

    if (t->left >= width) {
        finish(p, t, sum, shape);
        return;
    }
    float whole[TILE_SUMS * LANES];

    for (int i = 0; i < shape.rows * shape.panels * shape.vecs; i++)
        store(whole + i * LANES, sum[i]);
    finish_edge(p, t, whole, (size_t)shape.rows, width);
}

FORCE_INLINE void make_tile(const struct tn_panels *panels, const struct tile *at,
                            struct asking *asking, struct tile_shape shape)
{
    const struct tn_panels copy = *panels, *const p = &copy; /* that no store can change */
    const struct tile t = *at;
    vec sum[TILE_SUMS];

    for (int i = 0; i < shape.rows; i++)
        for (int v = 0; v < shape.panels * shape.vecs; v += LINE_FLOATS / LANES)
            __builtin_prefetch(t.c + i * p->ldc + v * LANES, 1);
    tile_sums(sum, p, &t, asking, shape);
    finish_tile(p, &t, sum, shape);
}

/* Rows of c from `row` on, which a begins with, and columns from .. to - 1: whole panels but
 * for the last of c. */
struct strip {
    const float *a;
    size_t row, from, to;
    struct asking *asking; /* of those who look for it here */
};

FORCE_INLINE void make_strip(const struct tn_panels *p, const struct strip *s,
                             struct asking *asking, struct tile_shape shape)
{
    const size_t element = shape.bf16 ? sizeof(uint16_t) : sizeof(float);
    const size_t wide = (size_t)shape.panels * B_WIDTH;
    struct tile_shape one = shape, half;
    size_t col = s->from;

    one.panels = 1;
    half = one;
    half.vecs = 1;
    for (size_t next; col < s->to; col = next) {
        const struct tile t = {
            .c = p->c + (ptrdiff_t)s->row * p->ldc + (ptrdiff_t)col,
            .a = s->a,
            .bias = p->bias ? p->bias + col : NULL,
            .b = (const char *)p->b + col * p->k * element,
            .left = p->n - col,
        };
        const bool whole = shape.panels > 1 && col + wide <= s->to;

        next = col + (whole ? wide : B_WIDTH);
        if (whole)
            make_tile(p, &t, asking, shape);
        else if (t.left > LANES)
            make_tile(p, &t, asking, one);
        else
            make_tile(p, &t, asking, half);
    }
}

/* ---- by the number of rows ---------------------------------------------- */

typedef void strip_maker(const struct tn_panels *p, const struct strip *s,
                         struct asking *asking);

#define STRIP_MAKER(name, rows, panels, in_place, bf16)                                        \
    static void name(const struct tn_panels *p, const struct strip *s, struct asking *asking)  \
    {                                                                                          \
        make_strip(p, s, asking, (struct tile_shape){rows, panels, in_place, bf16, PAIR});     \
    }
#define IN_PLACE_MAKERS(rows, panels_f32, panels_bf16)                                         \
    STRIP_MAKER(in_place_f32_##rows, rows, panels_f32, true, false)                            \
    STRIP_MAKER(in_place_bf16_##rows, rows, panels_bf16, true, true)
#define PACKED_MAKERS(rows)                                                                    \
    STRIP_MAKER(packed_f32_##rows, rows, 1, false, false)                                      \
    STRIP_MAKER(packed_bf16_##rows, rows, 1, false, true)
#define PACKED_F32(rows) packed_f32_##rows,
#define PACKED_BF16(rows) packed_bf16_##rows,

#if PANEL_ROWS == 4
#define EACH_ROWS(X) X(1) X(2) X(3) X(4)
#elif PANEL_ROWS == 6
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#elif PANEL_ROWS == 8
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
#elif PANEL_ROWS == 14
#define EACH_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#error "EACH_ROWS(X) must list the numbers from 1 to PANEL_ROWS"
#endif

IN_PLACE_MAKERS(1, 4, 4)
IN_PLACE_MAKERS(2, 2, 2)
IN_PLACE_MAKERS(3, 2, 1) /* two panels of bf16 would not stay in 16 registers */
IN_PLACE_MAKERS(4, 1, 1)
IN_PLACE_MAKERS(5, 1, 1)
IN_PLACE_MAKERS(6, 1, 1)
EACH_ROWS(PACKED_MAKERS)

static strip_maker *const in_place_makers[][IN_PLACE_ROWS] = {
    {in_place_f32_1, in_place_f32_2, in_place_f32_3, in_place_f32_4, in_place_f32_5,
     in_place_f32_6},
    {in_place_bf16_1, in_place_bf16_2, in_place_bf16_3, in_place_bf16_4, in_place_bf16_5,
     in_place_bf16_6},
};
static strip_maker *const packed_makers[][PANEL_ROWS] = {{EACH_ROWS(PACKED_F32)},
                                                         {EACH_ROWS(PACKED_BF16)}};

/* Panels of b stay in a cache while all rows pass by. */
static void product_packed(const struct tn_panels *p)
{
    const bool in_place = p->lda != 0;
    const struct panel_cut down = cut_a(p->m, in_place ? IN_PLACE_ROWS : PANEL_ROWS);
    const size_t wide = in_place ? IN_PLACE_PANELS * B_WIDTH : B_WIDTH;
    const size_t strips = down.panels * ((p->n - 1) / wide + 1);
    struct asking asking = asking_of(p->ahead, strips * (p->k / STEPS + 1));
    strip_maker *const *const makers =
        in_place ? in_place_makers[p->bf16] : packed_makers[p->bf16];

    for (size_t col = 0; col < p->n; col += wide)
        for (size_t i = 0; i < down.panels; i++) {
            const size_t row = panel_first(down, i);
            const struct strip strip = {
                .a = p->a +
                     (in_place ? (ptrdiff_t)row * p->lda : (ptrdiff_t)(i * p->k * A_WIDTH)),
                .row = row,
                .from = col,
                .to = p->n - col < wide ? p->n : col + wide,
            };

            makers[down.size + (i < down.larger) - 1](p, &strip, &asking);
        }
}
