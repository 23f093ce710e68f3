/* SPDX-License-Identifier: MIT */
/* kernel_body_few.h - products of few rows with weights that are read once, where they lie: the
 * part of kernel_body.h for generating one position at a time, and included by it.
 *
 *     c_ij = a_i . b_j,   b_j a row of weights, f32 or bf16
 *
 * Each sum is one chain of vectors along k, then of its lanes in halves, whatever tile it is
 * computed in: results depend neither on how many rows a has nor on where b was cut. Eight
 * chains side by side hide the latency of their additions.
 *
 * A vector of 32-bit words holds 2 LANES weights in bf16. Those in the upper halves are floats
 * once the lower ones are zero, those in the lower halves after a shift: two instructions, where
 * putting them in order would take four. So a is packed with even and odd elements apart. */

enum {
    FEW_SUMS = 8,                            /* chains in registers */
    FEW_ROWS = 4,                            /* of a in a tile at most */
    FEW_COLS = LANES > 8 ? LANES : FEW_SUMS, /* of c between two turns of sums into rows */
    FEW_LINE = 64                            /* bytes that memory gives at once */
};

typedef uint32_t uvec_anywhere __attribute__((vector_size(4 * LANES), aligned(2), may_alias));

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

/* ---- packing ------------------------------------------------------------ */

/* A step of one row; in big-endian words the lower half comes second. */
FORCE_INLINE void few_pack_step(float *y, const float *x, bool bf16)
{
    const bool odd = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    if (!bf16) {
        store(y, load(x));
        return;
    }
    for (size_t i = 0; i < LANES; i++) {
        y[i] = x[2 * i + odd];
        y[LANES + i] = x[2 * i + !odd];
    }
}

