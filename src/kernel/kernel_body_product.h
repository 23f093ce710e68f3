/* SPDX-License-Identifier: MIT */
/* kernel_body_product.h - matrices in registers, small enough to be read where they lie: the
 * part of kernel_body.h for attention's tiles and states, and included by it.
 *
 *     product    c_ij (+)= sum_p a_ip b_pj
 *     recur      S += k_i v_i^T,  o_i = q_i^T S, position after position
 *     transpose  out_ji = in_ij
 */

/* ---- product ------------------------------------------------------------ */

/* The m rows of a product that are not computed yet. */
struct product_rows {
    float *c;
    const float *a, *b;
    ptrdiff_t ldc, a_row, a_col, ldb;
    size_t m, k;
    bool add;
};

/* `rows` x `vecs` vectors of c in registers while p runs over the sum. Returns the rows after
 * them. */
FORCE_INLINE struct product_rows product_block(struct product_rows left, int rows, int vecs)
{
    vec sum[PRODUCT_ROWS + 1][PAIR];
    const float *a = left.a, *b = left.b;

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++)
            sum[i][j] = splat(0.0f);
    for (size_t p = 0; p < left.k; p++, a += left.a_col, b += left.ldb) {
        vec row[PAIR];

        for (int j = 0; j < vecs; j++)
            row[j] = load(b + j * LANES);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vecs; j++)
                sum[i][j] += a[i * left.a_row] * row[j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++) {
            float *const at = left.c + i * left.ldc + j * LANES;

            store(at, left.add ? load(at) + sum[i][j] : sum[i][j]);
        }
    left.c += rows * left.ldc;
    left.a += rows * left.a_row;
    left.m -= (size_t)rows;
    return left;
}

/* A row alone waits for each of its multiply-adds. So the one that is left over where values
 * have a further column for the denominator goes with the first block, and others in blocks of
 * four and two. */
FORCE_INLINE void product_columns(struct product_rows left, int vecs)
{
    if (left.m > 1 && left.m % PRODUCT_ROWS == 1)
        left = product_block(left, PRODUCT_ROWS + 1, vecs);
    while (left.m >= PRODUCT_ROWS)
        left = product_block(left, PRODUCT_ROWS, vecs);
    if (PRODUCT_ROWS > 4 && left.m >= 4)
        left = product_block(left, 4, vecs);
    if (left.m >= 2)
        left = product_block(left, 2, vecs);
    if (left.m > 0)
        product_block(left, 1, vecs);
}

static void product(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
                    const float *b, ptrdiff_t ldb, size_t m, size_t n, size_t k, bool add)
{
    struct product_rows all = {c, a, b, ldc, a_row, a_col, ldb, m, k, add};

    for (; n >= PAIR * LANES; n -= PAIR * LANES) {
        product_columns(all, PAIR);
        all.b += PAIR * LANES;
        all.c += PAIR * LANES;
    }
    if (n > 0)
        product_columns(all, 1);
}

/* ---- recur -------------------------------------------------------------- */

/* `steps` positions and `vecs` vectors of width. Each vector of S is read once and written once
 * for `steps` updates and as many uses, so multiply-adds and not stores set the pace. */
FORCE_INLINE void recur_block(const struct tn_recurrence *r, ptrdiff_t i, ptrdiff_t column,
                              int steps, int vecs)
{
    const float *const q = r->q + i * r->ldq, *const k = r->k + i * r->ldk;
    const float *const v = r->v + i * r->ldv + column;
    float *const o = r->o + i * r->ldo + column, *S = r->S + column;
    const size_t rows = r->rows;
    const ptrdiff_t ldS = r->ldS, ldq = r->ldq, ldk = r->ldk;
    vec value[RECUR_STEPS][FOUR], out[RECUR_STEPS][FOUR];

    for (int t = 0; t < steps; t++)
        for (int j = 0; j < vecs; j++) {
            value[t][j] = load(v + t * r->ldv + j * LANES);
            out[t][j] = splat(0.0f);
        }
    for (size_t c = 0; c < rows; c++, S += ldS) {
        vec s[FOUR];

        for (int j = 0; j < vecs; j++)
            s[j] = load(S + j * LANES);
        for (int t = 0; t < steps; t++) {
            const float key = k[t * ldk + (ptrdiff_t)c], query = q[t * ldq + (ptrdiff_t)c];

            for (int j = 0; j < vecs; j++) {
                s[j] += key * value[t][j];
                out[t][j] += query * s[j];
            }
        }
        for (int j = 0; j < vecs; j++)
            store(S + j * LANES, s[j]);
    }
    for (int t = 0; t < steps; t++)
        for (int j = 0; j < vecs; j++)
            store(o + t * r->ldo + j * LANES, out[t][j]);
}

FORCE_INLINE void recur_columns(const struct tn_recurrence *r, size_t column, int vecs)
{
    size_t i = 0;

    for (; i + RECUR_STEPS <= r->n; i += RECUR_STEPS)
        recur_block(r, (ptrdiff_t)i, (ptrdiff_t)column, RECUR_STEPS, vecs);
    for (; i < r->n; i++)
        recur_block(r, (ptrdiff_t)i, (ptrdiff_t)column, 1, vecs);
}

