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

static void recur_sum(float *den, float *z, const float *q, ptrdiff_t ldq, const float *k,
                      ptrdiff_t ldk, size_t n, size_t width)
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

/* ---- transpose ---------------------------------------------------------- */

#if defined(__clang__) || __GNUC__ >= 12

#if LANES == 4
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif LANES == 8
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 16
#define INTERLEAVE_LOW(a, b)                                                                   \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b)                                                                  \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* A perfect shuffle of the rows, log2(LANES) times over, is the transpose. */
FORCE_INLINE void transpose_vectors(vec row[LANES])
{
    vec next[LANES];

    for (int pass = 1; pass < LANES; pass *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            next[2 * i] = INTERLEAVE_LOW(row[i], row[i + LANES / 2]);
            next[2 * i + 1] = INTERLEAVE_HIGH(row[i], row[i + LANES / 2]);
        }
        memcpy(row, next, sizeof next);
    }
}

#else /* gcc before 12 has no portable shuffle */

FORCE_INLINE void transpose_vectors(vec row[LANES])
{
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            const float swapped = row[i][j];

            row[i][j] = row[j][i];
            row[j][i] = swapped;
        }
}

#endif

FORCE_INLINE void transpose_square(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi)
{
    vec row[LANES];

    for (int i = 0; i < LANES; i++)
        row[i] = load(in + i * ldi);
    transpose_vectors(row);
    for (int i = 0; i < LANES; i++)
        store(out + i * ldo, row[i]);
}

static void transpose(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi, size_t rows,
                      size_t cols)
{
    const ptrdiff_t m = (ptrdiff_t)rows, n = (ptrdiff_t)cols;
    const ptrdiff_t m_whole = m - m % LANES, n_whole = n - n % LANES;

    for (ptrdiff_t i = 0; i < m_whole; i += LANES)
        for (ptrdiff_t j = 0; j < n_whole; j += LANES)
            transpose_square(out + j * ldo + i, ldo, in + i * ldi + j, ldi);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = i < m_whole ? n_whole : 0; j < n; j++)
            out[j * ldo + i] = in[i * ldi + j];
}
