/* SPDX-License-Identifier: MIT */
/* kernel_body_ctc.h - the recursions of connectionist temporal classification: the part of
 * kernel_body.h that sums over alignments, and included by it.
 *
 * The probability of an alignment is a product over frames, which no float holds for long. Its
 * logarithm does, but a sum of two then takes an exp and a log, and loses what the size of the
 * logarithm takes of 24 bits. A float beside an exponent of 32 bits,
 *
 *     p = m 2^e,   m in [1, 2) or 0,
 *
 * is a logarithm to base 2 whose fraction is never taken: a sum brings terms to the greatest
 * exponent, a product adds exponents, and both keep m to 1e-7 of itself, however small p is. */

struct wide {
    vec m;
    ivec e;
};

FORCE_INLINE struct wide wide_load(struct tn_wide x, ptrdiff_t i)
{
    return (struct wide){load(x.m + i), load_int(x.e + i)};
}

FORCE_INLINE void wide_store(struct tn_wide x, size_t i, struct wide w)
{
    store(x.m + i, w.m);
    *(ivec_anywhere *)(x.e + i) = w.e;
}

/* 2^d; 0 for d < -126. Not above 127. */
FORCE_INLINE vec wide_power(ivec d)
{
    return (vec)(((uvec)(d + 127) << 23) & (uvec)(d > -127));
}

/* m back into [1, 2). The e of a 0 may be any, and wrap around. */
FORCE_INLINE struct wide wide_normal(vec m, ivec e)
{
    const ivec none = m == splat(0.0f), bits = (ivec)m;
    const vec fraction = (vec)((bits & 0x7fffff) | 0x3f800000);

    return (struct wide){
        choose(none, m, fraction),
        choose_int(none, (ivec){0} + TN_WIDE_NONE, (ivec)((uvec)e + (uvec)(bits >> 23) - 127))};
}

/* Not brought back into [1, 2) yet. */
FORCE_INLINE struct wide wide_add(struct wide a, struct wide b)
{
    const ivec most = choose_int(a.e > b.e, a.e, b.e);

    return (struct wide){a.m * wide_power(a.e - most) + b.m * wide_power(b.e - most), most};
}

FORCE_INLINE struct wide wide_add3(struct wide a, struct wide b, struct wide c)
{
    const ivec two = choose_int(a.e > b.e, a.e, b.e), most = choose_int(two > c.e, two, c.e);

    return (struct wide){a.m * wide_power(a.e - most) + b.m * wide_power(b.e - most) +
                             c.m * wide_power(c.e - most),
                         most};
}

FORCE_INLINE struct wide wide_times(struct wide a, struct wide b)
{
    return wide_normal(a.m * b.m, (ivec)((uvec)a.e + (uvec)b.e));
}

FORCE_INLINE struct wide wide_where(ivec mask, struct wide a)
{
    return (struct wide){choose(mask, a.m, splat(0.0f)),
                         choose_int(mask, a.e, (ivec){0} + TN_WIDE_NONE)};
}

FORCE_INLINE struct wide wide_splat(struct tn_wide x, size_t i)
{
    return (struct wide){splat(x.m[i]), (ivec){0} + x.e[i]};
}

/* ---- emissions ---------------------------------------------------------- */

FORCE_INLINE struct wide ctc_emission(vec x, float most, float by, int32_t least)
{
    const ivec none = x == splat(-INFINITY), bound = (ivec){0} + least;
    vec v = larger(splat(-1e6f), x - most), shifted;

    exp_split(&v, &shifted, 1);
    const struct wide y = wide_normal(v * by, (ivec)shifted - (ivec)splat(exp_shift));
    const ivec low = y.e < bound;

    return wide_where(
        ~none, (struct wide){choose(low, splat(1.0f), y.m), choose_int(low, bound, y.e)});
}