static void recur(const struct tn_recurrence *r)
{
    size_t column = 0;

    /* One position waits for S to come from memory: the longer the pieces, the better. */
    if (r->n == 1)
        for (; column + FOUR * LANES <= r->width; column += FOUR * LANES)
            recur_block(r, 0, (ptrdiff_t)column, 1, FOUR);
    for (; column + PAIR * LANES <= r->width; column += PAIR * LANES)
        recur_columns(r, column, PAIR);
    if (column < r->width)
        recur_columns(r, column, 1);
}

/* `vecs` vectors of z in registers, from row to row: what one row stored the next would wait
 * for. */
FORCE_INLINE void recur_sum_narrow(float *den, float *z, const float *q, ptrdiff_t ldq,
                                   const float *k, ptrdiff_t ldk, size_t n, int vecs, bool more)
{
    vec total[FOUR];

    for (int j = 0; j < vecs; j++)
        total[j] = load(z + j * LANES);
    for (size_t i = 0; i < n; i++, q += ldq, k += ldk) {
        vec sum = splat(0.0f);

        for (int j = 0; j < vecs; j++) {
            total[j] += load(k + j * LANES);
            sum += load(q + j * LANES) * total[j];
        }
        den[i] = more ? den[i] + sum_lanes(sum) : sum_lanes(sum);
    }
    for (int j = 0; j < vecs; j++)
        store(z + j * LANES, total[j]);
}

FORCE_INLINE void recur_sum_wide(float *den, float *z, const float *q, ptrdiff_t ldq,
                                 const float *k, ptrdiff_t ldk, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, q += ldq, k += ldk) {
        vec sum = splat(0.0f);

        for (size_t c = 0; c < width; c += LANES) {
            const vec total = load(z + c) + load(k + c);

            store(z + c, total);
            sum += load(q + c) * total;
        }
        den[i] = sum_lanes(sum);
    }
}

static void recur_sum(float *den, float *z, const float *q, ptrdiff_t ldq, const float *k,
                      ptrdiff_t ldk, size_t n, size_t width)
{
    size_t c = 0;

    if (width > 4 * FOUR * LANES) {
        recur_sum_wide(den, z, q, ldq, k, ldk, n, width);
        return;
    }
    for (; c + FOUR * LANES <= width; c += FOUR * LANES)
        recur_sum_narrow(den, z + c, q + c, ldq, k + c, ldk, n, FOUR, c > 0);
    if (width - c == 3 * LANES)
        recur_sum_narrow(den, z + c, q + c, ldq, k + c, ldk, n, 3, c > 0);
    else if (width - c == 2 * LANES)
        recur_sum_narrow(den, z + c, q + c, ldq, k + c, ldk, n, 2, c > 0);
    else if (width > c)
        recur_sum_narrow(den, z + c, q + c, ldq, k + c, ldk, n, 1, c > 0);
}

/* ---- transpose ---------------------------------------------------------- */

/* Parts of four floats change places within registers: four columns of SQUARE rows become four
 * rows. Wider registers would not help, since processors move their parts one after the
 * other. */
enum { SQUARE = LANES < 8 ? LANES : 8 };

typedef float side __attribute__((vector_size(4 * SQUARE))); /* of a square */
typedef float side_anywhere __attribute__((vector_size(4 * SQUARE), aligned(4), may_alias));

#if defined(__clang__) || __GNUC__ >= 12

#define QUAD_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define QUAD_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define QUAD_FRONT(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define QUAD_BACK(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#if LANES == 4
#define SIDE_LOW QUAD_LOW
#define SIDE_HIGH QUAD_HIGH
#define SIDE_FRONT QUAD_FRONT
#define SIDE_BACK QUAD_BACK
#else
#define SIDE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define SIDE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define SIDE_FRONT(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define SIDE_BACK(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#endif

#ifndef JOIN_QUADS
#define JOIN_QUADS(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#endif

#define TRANSPOSE_PARTS(NAME, TYPE)                                                            \
    const TYPE low01 = NAME##_LOW(row[0], row[1]), low23 = NAME##_LOW(row[2], row[3]);         \
    const TYPE high01 = NAME##_HIGH(row[0], row[1]), high23 = NAME##_HIGH(row[2], row[3]);     \
    row[0] = NAME##_FRONT(low01, low23);                                                       \
    row[1] = NAME##_BACK(low01, low23);                                                        \
    row[2] = NAME##_FRONT(high01, high23);                                                     \
    row[3] = NAME##_BACK(high01, high23)

FORCE_INLINE void transpose_sides(side row[FOUR])
{
    TRANSPOSE_PARTS(SIDE, side);
}

FORCE_INLINE void transpose_quads(quad row[FOUR])
{
    TRANSPOSE_PARTS(QUAD, quad);
}

