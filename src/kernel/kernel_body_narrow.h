/* SPDX-License-Identifier: MIT */
/* kernel_body_narrow.h - rows for which vectors half as wide have fewer empty lanes go to the
 * table NARROWER: a part of kernel_body.h, and included by it.
 *
 * Processors that work on wide registers in two halves take twice as long for one that is half
 * empty, and the sum of its lanes takes a step more. The loops that show it are here. */

extern const struct tn_kernels NARROWER;

#define BY_WIDTH(name, narrow, parameters, arguments)                                          \
    BY_TABLE(NARROWER, name, narrow, parameters, arguments)
#define BY_TABLE(table, name, narrow, parameters, arguments)                                   \
    static void name##_any parameters                                                          \
    {                                                                                          \
        if (narrow)                                                                            \
            table.name arguments;                                                              \
        else                                                                                   \
            name arguments;                                                                    \
    }

enum { HALF = LANES / 2 };

/* At most half a vector, or one and a half. */
FORCE_INLINE bool is_narrow(size_t width)
{
    return width <= HALF || (width > LANES && width <= LANES + HALF);
}

BY_WIDTH(product, is_narrow(n),
         (float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
          const float *b, ptrdiff_t ldb, size_t m, size_t n, size_t k, bool add_to),
         (c, ldc, a, a_row, a_col, b, ldb, m, n, k, add_to))
BY_WIDTH(recur, is_narrow(r->width), (const struct tn_recurrence *r), (r))
/* Lanes of several narrow vectors are added up in one step less. */
BY_WIDTH(recur_sum, width <= 2 * LANES,
         (float *den, float *z, const float *q, ptrdiff_t ldq, const float *k, ptrdiff_t ldk,
          size_t n, size_t width),
         (den, z, q, ldq, k, ldk, n, width))
BY_WIDTH(dot_rows, width <= 2 * LANES,
         (float *s, const float *x, const float *y, size_t n, size_t width),
         (s, x, y, n, width))
BY_WIDTH(elu1, is_narrow(width),
         (float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n, size_t width),
         (y, ldy, x, ldx, n, width))
BY_WIDTH(scale_dot_rows, is_narrow(width),
         (float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, struct tn_column by,
          struct tn_column dots, const float *z, ptrdiff_t ldz, size_t n, size_t width),
         (y, ldy, x, ldx, by, dots, z, ldz, n, width))
BY_WIDTH(mix_rows, is_narrow(width),
         (float *y, const float *p, const float *x, size_t n, size_t width, bool add_to),
         (y, p, x, n, width, add_to))
BY_WIDTH(narrow, is_narrow(width),
         (uint16_t * y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n, size_t width),
         (y, ldy, x, ldx, n, width))
BY_WIDTH(sum_rows, is_narrow(width),
         (float *sum, const float *x, ptrdiff_t ldx, size_t n, size_t width),
         (sum, x, ldx, n, width))
BY_WIDTH(norm, is_narrow(width),
         (float *y, struct tn_norm_stats *stats, const float *x, const float *gain,
          const float *bias, float eps, size_t n, size_t width),
         (y, stats, x, gain, bias, eps, n, width))
BY_WIDTH(norm_backward, is_narrow(width),
         (float *dx, bool add_dx, float *dgain, float *dbias, const float *dy, const float *x,
          const struct tn_norm_stats *stats, const float *gain, size_t n, size_t width),
         (dx, add_dx, dgain, dbias, dy, x, stats, gain, n, width))
BY_WIDTH(logistics, is_narrow(to->n), (const struct tn_logistics *to), (to))
BY_WIDTH(lstm, is_narrow(H),
         (float *z, float *c, float *h, const float *more, const float *c_before, size_t H),
         (z, c, h, more, c_before, H))
BY_WIDTH(lstm_backward, is_narrow(H),
         (float *dz, float *dc, const float *dh, const float *gates, const float *c,
          const float *c_before, size_t H),
         (dz, dc, dh, gates, c, c_before, H))
BY_WIDTH(update, is_narrow(n),
         (float *w, float *m, float *v, const float *g, float scale_by,
          const struct tn_update *by, size_t n),
         (w, m, v, g, scale_by, by, n))

BY_WIDTH(dropout, is_narrow(n),
         (float *y, const float *x, const float *residual, const struct tn_dropout_keys *keys,
          uint32_t first, size_t n),
         (y, x, residual, keys, first, n))
