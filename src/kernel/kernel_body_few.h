/* SPDX-License-Identifier: MIT */
/* kernel_body_few.h - products of few rows with weights that are read once, front to back: the
 * part of kernel_body.h for generating one position at a time, and included by it.
 *
 *     c_ij = a_i . b_j,   b_j a row of weights, f32 or bf16
 *
 * Each sum is one chain of vectors along k, then of its lanes in halves, whatever tile it is
 * computed in: results depend neither on how many rows a has nor on where b was cut. Eight
 * chains side by side hide the latency of their additions.
 *
 * f32 is read where it lies. bf16 is a copy in any case, and has the order in which it is read:
 * groups of FEW_COLS rows of b, each group in steps of 2 LANES elements along k, each step row by
 * row. A step of a row is a vector of 32-bit words, the first LANES elements in their lower
 * halves, the others in the upper ones: a shift makes floats of those, a mask of these. What a
 * group or a step lacks is zero. */

enum {
    FEW_SUMS = 8,                            /* chains in registers */
    FEW_ROWS = 4,                            /* of a in a tile at most */
    FEW_COLS = LANES > 8 ? LANES : FEW_SUMS, /* of c between two turns of sums into rows */
    FEW_LINE = 64,                           /* bytes that memory gives at once */
    FEW_LONG = 4096 /* bytes of a row of f32 that a processor sees is read front to back */
};

/* Elements in a vector of weights. */
FORCE_INLINE ptrdiff_t few_step(bool bf16)
{
    return bf16 ? 2 * LANES : LANES;
}

FORCE_INLINE ptrdiff_t few_padded(size_t k, bool bf16)
{
    const ptrdiff_t step = few_step(bf16);

    return ((ptrdiff_t)k + step - 1) / step * step;
}

/* Rows of a that go together, of those that are left. */
FORCE_INLINE int few_together(size_t m)
{
    return m >= 4 ? 4 : m >= 2 ? 2 : 1;
}

/* ---- packing a ---------------------------------------------------------- */

/* Row i of `rows` that go together, step by step. */
FORCE_INLINE void few_pack_row(float *y, const float *x, size_t k, int rows, bool bf16)
{
    const size_t step = (size_t)few_step(bf16);

    for (; k >= step; k -= step, x += step, y += rows * few_step(bf16))
        memcpy(y, x, step * sizeof(float));
    if (k > 0) {
        memset(y, 0, step * sizeof(float));
        memcpy(y, x, k * sizeof(float));
    }
}

static void few_pack(float *y, const float *a, ptrdiff_t lda, size_t m, size_t k, bool bf16)
{
    const ptrdiff_t step = few_step(bf16), padded = few_padded(k, bf16);

    while (m > 0) {
        const int rows = few_together(m);

        for (int i = 0; i < rows; i++, a += lda)
            few_pack_row(y + i * step, a, k, rows, bf16);
        y += rows * padded;
        m -= (size_t)rows;
    }
}

/* ---- weights in bf16 ---------------------------------------------------- */

typedef uint32_t uvec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

FORCE_INLINE void few_widen_pairs(vec w[2], const void *pairs)
{
    const uvec both = *(const uvec_anywhere *)pairs;

    w[0] = (vec)(both << 16);
    w[1] = (vec)(both & 0xffff0000);
}

/* The step from element p on of row j, of which n x k exist. */
FORCE_INLINE uvec few_pairs(const float *b, ptrdiff_t ldb, size_t j, size_t p, size_t n,
                            size_t k)
{
    vec w[2] = {{0}, {0}};

    for (size_t v = 0; v < 2 && j < n; v++, p += LANES)
        if (p < k)
            w[v] = fetch(b + (ptrdiff_t)j * ldb + p, k - p);
    return narrow_bits(w[0]) | narrow_bits(w[1]) << 16;
}

