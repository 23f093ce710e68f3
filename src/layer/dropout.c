/* SPDX-License-Identifier: MIT */
/* dropout.c - the keys of the hash, and the work spread over threads.
 *
 * The kernels hash 32 bits of an element's index. The rest of the index goes into the keys,
 * with the seed; a stretch of elements is cut where that changes. */
#include "layer/dropout.h"

/* Each after the one before, so that (1, 2) and (2, 1) differ. */
static uint64_t mix_in(uint64_t hash, uint64_t x)
{
    return tn_random_mix(hash + UINT64_C(0x9e3779b97f4a7c15) +
                         tn_random_mix(x + UINT64_C(0xd1342543de82ef95)));
}

uint64_t tn_dropout_seed(uint64_t seed, uint64_t step, uint64_t place)
{
    return mix_in(mix_in(tn_random_mix(seed), step), place);
}

static struct tn_dropout_keys keys_of(const struct tn_dropout *dropout, uint64_t index)
{
    const uint64_t a = mix_in(tn_random_mix(dropout->seed), index >> 32), b = mix_in(a, 1);

    return (struct tn_dropout_keys){
        .key = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b},
        .threshold = (uint32_t)((double)dropout->p * 0x1p32),
        .scale = 1.0f / (1.0f - dropout->p),
    };
}

struct call {
    const struct tn_rows *r;
    const struct tn_dropout *dropout;
    float *y;
    const float *x, *residual;
};

static void run_rows(void *arg, size_t from, size_t rows)
{
    const struct call *const call = arg;
    size_t at = from * call->r->width, left = rows * call->r->width;

    while (left > 0) {
        const uint64_t first = call->dropout->first + at;
        const uint64_t until = (UINT64_C(1) << 32) - (uint32_t)first;
        const size_t n = left < until ? left : (size_t)until;
        const struct tn_dropout_keys keys = keys_of(call->dropout, first);

        call->r->kernels->dropout(call->y + at, call->x + at,
                                  call->residual ? call->residual + at : NULL, &keys,
                                  (uint32_t)first, n);
        at += n;
        left -= n;
    }
}

void tn_dropout_run(const struct tn_rows *r, const struct tn_dropout *dropout, float *y,
                    const float *x, const float *residual)
{
    tn_rows_parallel(r, run_rows, &(struct call){r, dropout, y, x, residual});
}
