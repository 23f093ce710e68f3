/* SPDX-License-Identifier: MIT */
/* sampling.c - temperature, then top-k, then top-p.
 *
 *   weight_i = exp((x_i - max x) / temperature)
 *   top-k:  the k symbols of greatest x
 *   top-p:  of these, in falling order, the fewest whose weights reach p of their sum
 *
 * and then symbol i with probability weight_i over the sum of what is left. A temperature
 * changes no order, so that the order is that of the logits themselves: weights that round to
 * the same number still have one. Symbols are ordered by a heap, which gives the m greatest of
 * n in n + m log n. */
#include "generate/sampling.h"

#include <assert.h>
#include <math.h>
#include <string.h>

tarn_status tn_sampling_check(const struct tn_sampling *sampling, tarn_error *err)
{
    if (!(isfinite(sampling->temperature) && sampling->temperature >= 0.0))
        return tn_fail(err, TARN_EINVAL, "temperature is %g; it must be a finite number from 0",
                       sampling->temperature);
    if (!(sampling->top_p > 0.0 && sampling->top_p <= 1.0))
        return tn_fail(err, TARN_EINVAL, "top_p is %g; it must be above 0 and at most 1",
                       sampling->top_p);
    return TARN_OK;
}

/* ---- Weights ------------------------------------------------------------ */

static float logit(float x)
{
    return isnan(x) ? -INFINITY : x;
}

/* Eight at a time, as vectors; a NaN is greater than nothing. */
static float greatest(const float *logits, size_t n)
{
    enum { LANES = 8 };
    float most[LANES];

    for (size_t k = 0; k < LANES; k++)
        most[k] = -INFINITY;
    for (size_t i = 0; i < n / LANES * LANES; i += LANES)
        for (size_t k = 0; k < LANES; k++)
            most[k] = logits[i + k] > most[k] ? logits[i + k] : most[k];
    for (size_t i = n / LANES * LANES; i < n; i++)
        most[0] = logits[i] > most[0] ? logits[i] : most[0];
    for (size_t k = 1; k < LANES; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

static int32_t first_of(const float *logits, size_t n, float value)
{
    size_t i = 0;

    while (i + 1 < n && logit(logits[i]) != value)
        i++;
    return (int32_t)i;
}

struct scale {
    double max, temperature;
};

/* In 0 .. 1, and 1 for the greatest: infinity less infinity is 0 here. */
static double weight(struct scale scale, float x)
{
    const double value = (double)logit(x);

    return value < scale.max ? exp((value - scale.max) / scale.temperature) : 1.0;
}

/* ---- Order -------------------------------------------------------------- */

/* A word that is greater for a greater logit, and for the earlier of two equal ones. The bits
 * of a positive float grow with it, those of a negative one fall. */
static uint64_t word_of(float x, size_t i)
{
    const float value = logit(x) + 0.0f; /* -0 becomes 0, its equal */
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
    return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)i);
}

static size_t symbol_of(uint64_t word)
{
    return UINT32_MAX - (uint32_t)word;
}

/* Lets the word at i sink until both below it are less. */
static void sink(uint64_t *heap, size_t i, size_t n)
{
    const uint64_t word = heap[i];

    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] < word)
            break;
        heap[i] = heap[child];
    }
    heap[i] = word;
}

static void heap_make(uint64_t *heap, const float *logits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        heap[i] = word_of(logits[i], i);
    for (size_t i = n / 2; i-- > 0;)
        sink(heap, i, n);
}

/* ---- Choice ------------------------------------------------------------- */

/* Symbols from the most likely on, found as far as they are asked for: `taken` of them stand at
 * the end of the heap's memory, the greatest last. */
struct order {
    const float *logits;
    uint64_t *heap;
    size_t n, taken;
    struct scale scale;
};

static size_t symbol_at(struct order *order, size_t j)
{
    uint64_t *const heap = order->heap;

    while (order->taken <= j) {
        const size_t last = order->n - ++order->taken;
        const uint64_t top = heap[0];

        heap[0] = heap[last];
        heap[last] = top;
        sink(heap, 0, last);
    }
    return symbol_of(heap[order->n - 1 - j]);
}

static double weight_at(struct order *order, size_t j)
{
    return weight(order->scale, order->logits[symbol_at(order, j)]);
}

static double sum_all(const struct order *order)
{
    double sum = 0.0;

    for (size_t i = 0; i < order->n; i++)
        sum += weight(order->scale, order->logits[i]);
    return sum;
}

/* Weights are kept where the heap would be. Summed again in the same order, they end above any
 * fraction of their sum: the choice falls on one of them, here and below, and never on a weight
 * of 0. */
static size_t choose_any(const struct order *order, double u)
{
    double sum = 0.0, each;

    for (size_t i = 0; i < order->n; i++) {
        sum += each = weight(order->scale, order->logits[i]);
        memcpy(&order->heap[i], &each, sizeof each);
    }
    const double at = u * sum;

    sum = 0.0;
    for (size_t i = 0; i < order->n; i++) {
        memcpy(&each, &order->heap[i], sizeof each);
        if (at < (sum += each))
            return i;
    }
    return order->n - 1;
}

static size_t choose_top(const struct tn_sampling *sampling, struct order *order, double u)
{
    const size_t most = sampling->top_k > 0 ? tn_min(sampling->top_k, order->n) : order->n;
    double total = 0.0, kept = 0.0, sum = 0.0;
    size_t count = 0;

    heap_make(order->heap, order->logits, order->n);
    if (most == order->n)
        total = sum_all(order);
    else
        for (size_t j = 0; j < most; j++)
            total += weight_at(order, j);
    const double enough = sampling->top_p < 1.0 ? sampling->top_p * total : (double)INFINITY;

    while (count < most && kept < enough)
        kept += weight_at(order, count++);
    for (size_t j = 0; j < count; j++)
        if (u * kept < (sum += weight_at(order, j)))
            return symbol_at(order, j);
    return symbol_at(order, 0);
}

int32_t tn_sample(const struct tn_sampling *sampling, const float *logits, size_t n,
                  uint64_t *scratch, struct tn_random *random)
{
    const float most = greatest(logits, n);

    assert(n > 0 && n <= INT32_MAX);
    if (sampling->greedy || sampling->temperature <= 0.0)
        return first_of(logits, n, most);
    const double u = tn_random_uniform(random), max = (double)most;
    struct order order = {logits, scratch, n, 0, {max, sampling->temperature}};

    if (max == -(double)INFINITY)
        return 0;
    if (sampling->top_p < 1.0 || (sampling->top_k > 0 && sampling->top_k < n))
        return (int32_t)choose_top(sampling, &order, u);
    return (int32_t)choose_any(&order, u);
}
