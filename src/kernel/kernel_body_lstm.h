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

static void lstm(float *z, float *c, float *h, const float *more, const float *c_before,
                 size_t H)
{
    float *const at[FOUR] = {z, z + H, z + 3 * H, z + 2 * H}; /* i, f, o and g */

    for (size_t k = 0; k < H; k += LANES) {
        const size_t rest = H - k;
        vec v[FOUR];

        for (int j = 0; j < FOUR; j++)
            v[j] = fetch(at[j] + k, rest) + fetch(more + (at[j] - z) + k, rest);
        lstm_gates(v);
        const vec cell = v[1] * fetch(c_before + k, rest) + v[0] * v[3];

        for (int j = 0; j < FOUR; j++)
            keep(at[j] + k, v[j], rest);
        keep(c + k, cell, rest);
        keep(h + k, v[2] * lstm_tanh(cell), rest);
    }
}

static void lstm_slope(float *dz, float *dc, const float *dh, const float *gates,
                       const float *c, const float *c_before, size_t H)
{
    const vec one = splat(1.0f);

    for (size_t k = 0; k < H; k += LANES) {
        const size_t rest = H - k;
        const vec i = fetch(gates + k, rest), f = fetch(gates + H + k, rest);
        const vec g = fetch(gates + 2 * H + k, rest), o = fetch(gates + 3 * H + k, rest);
        const vec t = lstm_tanh(fetch(c + k, rest)), d = fetch(dh + k, rest);
        const vec dcell = fetch(dc + k, rest) + d * o * (one - t * t);

        keep(dz + k, dcell * g * i * (one - i), rest);
        keep(dz + H + k, dcell * fetch(c_before + k, rest) * f * (one - f), rest);
        keep(dz + 2 * H + k, dcell * i * (one - g * g), rest);
        keep(dz + 3 * H + k, d * t * o * (one - o), rest);
        keep(dc + k, dcell * f, rest);
    }
}
