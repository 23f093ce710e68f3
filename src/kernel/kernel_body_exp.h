/* SPDX-License-Identifier: MIT */
/* kernel_body_exp.h - exp() of vectors, and elu + 1. */
static const float exp_shift = 12582912.0f; /* 1.5 * 2^23 */

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) = 1 + r p(r) with the p of
 * degree 4 that makes the largest relative error smallest: 1e-7. ln 2 is subtracted in two
 * parts, the first exact in few bits. Adding 1.5 * 2^23 rounds to a whole number and leaves it
 * in the low bits of the float. For x within -87.33 .. 88.37, where 2^n is a normal float; NaN
 * stays NaN. exp_split leaves exp(r) in x and n in shifted, for any x above -1e6.
 *
 * Up to four vectors step by step: each step waits for the one before it, so chains side by
 * side keep the multipliers busy where one would leave them idle. */
FORCE_INLINE void exp_split(vec *x, vec *shifted, int count)
{
    static const float coefficients[] = {0.0418981612f, 0.166676387f, 0.499991477f,
                                         0.999999702f, 1.0f};
    const vec shift = splat(exp_shift);
    vec p[FOUR];

    for (int j = 0; j < count; j++)
        shifted[j] = x[j] * splat(1.44269504f) + shift;
    for (int j = 0; j < count; j++)
        x[j] = x[j] - (shifted[j] - shift) * splat(0.693359375f);
    for (int j = 0; j < count; j++)
        x[j] = x[j] + (shifted[j] - shift) * splat(2.12194440e-4f);
    for (int j = 0; j < count; j++)
        p[j] = splat(0.00829027221f);
    for (int c = 0; c < 5; c++)
        for (int j = 0; j < count; j++)
            p[j] = p[j] * x[j] + splat(coefficients[c]);
    for (int j = 0; j < count; j++)
        x[j] = p[j];
}

FORCE_INLINE void exp_within(vec *x, int count)
{
    vec shifted[FOUR];

    exp_split(x, shifted, count);
    for (int j = 0; j < count; j++)
        x[j] = (vec)((uvec)x[j] + ((uvec)shifted[j] << 23));
}

static const float exp_top = 88.37f, exp_bottom = -87.33f;

/* 0 below; no x may be above. */
FORCE_INLINE void exp_some(vec *x, int count)
{
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = larger(splat(exp_bottom), x[j]);
    exp_within(e, count);
    for (int j = 0; j < count; j++)
        x[j] = choose(x[j] < splat(exp_bottom), splat(0.0f), e[j]);
}

/* Any x: stays at exp(88.37) above. */
FORCE_INLINE void exp_of(vec *x, int count)
{
    for (int j = 0; j < count; j++)
        x[j] = smaller(splat(exp_top), x[j]);
    exp_some(x, count);
}

/* x + 1 above zero, exp(x) below, as max(x, 0) + exp(min(x, 0)), which has the same bits:
 * exp(0) is 1. Not less than the smallest normal float. */
FORCE_INLINE void elu1_of(vec *x, int count)
{
    const vec zero = splat(0.0f);
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = larger(splat(exp_bottom), smaller(zero, x[j]));
    exp_within(e, count);
    for (int j = 0; j < count; j++)
        x[j] = larger(zero, x[j]) + e[j];
}