/* Row i of `rows` that go together. */
FORCE_INLINE void few_pack_row(float *y, const float *x, size_t k, int rows, bool bf16)
{
    const size_t step = (size_t)few_step(bf16);

    for (; k >= step; k -= step, x += step, y += rows * few_step(bf16))
        few_pack_step(y, x, bf16);
    if (k > 0) {
        float rest[2 * LANES] = {0};

        memcpy(rest, x, k * sizeof(float));
        few_pack_step(y, rest, bf16);
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

/* ---- sums --------------------------------------------------------------- */

/* What a tile of sums is made of. */
struct few_rows {
    const float *a; /* packed */
    const char *b;
    ptrdiff_t ldb; /* bytes */
};

FORCE_INLINE void few_load(vec w[2], const void *b, bool bf16)
{
    if (!bf16) {
        w[0] = *(const vec_anywhere *)b;
        return;
    }
    const uvec pairs = *(const uvec_anywhere *)b;

    w[0] = (vec)(pairs << 16);
    w[1] = (vec)(pairs & 0xffff0000);
}

/* sum (rows x cols) over the next `bytes` bytes of weights, a vector or what is left of one. */
FORCE_INLINE void few_advance(vec *sum, struct few_rows of, size_t bytes, int rows, int cols,
                              bool bf16)
{
    const int vecs = bf16 ? 2 : 1;
    vec w[2];

    for (int j = 0; j < cols; j++) {
        const char *at = of.b + j * of.ldb;
        vec rest = {0};

        if (bytes < sizeof rest)
            at = memcpy(&rest, at, bytes);
        few_load(w, at, bf16);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vecs; v++)
                sum[i * cols + j] += load(of.a + (i * vecs + v) * LANES) * w[v];
    }
}

/* Leaves the vectors of `rows` x `cols` sums in `sums`, FEW_COLS apart. As many bytes from
 * `next` on are asked for meanwhile, unless it is 0: the rows are too short for a processor to
 * notice that all of them are read front to back. */
FORCE_INLINE void few_sums(vec *sums, struct few_rows of, size_t k, uintptr_t next, int rows,
                           int cols, bool bf16)
{
    const int floats = rows * (bf16 ? 2 : 1) * LANES; /* of a for a vector of weights */
    size_t bytes = k * (bf16 ? 2 : 4);
    vec sum[FEW_SUMS];

    for (int i = 0; i < rows * cols; i++)
        sum[i] = splat(0.0f);
    for (; bytes >= FEW_LINE; bytes -= FEW_LINE) {
        if (next)
            for (int j = 0; j < cols; j++, next += FEW_LINE)
                __builtin_prefetch((const void *)next);
        for (size_t part = 0; part < FEW_LINE; part += sizeof(vec)) {
            few_advance(sum, of, sizeof(vec), rows, cols, bf16);
            of.a += floats;
            of.b += sizeof(vec);
        }
    }
    for (; bytes >= sizeof(vec); bytes -= sizeof(vec)) {
        few_advance(sum, of, sizeof(vec), rows, cols, bf16);
        of.a += floats;
        of.b += sizeof(vec);
    }
    if (bytes > 0)
        few_advance(sum, of, bytes, rows, cols, bf16);
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

/* `rows` rows and FEW_COLS columns of c. */
FORCE_INLINE void few_group(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                            ptrdiff_t col, uintptr_t next, int rows, bool bf16)
{
    const int wide = FEW_SUMS / rows;
    vec sums[FEW_ROWS * FEW_COLS];

    for (int j = 0; j < FEW_COLS; j += wide) {
        few_sums(sums + j, of, few->k, next, rows, wide, bf16);
        of.b += wide * of.ldb;
        next = next ? next + (uintptr_t)(wide * of.ldb) : 0;
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < FEW_COLS; j += LANES)
            few_finish(few, few_totals(sums + i * FEW_COLS + j), row + i, col + j, LANES);
}

/* The last columns, one by one. */
FORCE_INLINE void few_rest(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                           ptrdiff_t col, int rows, bool bf16)
{
    for (; col < (ptrdiff_t)few->n; col++, of.b += of.ldb) {
        vec sums[FEW_ROWS * FEW_COLS] = {{0}};

        few_sums(sums, of, few->k, 0, rows, 1, bf16);
        for (int i = 0; i < rows; i++)
            few_finish(few, few_totals(sums + i * FEW_COLS), row + i, col, 1);
    }
}

FORCE_INLINE void few_pass(const struct tn_few *few, struct few_rows of, ptrdiff_t row,
                           ptrdiff_t col, uintptr_t next, int rows, bool bf16)
{
    if (col + FEW_COLS <= (ptrdiff_t)few->n)
        few_group(few, of, row, col, next, rows, bf16);
    else
        few_rest(few, of, row, col, rows, bf16);
}

/* All rows of up to FEW_COLS columns. What lies behind the last ones is asked for like the rest:
 * whoever cut b into pieces takes the next one there, and beyond b's end nobody is hurt. */
FORCE_INLINE void few_columns(const struct tn_few *few, ptrdiff_t col, bool bf16)
{
    const ptrdiff_t padded = few_padded(few->k, bf16);
    const ptrdiff_t ldb = few->ldb * (bf16 ? 2 : 4);
    struct few_rows of = {few->a, (const char *)few->b + col * ldb, ldb};
    uintptr_t next = (uintptr_t)of.b + (uintptr_t)(FEW_COLS * ldb);

    for (size_t row = 0; row < few->m;) {
        const int rows = few_together(few->m - row);

        if (rows == 4)
            few_pass(few, of, (ptrdiff_t)row, col, next, 4, bf16);
        else if (rows == 2)
            few_pass(few, of, (ptrdiff_t)row, col, next, 2, bf16);
        else
            few_pass(few, of, (ptrdiff_t)row, col, next, 1, bf16);
        of.a += rows * padded;
        row += (size_t)rows;
        next = 0; /* asked for once */
    }
}

static void few_f32(const struct tn_few *few)
{
    for (size_t col = 0; col < few->n; col += FEW_COLS)
        few_columns(few, (ptrdiff_t)col, false);
}

static void few_bf16(const struct tn_few *few)
{
    for (size_t col = 0; col < few->n; col += FEW_COLS)
        few_columns(few, (ptrdiff_t)col, true);
}
