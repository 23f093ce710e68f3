/* SPDX-License-Identifier: MIT */
/* sampler.c - symbols of all streams from their outputs.
 *
 * A choice takes one random number, which is a hash of seed, stream and position: nothing has to
 * be kept from one to the next, and a state that was saved goes on as it would have gone. */
#include <string.h>

#include "generate/sampling.h"
#include "model/transformer.h"
#include "tarn/generate.h"

struct tarn_sampler {
    struct tn_sampling how;
    uint64_t seed;
    size_t symbols;
    uint64_t *scratch; /* a word per symbol, for top_k and top_p */
    const tarn_allocator *allocator;
    tarn_allocator allocator_copy;
};

/* ---- Life --------------------------------------------------------------- */

/* Zeros become what they stand for. */
static tarn_status read_sampling(struct tn_sampling *how, const tarn_sampling *sampling,
                                 tarn_error *err)
{
    *how = (struct tn_sampling){
        .temperature = sampling->temperature == 0.0 ? 1.0 : sampling->temperature,
        .top_k = sampling->top_k,
        .top_p = sampling->top_p == 0.0 ? 1.0 : sampling->top_p,
        .greedy = sampling->greedy,
    };
    return tn_sampling_check(how, err);
}

tarn_status tarn_sampler_create(tarn_sampler **sampler, const tarn_model *model,
                                const tarn_sampling *sampling, const tarn_allocator *allocator,
                                tarn_error *err)
{
    struct tn_sampling how;
    tarn_status status;

    if (!sampler || !model || !sampling)
        return tn_fail(err, TARN_EINVAL, "sampler, model, sampling: one is NULL; expected all");
    *sampler = NULL;
    const struct tn_head *const head = &model->arch.head;

    if (strcmp(head->row->about.name, "categorical") != 0)
        return tn_fail(err, TARN_EINVAL,
                       "head: '%s' cannot be sampled from; expected categorical",
                       head->row->about.name);
    if ((status = read_sampling(&how, sampling, err)) != TARN_OK)
        return status;
    const size_t words = head->symbols * sizeof(uint64_t); /* below 2^31 of them */
    tarn_sampler *const s = tn_allocate(allocator, sizeof *s + words);

    if (!s)
        return tn_fail(err, TARN_ENOMEM, "no memory for a sampler of %zu symbols",
                       head->symbols);
    *s = (tarn_sampler){.how = how,
                        .seed = sampling->seed,
                        .symbols = head->symbols,
                        .scratch = (uint64_t *)(s + 1)};
    if (allocator) {
        s->allocator_copy = *allocator;
        s->allocator = &s->allocator_copy;
    }
    *sampler = s;
    return TARN_OK;
}

void tarn_sampler_free(tarn_sampler *s)
{
    if (!s)
        return;
    const tarn_allocator allocator = s->allocator_copy;

    tn_release(s->allocator ? &allocator : NULL, s);
}

/* ---- Use ---------------------------------------------------------------- */

/* One step of a hash: seeding spreads every bit of its argument over the whole state. */
static uint64_t absorb(uint64_t hash, uint64_t word)
{
    struct tn_random random;

    tn_random_seed(&random, hash ^ word);
    return tn_random_bits(&random);
}

void tarn_sampler_draw(tarn_sampler *s, int32_t *symbols, const float *outputs, size_t batch,
                       uint64_t position)
{
    const uint64_t here = absorb(absorb(0, s->seed), position);

    for (size_t b = 0; b < batch; b++) {
        struct tn_random random;

        tn_random_seed(&random, absorb(here, b));
        symbols[b] =
            tn_sample(&s->how, outputs + b * s->symbols, s->symbols, s->scratch, &random);
    }
}
