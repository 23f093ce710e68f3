/* SPDX-License-Identifier: MIT */
/* kernel_body_machine.h - loops that measure what the machine can do: multiply and add, and
 * read. */
enum { CHAINS = 12 }; /* independent, more than latency times throughput */

static double burn(size_t rounds)
{
    volatile float unknown = 0.999f; /* to the compiler */
    const vec a = splat(unknown), b = splat(1.0f - unknown);
    vec x[CHAINS], sum = splat(0.0f);

    for (int i = 0; i < CHAINS; i++)
        x[i] = splat(unknown * (float)i);
    for (size_t n = 0; n < rounds; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * a + b;
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    unknown = sum_lanes(sum); /* so that all of it was needed */
    return 2.0 * CHAINS * LANES * (double)rounds;
}

static float read(const float *x, size_t n)
{
    vec sum[8];

    for (int j = 0; j < 8; j++)
        sum[j] = splat(0.0f);
    for (size_t i = 0; i + 8 * LANES <= n; i += 8 * LANES)
        for (size_t j = 0; j < 8; j++)
            sum[j] += load(x + i + j * LANES);
    for (int j = 1; j < 8; j++)
        sum[0] += sum[j];
    return sum_lanes(sum[0]);
}
