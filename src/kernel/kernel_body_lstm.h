/* SPDX-License-Identifier: MIT */
/* kernel_body_lstm.h - the gates of an LSTM and their gradients: a part of kernel_body.h, and
 * included by it.
 *
 *     i, f, o = sigma(z)   g = tanh(z)        c' = f c + i g       h = o tanh(c')
 *
 *     dc' += dh o (1 - tanh^2(c'))     dz_i = dc' g i (1 - i)    dz_f = dc' c f (1 - f)
 *     dc   = dc' f                     dz_g = dc' i (1 - g^2)    dz_o = dh tanh(c') o (1 - o)
 */

/* sigma of three and tanh of the last; four chains side by side. */
FORCE_INLINE void lstm_gates(vec v[FOUR])
{
    vec e[FOUR];

    for (int j = 0; j < FOUR; j++) {
        const vec x = j < 3 ? -v[j] : splat(-2.0f) * larger(v[j], -v[j]);

        e[j] = larger(splat(exp_bottom), smaller(splat(exp_top), x));
    }
    exp_within(e, FOUR);
    for (int j = 0; j < 3; j++)
        v[j] = splat(1.0f) / (splat(1.0f) + e[j]);
    const vec size = (splat(1.0f) - e[3]) / (splat(1.0f) + e[3]);

    v[3] = choose(v[3] < splat(0.0f), -size, size);
}

FORCE_INLINE vec lstm_tanh(vec x)
{
    vec e = larger(splat(exp_bottom), splat(-2.0f) * larger(x, -x));

    exp_within(&e, 1);
    const vec size = (splat(1.0f) - e) / (splat(1.0f) + e);

    return choose(x < splat(0.0f), -size, size);
}

/* A vector of cells, or the n < LANES that are left: their gates lie H apart. */
FORCE_INLINE void lstm_at(float *z, float *c, float *h, const float *more,
                          const float *c_before, size_t H, size_t n)
{
    const size_t at[FOUR] = {0, H, 3 * H, 2 * H}; /* i, f, o and g */
    vec v[FOUR];

    for (int j = 0; j < FOUR; j++)
        v[j] = fetch(z + at[j], n) + fetch(more + at[j], n);
    lstm_gates(v);
    const vec cell = v[1] * fetch(c_before, n) + v[0] * v[3];

    for (int j = 0; j < FOUR; j++)
        keep(z + at[j], v[j], n);
    keep(c, cell, n);
    keep(h, v[2] * lstm_tanh(cell), n);
}

static void lstm(float *z, float *c, float *h, const float *more, const float *c_before,
                 size_t H)
{
    BY_VECTORS(H, lstm_at(z + AT, c + AT, h + AT, more + AT, c_before + AT, H, LEFT));
}

FORCE_INLINE void lstm_backward_at(float *dz, float *dc, const float *dh, const float *gates,
                                   const float *c, const float *c_before, size_t H, size_t n)
{
    const vec one = splat(1.0f);
    const vec i = fetch(gates, n), f = fetch(gates + H, n);
    const vec g = fetch(gates + 2 * H, n), o = fetch(gates + 3 * H, n);
    const vec t = lstm_tanh(fetch(c, n)), d = fetch(dh, n);
    const vec dcell = fetch(dc, n) + d * o * (one - t * t);

    keep(dz, dcell * g * i * (one - i), n);
    keep(dz + H, dcell * fetch(c_before, n) * f * (one - f), n);
    keep(dz + 2 * H, dcell * i * (one - g * g), n);
    keep(dz + 3 * H, d * t * o * (one - o), n);
    keep(dc, dcell * f, n);
}

static void lstm_backward(float *dz, float *dc, const float *dh, const float *gates,
                          const float *c, const float *c_before, size_t H)
{
    BY_VECTORS(H, lstm_backward_at(dz + AT, dc + AT, dh + AT, gates + AT, c + AT, c_before + AT,
                                   H, LEFT));
}
