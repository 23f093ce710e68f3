/* SPDX-License-Identifier: MIT */
/* copy_set.c - n random symbols, a separator, the same symbols, separators to the end.
 *
 *   n uniform in N/4 <= n < (N-1)/2, both rounded down; symbols s uniform in 1 .. symbols. For
 *   N = 10 and n = 3:
 *
 *     i            0  1  2  3  4  5  6  7  8  9  10
 *     x            s0 s1 s2 0  s0 s1 s2 0  0  0  0
 *     inputs[i]    s0 s1 s2 0  s0 s1 s2 0  0  0            x_0 .. x_{N-1}
 *     targets[i]   s1 s2 0  s0 s1 s2 0  0  0  0            x_1 .. x_N
 *     weights[i]   0  0  1  1  1  1  0  0  0  0            n-1 <= i < 2n
 *
 * As in the authors' program the loss counts n + 1 positions: those that predict the copy, and
 * the one before them, which predicts the separator. That one is not a guess, although n is
 * random: positions within the first half count for nothing, so that a model may always expect
 * the separator there. The separator after the copy does not count. */
#include "data/copy_set.h"

tarn_status tn_copy_set_init(struct tn_copy_set *set, size_t N, size_t symbols, uint64_t seed,
                             tarn_error *err)
{
    if (N < 5)
        return tn_fail(err, TARN_EINVAL,
                       "length is %zu; it must be at least 5 for the copy task", N);
    if (symbols < 1 || symbols >= INT32_MAX)
        return tn_fail(err, TARN_EINVAL, "symbols is %zu; it must be from 1 to %d", symbols,
                       INT32_MAX - 1);
    *set = (struct tn_copy_set){.N = N, .symbols = symbols, .seed = seed};
    return TARN_OK;
}

static void fill_sequence(const struct tn_copy_set *set, struct tn_batch *batch, size_t b,
                          struct tn_random *random)
{
    const size_t least = set->N / 4, end = (set->N - 1) / 2;
    const size_t n = least + tn_random_below(random, end - least);
    int32_t *const inputs = batch->inputs + b * set->N;
    int32_t *const targets = batch->targets + b * set->N;
    float *const weights = batch->weights + b * set->N;

    tn_batch_clear(batch, b);
    for (size_t i = 0; i < n; i++)
        inputs[i] = inputs[n + 1 + i] = 1 + (int32_t)tn_random_below(random, set->symbols);
    for (size_t i = 0; i + 1 < set->N; i++)
        targets[i] = inputs[i + 1];
    for (size_t i = n - 1; i < 2 * n; i++)
        weights[i] = 1.0f;
}

void tn_copy_set_fill(const struct tn_copy_set *set, struct tn_batch *batch,
                      enum tn_split split, uint64_t index)
{
    for (size_t b = 0; b < batch->B; b++) {
        struct tn_random random;

        tn_batch_random(&random, set->seed, split, index, b);
        fill_sequence(set, batch, b, &random);
    }
}