static void ctc_emit(struct tn_wide y, const float *x, const int32_t *symbols, size_t n,
                     float most, float by, int32_t least)
{
    for (size_t i = 0; i < n; i += LANES) {
        float at[LANES];

        for (size_t j = 0; j < LANES; j++)
            at[j] = i + j < n ? x[symbols[i + j]] : -INFINITY;
        wide_store(y, i, ctc_emission(load(at), most, by, least));
    }
}

/* ---- recursions --------------------------------------------------------- */

/* Emissions of labels from i on: the blank's stands behind the last. */
FORCE_INLINE struct wide ctc_of_labels(struct tn_wide y, size_t i, size_t L)
{
    struct wide w = wide_load(y, (ptrdiff_t)i);

    if (i + LANES > L)
        for (size_t j = L - i; j < LANES; j++) {
            w.m[j] = 0.0f;
            w.e[j] = TN_WIDE_NONE;
        }
    return w;
}

static void ctc_forward(struct tn_ctc_states to, struct tn_ctc_states from, struct tn_wide y,
                        const int32_t *skips, size_t L)
{
    const struct wide blank = wide_splat(y, L);

    for (size_t i = 0; i <= L; i += LANES) {
        const ptrdiff_t at = (ptrdiff_t)i;
        const struct wide before = wide_load(from.labels, at - 1);
        const struct wide blanks = wide_load(from.blanks, at);
        const struct wide labels = wide_add3(wide_load(from.labels, at), blanks,
                                             wide_where(load_int(skips + i), before));

        wide_store(to.labels, i, wide_times(labels, ctc_of_labels(y, i, L)));
        wide_store(to.blanks, i, wide_times(wide_add(blanks, before), blank));
    }
}

static void ctc_backward(struct tn_ctc_states after, struct tn_ctc_states met, struct tn_wide y,
                         const int32_t *skips, size_t L)
{
    const struct wide blank = wide_splat(y, L);

    for (size_t i = 0; i <= L; i += LANES) {
        const struct wide labels = ctc_of_labels(y, i, L);

        wide_store(met.labels, i, wide_times(wide_load(after.labels, (ptrdiff_t)i), labels));
        wide_store(met.blanks, i, wide_times(wide_load(after.blanks, (ptrdiff_t)i), blank));
    }
    for (size_t i = 0; i <= L; i += LANES) {
        const ptrdiff_t at = (ptrdiff_t)i;
        const struct wide own = wide_load(met.labels, at), next = wide_load(met.labels, at + 1);
        const struct wide labels = wide_add3(own, wide_load(met.blanks, at + 1),
                                             wide_where(load_int(skips + i + 1), next));
        const struct wide blanks = wide_add(wide_load(met.blanks, at), own);

        wide_store(after.labels, i, wide_normal(labels.m, labels.e));
        wide_store(after.blanks, i, wide_normal(blanks.m, blanks.e));
    }
}

/* a b 2^-e, about a probability: below 2^-126 it counts as 0. */
FORCE_INLINE vec ctc_posterior(struct tn_wide a, struct tn_wide b, ptrdiff_t i, int32_t e)
{
    const struct wide x = wide_load(a, i), y = wide_load(b, i);
    const ivec none = (x.m * y.m) == splat(0.0f);
    const ivec d =
        choose_int(none, (ivec){0} - 127, (ivec)((uvec)x.e + (uvec)y.e - (uint32_t)e));

    return x.m * y.m * wide_power(choose_int(d > 100, (ivec){0} + 100, d));
}

static void ctc_posteriors(float *posteriors, float sums[2], struct tn_ctc_states before,
                           struct tn_ctc_states after, int32_t e, size_t L)
{
    vec labels = splat(0.0f), blanks = splat(0.0f);

    for (size_t i = 0; i <= L; i += LANES) {
        const vec posterior = ctc_posterior(before.labels, after.labels, (ptrdiff_t)i, e);

        store(posteriors + i, posterior);
        labels += posterior;
        blanks += ctc_posterior(before.blanks, after.blanks, (ptrdiff_t)i, e);
    }
    sums[0] = sum_lanes(blanks);
    sums[1] = sums[0] + sum_lanes(labels);
}
