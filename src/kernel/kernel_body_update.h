/* SPDX-License-Identifier: MIT */
/* kernel_body_update.h - one update of parameters by an optimizer with two moments: the part of
 * kernel_body.h that training needs alone, and included by it.
 *
 * Each of w, m, v and g passes by once: 16 bytes read and 12 written a parameter, so memory and
 * not the root and the quotient sets the pace. */

/* Lane by lane, which gcc and clang both make one instruction. */
FORCE_INLINE vec square_root(vec v)
{
    float x[LANES];

    memcpy(x, &v, sizeof x);
    for (int i = 0; i < LANES; i++)
        x[i] = sqrtf(x[i]);
    memcpy(&v, x, sizeof x);
    return v;
}

/* The moments of a parameter whose gradient stays zero fade for ever, and processors compute up
 * to a hundred times slower with numbers below the smallest normal float, 1.2e-38. */
FORCE_INLINE vec without_dust(vec x)
{
    const vec size = (vec)((ivec)x & INT32_MAX);

    return choose(size < splat(1e-36f), splat(0.0f), x);
}

/* Moments move by a share of the difference: with m' = beta m + (1 - beta) g, beta and 1 - beta
 * as floats would not sum to 1, and for beta2 = 0.999 v would settle 1e-5 beside the mean. */
FORCE_INLINE void update_of(vec *w, vec *m, vec *v, vec g, float scale, struct tn_update by)
{
    g = scale * g + by.l2 * *w;
    *m = without_dust(*m + by.gain1 * (g - *m));
    *v = without_dust(*v + by.gain2 * (g * g - *v));
    *w -= by.shrink * *w + by.step * *m / (by.root * square_root(*v) + by.eps);
}

FORCE_INLINE void update_at(float *w, float *m, float *v, const float *g, float scale,
                            struct tn_update by, size_t n)
{
    vec wi = fetch(w, n), mi = fetch(m, n), vi = fetch(v, n);

    update_of(&wi, &mi, &vi, fetch(g, n), scale, by);
    keep(w, wi, n);
    keep(m, mi, n);
    keep(v, vi, n);
}

static void update(float *w, float *m, float *v, const float *g, float scale,
                   const struct tn_update *by, size_t n)
{
    const struct tn_update all = *by; /* a copy: stores to w cannot change it */

    BY_VECTORS(n, update_at(w + AT, m + AT, v + AT, g + AT, scale, all, LEFT));
}
