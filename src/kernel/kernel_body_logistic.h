/* SPDX-License-Identifier: MIT */
/* kernel_body_logistic.h - the discretized mixture of logistics: the part of kernel_body.h that
 * says how likely a value is, and included by it.
 *
 * K logistics with logits l, means m and log-scales r, of which those below -7 count as -7. A
 * value of `values` stands at x in [-1, 1], h = 1 / (values - 1) from the edges of its
 * bin. With
 *
 *     a = (x + h - m) / s     b = (x - h - m) / s     d = a - b = 2 h / s     s = exp(r)
 *
 * a logistic gives the bin sigma(a) - sigma(b) = sigma(a) sigma(-b) (1 - exp(-d)): three
 * factors none of which cancels. As a number and an exponent, p = R exp(E),
 *
 *     R = g / ((1 + exp(-|a|)) (1 + exp(-|b|)))      E = min(a, 0) + min(-b, 0) + e
 *     d < 1/2:  g = (1 - exp(-d)) / d                e = log(2 h) - r
 *     else:     g = 1 - exp(-d)                      e = 0
 *
 * R lies in 1/11 .. 1 whatever the outputs are, so that the sum over logistics of
 * exp(l + E - max(l + E)) R is neither 0 nor infinite, and one logarithm a row does. The first
 * bin has no b and the last no a: that factor is 1, and so is 1 - exp(-d).
 *
 * Derivatives of log p:   in m   (sigma(b) - sigma(-a)) / s
 *                          in r   b sigma(b) - a sigma(-a) - d exp(-d) / (1 - exp(-d))
 *
 * A lane is a row. */

static const float logistic_far = 1e37f; /* a and b stay finite */

/* Of LANES rows, transposed: K vectors each. */
struct logistic_tile {
    float *logits, *means, *scales; /* then weights, derivatives in m and in r */
    float *E, *R;                   /* R: then shares */
};

/* The edges of bins, as two floats each: near a mean, where the difference to it is small, the
 * second one counts. */
struct logistic_bins {
    vec lower, lower_rest, upper, upper_rest;
    ivec first, last;
    float width, log_width; /* 2 h */
};

/* Edges are (2 t - values) / (values - 1) and the next: lanes past the rows repeat symbol 0. */
FORCE_INLINE struct logistic_bins logistic_bins_of(const int32_t *symbols, size_t n,
                                                   size_t values)
{
    const double whole = (double)values - 1.0;
    float edges[4][LANES];
    ivec first, last;
    struct logistic_bins bins;

    for (size_t i = 0; i < LANES; i++) {
        const int32_t t = i < n ? symbols[i] : 0;
        const double lower = (2.0 * t - (double)values) / whole;
        const double upper = (2.0 * t + 2.0 - (double)values) / whole;

        edges[0][i] = (float)lower;
        edges[1][i] = (float)(lower - (double)edges[0][i]);
        edges[2][i] = (float)upper;
        edges[3][i] = (float)(upper - (double)edges[2][i]);
        first[i] = t == 0 ? -1 : 0;
        last[i] = (size_t)t + 1 == values ? -1 : 0;
    }
    bins.lower = load(edges[0]);
    bins.lower_rest = load(edges[1]);
    bins.upper = load(edges[2]);
    bins.upper_rest = load(edges[3]);
    bins.first = first;
    bins.last = last;
    bins.width = (float)(2.0 / whole);
    bins.log_width = (float)log(2.0 / whole);
    return bins;
}

/* NaN stays. */
FORCE_INLINE vec logistic_bounded(vec x)
{
    return larger(splat(-logistic_far), smaller(splat(logistic_far), x));
}

/* (1 - exp(-d)) / d for d < 1/2: its series, right to 1e-8. */
FORCE_INLINE vec logistic_series(vec d)
{
    static const float coefficients[] = {1.0f / 5040, -1.0f / 720, 1.0f / 120, -1.0f / 24,
                                         1.0f / 6,    -1.0f / 2,   1.0f};
    vec p = splat(-1.0f / 40320);

    for (int c = 0; c < 7; c++)
        p = p * d + splat(coefficients[c]);
    return p;
}

/* E and R of logistic k, and the derivatives of its log p in the places of mean and log-scale,
 * 0 for a log-scale that was clamped. `most` is the greatest logit. Returns E. */