/* n <= 4 floats; 0 for the others. */
FORCE_INLINE quad fetch_quad(const float *p, size_t n)
{
    if (n < FOUR)
        return load_quad(p, n, (quad){0});
    return *(const quad_anywhere *)p;
}

/* Those at a and, in wider registers, at b. */
FORCE_INLINE side load_side(const float *a, const float *b, size_t n)
{
#if LANES == 4
    (void)b;
    return fetch_quad(a, n);
#else
    return JOIN_QUADS(fetch_quad(a, n), fetch_quad(b, n));
#endif
}

/* n <= 4 floats of each of SQUARE rows. */
FORCE_INLINE void transpose_strip(float *out, ptrdiff_t ldo, const float *const in[SQUARE],
                                  ptrdiff_t at, size_t n)
{
    side row[FOUR];

    for (int i = 0; i < FOUR; i++)
        row[i] = load_side(in[i] + at, in[SQUARE - FOUR + i] + at, n);
    transpose_sides(row);
    for (size_t i = 0; i < FOUR && i < n; i++)
        *(side_anywhere *)(out + (ptrdiff_t)i * ldo) = row[i];
}

/* The same of four rows. */
FORCE_INLINE void transpose_four(float *out, ptrdiff_t ldo, const float *const in[FOUR],
                                 ptrdiff_t at, size_t n)
{
    quad row[FOUR];

    for (int i = 0; i < FOUR; i++)
        row[i] = fetch_quad(in[i] + at, n);
    transpose_quads(row);
    for (size_t i = 0; i < FOUR && i < n; i++)
        *(quad_anywhere *)(out + (ptrdiff_t)i * ldo) = row[i];
}

#else /* gcc before 12 has no portable shuffle */

FORCE_INLINE void transpose_strip(float *out, ptrdiff_t ldo, const float *const in[SQUARE],
                                  ptrdiff_t at, size_t n)
{
    for (int i = 0; i < SQUARE; i++)
        for (size_t j = 0; j < n; j++)
            out[(ptrdiff_t)j * ldo + i] = in[i][at + (ptrdiff_t)j];
}

FORCE_INLINE void transpose_four(float *out, ptrdiff_t ldo, const float *const in[FOUR],
                                 ptrdiff_t at, size_t n)
{
    for (int i = 0; i < FOUR; i++)
        for (size_t j = 0; j < n; j++)
            out[(ptrdiff_t)j * ldo + i] = in[i][at + (ptrdiff_t)j];
}

#endif

/* n <= 4 columns from j on of SQUARE or of four rows. */
FORCE_INLINE void transpose_some(float *out, ptrdiff_t ldo, const float *const row[SQUARE],
                                 ptrdiff_t j, size_t n, int rows)
{
    if (rows == SQUARE)
        transpose_strip(out + j * ldo, ldo, row, j, n);
    else
        transpose_four(out + j * ldo, ldo, row, j, n);
}

/* The last columns, and rows, if there are fewer than four, go with some before them a second
 * time. */
FORCE_INLINE void transpose_rows(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi,
                                 ptrdiff_t cols, int rows)
{
    const float *row[SQUARE];

    for (int k = 0; k < rows; k++)
        row[k] = in + k * ldi;
    for (ptrdiff_t j = 0; j + FOUR <= cols; j += FOUR)
        transpose_some(out, ldo, row, j, FOUR, rows);
    if (cols > FOUR && cols % FOUR > 0)
        transpose_some(out, ldo, row, cols - FOUR, FOUR, rows);
    else if (cols == 3)
        transpose_some(out, ldo, row, 0, 3, rows);
    else if (cols == 2)
        transpose_some(out, ldo, row, 0, 2, rows);
    else if (cols == 1)
        transpose_some(out, ldo, row, 0, 1, rows);
}

/* Fewer than four, all there are. */
FORCE_INLINE void transpose_few(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi,
                                ptrdiff_t cols, int rows)
{
    for (ptrdiff_t j = 0; j < cols; j++, out += ldo)
        for (int k = 0; k < rows; k++)
            out[k] = in[k * ldi + j];
}

static void transpose(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi, size_t rows,
                      size_t cols)
{
    const ptrdiff_t m = (ptrdiff_t)rows, n = (ptrdiff_t)cols;
    ptrdiff_t i = 0;

    for (; i + SQUARE <= m; i += SQUARE)
        transpose_rows(out + i, ldo, in + i * ldi, ldi, n, SQUARE);
    for (; i + FOUR <= m; i += FOUR)
        transpose_rows(out + i, ldo, in + i * ldi, ldi, n, FOUR);
    if (m > FOUR && i < m)
        transpose_rows(out + m - FOUR, ldo, in + (m - FOUR) * ldi, ldi, n, FOUR);
    else if (m - i == 3)
        transpose_few(out + i, ldo, in + i * ldi, ldi, n, 3);
    else if (m - i == 2)
        transpose_few(out + i, ldo, in + i * ldi, ldi, n, 2);
    else if (m - i == 1)
        transpose_few(out + i, ldo, in + i * ldi, ldi, n, 1);
}