BY_WIDTH(scale_rows, is_narrow(width),
         (float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, struct tn_column by, size_t n,
          size_t width, bool streams),
         (y, ldy, x, ldx, by, n, width, streams))
BY_WIDTH(elu1_backward, is_narrow(width),
         (float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy, const float *y,
          ptrdiff_t ldy, size_t n, size_t width, bool streams),
         (dx, lddx, dy, lddy, y, ldy, n, width, streams))
BY_WIDTH(widen, is_narrow(width),
         (float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx, size_t n, size_t width),
         (y, ldy, x, ldx, n, width))
BY_WIDTH(scatter_rows, is_narrow(width),
         (float *table, ptrdiff_t ld, const int32_t *rows, const float *x, ptrdiff_t ldx,
          size_t n, size_t width),
         (table, ld, rows, x, ldx, n, width))

#ifndef ONLY_NARROW
/* ---- loops that compare ------------------------------------------------- */

#ifdef COMPARER
extern const struct tn_kernels COMPARER;
#else
#define COMPARER NARROWER
#define CTC_NARROW HALF
#define LSH_NARROW 0
#endif

BY_TABLE(COMPARER, ctc_emit, n <= CTC_NARROW,
         (struct tn_wide y, const float *x, const int32_t *symbols, size_t n, float most,
          float by, int32_t least),
         (y, x, symbols, n, most, by, least))
BY_TABLE(COMPARER, ctc_forward, L <= CTC_NARROW,
         (struct tn_ctc_states to, struct tn_ctc_states from, struct tn_wide y,
          const int32_t *skips, size_t L),
         (to, from, y, skips, L))
BY_TABLE(COMPARER, ctc_backward, L <= CTC_NARROW,
         (struct tn_ctc_states after, struct tn_ctc_states met, struct tn_wide y,
          const int32_t *skips, size_t L),
         (after, met, y, skips, L))
BY_TABLE(COMPARER, ctc_posteriors, L <= CTC_NARROW,
         (float *posteriors, float sums[2], struct tn_ctc_states before,
          struct tn_ctc_states after, int32_t e, size_t L),
         (posteriors, sums, before, after, e, L))
BY_TABLE(COMPARER, lsh_buckets, n <= LSH_NARROW,
         (int32_t * bucket, const float *x, ptrdiff_t ld, size_t half, size_t n),
         (bucket, x, ld, half, n))

#endif

/* ---- products with packed weights --------------------------------------- */

/* The columns of the last panel of b, if they go to the other table. */
FORCE_INLINE size_t narrow_columns(size_t n)
{
    const size_t last = n % B_WIDTH;

    return is_narrow(last) ? last : 0;
}

static void pack_any(float *panels, bool of_b, const float *x, ptrdiff_t ld, bool across,
                     size_t n, size_t k)
{
    const size_t narrow = of_b ? narrow_columns(n) : 0, wide = n - narrow;

    if (wide > 0)
        pack(panels, of_b, x, ld, across, wide, k);
    if (narrow > 0)
        NARROWER.pack(panels + wide * k, true, x + (ptrdiff_t)wide * (across ? 1 : ld), ld,
                      across, narrow, k);
}

static void narrow_panels_any(uint16_t *y, const float *x, size_t n, size_t k, size_t from,
                              size_t steps)
{
    const size_t narrow = narrow_columns(n), wide = n - narrow;

    narrow_panels(y, x, wide, k, from, steps);
    if (narrow > 0)
        NARROWER.narrow_panels(y + wide * k, x + wide * steps, narrow, k, from, steps);
}

static void product_packed_any(const struct tn_panels *p)
{
    const size_t narrow = narrow_columns(p->n), wide = p->n - narrow;
    struct tn_panels part;

    if (narrow == 0) {
        product_packed(p);
        return;
    }
    if (wide == 0) {
        NARROWER.product_packed(p);
        return;
    }
    part = *p;
    part.n = wide;
    product_packed(&part);
    part.n = narrow;
    part.c += wide;
    part.b = (const char *)p->b + wide * p->k * (p->bf16 ? sizeof(uint16_t) : sizeof(float));
    part.bias = p->bias ? p->bias + wide : NULL;
    part.ahead = NULL;
    NARROWER.product_packed(&part);
}
