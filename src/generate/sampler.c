/* SPDX-License-Identifier: MIT */
/* sampler.c - symbols of all streams from their outputs.
 *
 * A choice takes its random numbers from a generator that is seeded by a hash of seed, stream
 * and position: nothing has to be kept from one to the next, and a state that was saved goes on
 * as it would have gone.
 *
 * Temperature, top-k, top-p and greed are the same for every head, since they look at
 * log-probabilities of symbols (sampling.c). A head that has a faster way to draw a symbol just
 * as likely as it says is asked for that where nothing of this is wanted. */
#include "generate/sampling.h"
#include "model/model_data.h"
#include "tarn/generate.h"

struct tarn_sampler {
    struct tn_sampling how;
    uint64_t seed, stream;
    struct tn_head head;
    struct tn_rows one; /* row of outputs */
    bool draws;         /* by the head itself */
    float *logits;      /* of all symbols; NULL: outputs are that */
    void *work;         /* the head's */
    uint64_t *order;    /* a word per symbol, for top_k and top_p */
    void *memory;       /* that holds all of it */
    tarn_allocator allocator;
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

static bool is_plain(const struct tn_sampling *how, size_t symbols)
{
    return how->temperature == 1.0 && (how->top_k == 0 || how->top_k >= symbols) &&
           how->top_p == 1.0 && !how->greedy;
}

/* Twice: see tn_arena. */
static tarn_sampler *lay_out(const struct tn_head *head, const struct tn_rows *one,
                             struct tn_arena *arena)
{
    tarn_sampler *const s = tn_arena_take(arena, 1, sizeof *s);
    uint64_t *const order = tn_arena_take(arena, head->symbols, sizeof *order);
    float *const logits = head->row->logits ? tn_arena_floats(arena, head->symbols) : NULL;
    void *const work = tn_arena_take(arena, 1, tn_head_scratch_size(head, one, 1));

    if (s)
        *s = (tarn_sampler){
            .head = *head, .one = *one, .logits = logits, .work = work, .order = order};
    return s;
}

tarn_status tarn_sampler_create(tarn_sampler **sampler, const tarn_model *model,
                                const tarn_sampling *sampling, const tarn_host *host,
                                tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);
    struct tn_sampling how;
    struct tn_host own;
    tarn_status status;

    if (!sampler || !model || !sampling)
        return tn_fail(err, TARN_EINVAL, "sampler, model and sampling must not be NULL");
    *sampler = NULL;
    if ((status = tn_host_init(&own, host ? host : &(tarn_host){0}, err)) != TARN_OK)
        return status;
    const struct tn_head *const head = &model->arch.head;
    const struct tn_rows one = {own.kernels, 1, 1, head->outputs};

    if (head->row->sequence)
        return tn_fail(err, TARN_EINVAL,
                       "model: its head '%s' predicts whole sequences; sampling needs one that "
                       "predicts a symbol per position",
                       head->row->about.name);
    if ((status = read_sampling(&how, sampling, err)) != TARN_OK)
        return status;
    lay_out(head, &one, &arena);
    void *const memory = tn_allocate(&own.allocator, tn_arena_bytes(&arena));

    if (!memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a sampler of %zu symbols",
                       head->symbols);
    arena = tn_arena_over(memory);
    tarn_sampler *const s = lay_out(head, &one, &arena);

    s->memory = memory;
    s->how = how;
    s->seed = sampling->seed;
    s->stream = sampling->stream;
    s->draws = head->row->draw && is_plain(&how, head->symbols);
    s->allocator = own.allocator;
    *sampler = s;
    return TARN_OK;
}

void tarn_sampler_free(tarn_sampler *s)
{
    if (!s)
        return;
    const tarn_allocator allocator = s->allocator;

    tn_release(&allocator, s->memory);
}

/* ---- Use ---------------------------------------------------------------- */

static int32_t choose(tarn_sampler *s, const float *outputs, struct tn_random *random)
{
    const struct tn_head_row *const row = s->head.row;

    if (s->draws)
        return row->draw(&s->head, outputs, random);
    if (row->logits)
        row->logits(&s->head, &s->one, s->logits, outputs, s->work);
    return tn_sample(&s->how, row->logits ? s->logits : outputs, s->head.symbols, s->order,
                     random);
}

void tarn_sampler_draw(tarn_sampler *s, int32_t *symbols, const float *outputs, size_t batch,
                       uint64_t position)
{
    const uint64_t here = tn_random_absorb(tn_random_absorb(0, s->seed), position);

    for (size_t b = 0; b < batch; b++) {
        struct tn_random random;

        tn_random_seed(&random, tn_random_absorb(here, s->stream + b));
        symbols[b] = choose(s, outputs + b * s->head.outputs, &random);
    }
}