static void few_hold(void *held, const float *b, ptrdiff_t ldb, size_t n, size_t k)
{
    uvec_anywhere *to = held;

    for (size_t col = 0; col < n; col += FEW_COLS)
        for (size_t p = 0; p < k; p += 2 * LANES)
            for (size_t j = col; j < col + FEW_COLS; j++)
                *to++ = few_pairs(b, ldb, j, p, n, k);
}

static void few_widen(float *b, ptrdiff_t ldb, const void *held, size_t n, size_t k)
{
    const uvec_anywhere *from = held;

    for (size_t col = 0; col < n; col += FEW_COLS)
        for (size_t p = 0; p < k; p += 2 * LANES)
            for (size_t j = col; j < col + FEW_COLS; j++, from++) {
                float *const at = b + (ptrdiff_t)j * ldb + p;
                vec w[2];

                few_widen_pairs(w, from);
                if (j < n)
                    keep(at, w[0], k - p);
                if (j < n && p + LANES < k)
                    keep(at + LANES, w[1], k - p - LANES);
            }
}

/* ---- sums --------------------------------------------------------------- */

/* What a tile of sums is made of: bytes from one column's weights to the next one's, and from
 * one vector to the next along k. */
struct few_rows {
    const float *a; /* packed */
    const char *b;
    ptrdiff_t across, along;
};

/* sum (rows x cols) over the next vector of weights, or the `bytes` that are left of one. */
FORCE_INLINE void few_advance(vec *sum, struct few_rows of, size_t bytes, int rows, int cols,
                              bool bf16)
{
    const int vecs = bf16 ? 2 : 1;

    for (int j = 0; j < cols; j++) {
        const char *const at = of.b + j * of.across;
        vec w[2] = {{0}, {0}};

        if (bf16)
            few_widen_pairs(w, at);
        else if (bytes < sizeof(vec))
            memcpy(w, at, bytes);
        else
            w[0] = *(const vec_anywhere *)at;
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vecs; v++)
                sum[i * cols + j] += load(of.a + (i * vecs + v) * LANES) * w[v];
    }
}

/* Leaves the vectors of `rows` x `cols` sums in `sums`, FEW_COLS apart. As many bytes from
 * `next` on are asked for meanwhile, unless it is 0. */
FORCE_INLINE void few_sums(vec *sums, struct few_rows of, size_t k, uintptr_t next, int rows,
                           int cols, bool bf16)
{
    const int floats = rows * (int)few_step(bf16); /* of a for a vector of weights */
    const size_t steps = k / LANES, rest = bf16 ? 0 : k % LANES * sizeof(float);
    const size_t full = bf16 ? (size_t)(few_padded(k, true) / few_step(true)) : steps;
    const size_t in_line = FEW_LINE / sizeof(vec);
    vec sum[FEW_SUMS];

    for (int i = 0; i < rows * cols; i++)
        sum[i] = splat(0.0f);
    for (size_t i = 0; i < full; i++) {
        if (next && i % in_line == 0)
            for (int j = 0; j < cols; j++, next += FEW_LINE)
                __builtin_prefetch((const void *)next);
        few_advance(sum, of, sizeof(vec), rows, cols, bf16);
        of.a += floats;
        of.b += of.along;
    }
    if (rest > 0)
        few_advance(sum, of, rest, rows, cols, bf16);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++)
            sums[i * FEW_COLS + j] = sum[i * cols + j];
}

/* LANES vectors become one of their totals, in the order of sum_lanes. */
FORCE_INLINE vec few_totals(const vec *sums)
{
    vec turned[LANES];

    transpose_square((float *)turned, LANES, (const float *)sums, LANES);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            turned[i] += turned[i + half];
    return turned[0];
}

/* n <= LANES elements: c = sum + bias + c, rectified. */
FORCE_INLINE void few_finish(const struct tn_few *few, vec x, ptrdiff_t row, ptrdiff_t col,
                             size_t n)
{
    float *const c = few->c + row * few->ldc + col;

    if (few->bias)
        x += n == LANES ? load(few->bias + col) : load_tail(few->bias + col, n, 0.0f);
    if (few->add)
        x += n == LANES ? load(c) : load_tail(c, n, 0.0f);
    if (few->relu)
        x = larger(splat(0.0f), x); /* NaN stays NaN */
    if (n == LANES)
        store(c, x);
    else
        store_tail(c, x, n);
}