FORCE_INLINE vec logistic_one(struct logistic_tile tile, const struct logistic_bins *bins,
                              size_t k, vec most, bool backward)
{
    const vec zero = splat(0.0f), one = splat(1.0f);
    const vec mean = load(tile.means + k), raw = load(tile.scales + k);
    const vec r = larger(splat(TN_LOGISTIC_LEAST), raw);
    vec by = -r, e[3];

    exp_some(&by, 1);
    vec a = ((bins->upper - mean) + bins->upper_rest) * by;
    vec b = ((bins->lower - mean) + bins->lower_rest) * by;
    const vec d = bins->width * by;

    a = choose(bins->last, splat(logistic_far), logistic_bounded(a));
    b = choose(bins->first, splat(-logistic_far), logistic_bounded(b));
    e[0] = -larger(a, -a);
    e[1] = -larger(b, -b);
    e[2] = -d;
    exp_some(e, 3);
    const ivec open = bins->first | bins->last, slim = d < splat(0.5f);
    const vec a_part = one / (one + e[0]), b_part = one / (one + e[1]);
    const vec g = choose(slim, logistic_series(d), one - e[2]);
    const vec exponent =
        smaller(zero, a) + smaller(zero, -b) + choose(slim & ~open, bins->log_width - r, zero);
    const vec E = (load(tile.logits + k) - most) + exponent;

    store(tile.E + k, E);
    store(tile.R + k, a_part * b_part * choose(open, one, g));
    if (backward) {
        const vec above = choose(a > zero, e[0], one) * a_part; /* sigma(-a) */
        const vec below = choose(b < zero, e[1], one) * b_part; /* sigma(b) */
        const vec inner = choose(open, zero, choose(slim, e[2], d * e[2]) / g);
        const vec in_r = b * below - a * above - inner;

        store(tile.means + k, by * (below - above));
        store(tile.scales + k, choose(raw < splat(TN_LOGISTIC_LEAST), zero, in_r));
    }
    return E;
}

/* Weights exp(l - max l) and shares exp(E - max E) R; returns their sums. */
FORCE_INLINE void logistic_sums(vec sums[2], struct logistic_tile tile, size_t end, vec most,
                                vec peak)
{
    sums[0] = sums[1] = splat(0.0f);
    for (size_t k = 0; k < end; k += LANES) {
        vec e[2] = {load(tile.logits + k) - most, load(tile.E + k) - peak};

        exp_some(e, 2);
        e[1] *= load(tile.R + k);
        sums[0] += e[0];
        sums[1] += e[1];
        store(tile.logits + k, e[0]);
        store(tile.R + k, e[1]);
    }
}

/* dl = dloss (weight - share)     dm, dr = -dloss share times the derivative of log p */
FORCE_INLINE void logistic_backward(struct logistic_tile tile, size_t end, const vec sums[2],
                                    vec dloss)
{
    const vec by_weight = dloss / sums[0], by_share = dloss / sums[1];

    for (size_t k = 0; k < end; k += LANES) {
        const vec share = by_share * load(tile.R + k);

        store(tile.logits + k, by_weight * load(tile.logits + k) - share);
        store(tile.means + k, -share * load(tile.means + k));
        store(tile.scales + k, -share * load(tile.scales + k));
    }
}

FORCE_INLINE void logistic_rows(const struct tn_logistics *to, size_t from, size_t n,
                                bool backward)
{
    const size_t K = to->K, end = K * LANES;
    float *const work = to->work;
    const struct logistic_tile tile = {work, work + end, work + 2 * end, work + 3 * end,
                                       work + 4 * end};
    const struct logistic_bins bins = logistic_bins_of(to->symbols + from, n, to->values);
    vec most = splat(-INFINITY), peak = most, sums[2];

    if (n < LANES)
        memset(work, 0, 3 * end * sizeof *work);
    transpose(work, LANES, to->x + (ptrdiff_t)from * to->ldx, to->ldx, n, 3 * K);
    for (size_t k = 0; k < end; k += LANES)
        most = larger(load(tile.logits + k), most);
    for (size_t k = 0; k < end; k += LANES)
        peak = larger(logistic_one(tile, &bins, k, most, backward), peak);
    logistic_sums(sums, tile, end, most, peak);
    keep(to->ratio + from, sums[0] / sums[1], n);
    keep(to->peak + from, peak, n);
    if (backward) {
        logistic_backward(tile, end, sums, fetch(to->dloss + from, n));
        transpose(to->dx + from * 3 * K, 3 * (ptrdiff_t)K, work, LANES, 3 * K, n);
    }
}

static void logistics(const struct tn_logistics *to)
{
    for (size_t i = 0; i < to->n; i += LANES) {
        const size_t n = to->n - i < LANES ? to->n - i : LANES;

        if (to->dx)
            logistic_rows(to, i, n, true);
        else
            logistic_rows(to, i, n, false);
    }
}