/* ---- rectangles --------------------------------------------------------- */

/* `rows` rows and FEW_COLS columns of c, of which n exist. */
FORCE_INLINE void few_group(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                            ptrdiff_t col, size_t n, uintptr_t next, int rows, bool bf16)
{
    const int wide = FEW_SUMS / rows;
    vec sums[FEW_ROWS * FEW_COLS];

    for (int j = 0; j < FEW_COLS; j += wide) {
        few_sums(sums + j, of, few->k, next, rows, wide, bf16);
        of.b += wide * of.across;
        next = next ? next + (uintptr_t)(wide * of.across) : 0;
    }
    for (int i = 0; i < rows; i++)
        for (size_t j = 0; j < FEW_COLS && j < n; j += LANES)
            few_finish(few, few_totals(sums + i * FEW_COLS + j), row + i, col + (ptrdiff_t)j,
                       n - j < LANES ? n - j : LANES);
}

/* The last columns of f32, one by one: there are no weights behind them. */
FORCE_INLINE void few_rest(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                           ptrdiff_t col, int rows)
{
    for (; col < (ptrdiff_t)few->n; col++, of.b += of.across) {
        vec sums[FEW_ROWS * FEW_COLS] = {{0}};

        few_sums(sums, of, few->k, 0, rows, 1, false);
        for (int i = 0; i < rows; i++)
            few_finish(few, few_totals(sums + i * FEW_COLS), row + i, col, 1);
    }
}

FORCE_INLINE void few_pass(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                           ptrdiff_t col, uintptr_t next, int rows, bool bf16)
{
    const size_t n = few->n - (size_t)col;

    if (bf16 || n >= FEW_COLS)
        few_group(few, of, row, col, n, next, rows, bf16);
    else
        few_rest(few, of, row, col, rows);
}

/* All rows of up to FEW_COLS columns, a group. */
FORCE_INLINE void few_columns(const struct tn_few *few, struct few_rows of, ptrdiff_t col,
                              uintptr_t next, bool bf16)
{
    for (size_t row = 0; row < few->m;) {
        const int rows = few_together(few->m - row);

        if (rows == 4)
            few_pass(few, of, (ptrdiff_t)row, col, next, 4, bf16);
        else if (rows == 2)
            few_pass(few, of, (ptrdiff_t)row, col, next, 2, bf16);
        else
            few_pass(few, of, (ptrdiff_t)row, col, next, 1, bf16);
        of.a += rows * few_padded(few->k, bf16);
        row += (size_t)rows;
        next = 0; /* asked for once */
    }
}

/* Rows that are not long are asked for one group ahead. What lies behind the last ones is asked
 * for like the rest: whoever cut b into pieces takes the next one there, and beyond b's end
 * nobody is hurt. */
static void few_f32(const struct tn_few *few)
{
    const ptrdiff_t ldb = few->ldb * (ptrdiff_t)sizeof(float);
    struct few_rows of = {few->a, few->b, ldb, sizeof(vec)};

    for (size_t col = 0; col < few->n; col += FEW_COLS, of.b += FEW_COLS * ldb) {
        const uintptr_t next = (uintptr_t)of.b + (uintptr_t)(FEW_COLS * ldb);

        few_columns(few, of, (ptrdiff_t)col, ldb < FEW_LONG ? next : 0, false);
    }
}

static void few_bf16(const struct tn_few *few)
{
    const ptrdiff_t group = FEW_COLS * few_padded(few->k, true) * (ptrdiff_t)sizeof(uint16_t);
    struct few_rows of = {few->a, few->b, sizeof(vec), FEW_COLS * sizeof(vec)};

    for (size_t col = 0; col < few->n; col += FEW_COLS, of.b += group)
        few_columns(few, of, (ptrdiff_t)col, 0, true);
}
