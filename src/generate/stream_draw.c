/* SPDX-License-Identifier: MIT */
/* stream_draw.c - the next symbols of streams from their outputs.
 *
 * A choice takes its random numbers from a generator that is seeded by a hash of seed, position
 * and number of the stream: nothing has to be kept from one to the next, and a stream that was
 * saved continues as it would have without.
 *
 * Temperature, top-k, top-p and greedy choice are the same for every head, because they work on
 * log-probabilities of symbols (sampling.c). A head that has a faster way to draw a symbol from
 * its own distribution is asked for that where nothing else is wanted. */
#include "generate/engine.h"
#include "generate/sampling.h"

enum { ALONE = 32 }; /* fewer streams are not worth waking threads */

/* Of one thread. */
struct scratch {
    float *logits;   /* of all symbols; NULL: outputs are that */
    void *work;      /* the head's */
    uint64_t *order; /* a word per symbol, for top_k and top_p */
};

struct tn_sampler {
    struct tn_head head;
    struct tn_rows one; /* row of outputs */
    size_t threads;
    struct scratch *scratch; /* one per thread */
    void *memory;            /* that all of this lies in */
};

/* ---- Create and free ---------------------------------------------------- */

static struct scratch scratch_take(const struct tn_head *head, const struct tn_rows *one,
                                   struct tn_arena *arena)
{
    return (struct scratch){
        .order = tn_arena_alloc(arena, head->symbols, sizeof(uint64_t)),
        .logits = head->row->logits ? tn_arena_floats(arena, head->symbols) : NULL,
        .work = tn_arena_alloc(arena, 1, tn_head_scratch_size(head, one, 1)),
    };
}

/* Twice: see tn_arena. */
static struct tn_sampler *lay_out(const tarn_model *model, const struct tn_host *host,
                                  struct tn_arena *arena)
{
    const struct tn_head *const head = &model->arch.head;
    const struct tn_rows one = {host->kernels, 1, 1, head->outputs};
    struct tn_sampler *const s = tn_arena_alloc(arena, 1, sizeof *s);
    struct scratch *const scratch = tn_arena_alloc(arena, host->threads, sizeof *scratch);

    for (size_t t = 0; t < host->threads; t++) {
        const struct scratch taken = scratch_take(head, &one, arena);

        if (scratch)
            scratch[t] = taken;
    }
    if (s)
        *s = (struct tn_sampler){
            .head = *head, .one = one, .threads = host->threads, .scratch = scratch};
    return s;
}

tarn_status tn_sampler_create(struct tn_sampler **sampler, const tarn_model *model,
                              const struct tn_host *host, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);

    *sampler = NULL;
    if (model->arch.head.row->sequence)
        return TARN_OK;
    lay_out(model, host, &arena);
    void *const memory = tn_allocate(&host->allocator, tn_arena_bytes(&arena));

    if (!memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to sample from %zu symbols",
                       model->arch.head.symbols);
    arena = tn_arena_over(memory);
    *sampler = lay_out(model, host, &arena);
    (*sampler)->memory = memory;
    return TARN_OK;
}

void tn_sampler_free(struct tn_sampler *sampler, const struct tn_host *host)
{
    if (sampler)
        tn_release(&host->allocator, sampler->memory);
}

/* ---- Settings ----------------------------------------------------------- */

/* Zeros become what they stand for. */
static struct tn_sampling sampling_of(const struct tn_stream_head *head)
{
    return (struct tn_sampling){
        .temperature = head->temperature == 0.0 ? 1.0 : head->temperature,
        .top_k = (size_t)head->top_k,
        .top_p = head->top_p == 0.0 ? 1.0 : head->top_p,
        .greedy = head->greedy != 0,
    };
}

tarn_status tn_sampling_refuse(const struct tn_stream_head *head, tarn_error *err)
{
    const struct tn_sampling sampling = sampling_of(head);

    return tn_sampling_check(&sampling, err);
}

static bool is_plain(const struct tn_sampling *sampling, size_t symbols)
{
    return sampling->temperature == 1.0 &&
           (sampling->top_k == 0 || sampling->top_k >= symbols) && sampling->top_p == 1.0 &&
           !sampling->greedy;
}

/* ---- Use ---------------------------------------------------------------- */

struct job {
    const struct tn_sampler *sampler;
    tarn_stream *const *streams;
    const float *outputs;
};

static int32_t choose(const struct tn_sampler *s, const struct scratch *scratch,
                      const struct tn_stream_head *stream, const float *outputs)
{
    const struct tn_head_row *const row = s->head.row;
    const struct tn_sampling sampling = sampling_of(stream);
    const uint64_t here = tn_random_absorb(tn_random_absorb(0, stream->seed), stream->position);
    struct tn_random random;

    tn_random_seed(&random, tn_random_absorb(here, stream->number));
    if (row->draw && is_plain(&sampling, s->head.symbols))
        return row->draw(&s->head, outputs, &random);
    if (row->logits)
        row->logits(&s->head, &s->one, scratch->logits, outputs, scratch->work);
    return tn_sample(&sampling, row->logits ? scratch->logits : outputs, s->head.symbols,
                     scratch->order, &random);
}

static void draw(void *arg, size_t i, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_sampler *const s = job->sampler;
    struct tn_stream_head *const head = &job->streams[i]->head;

    head->drawn = 1 + choose(s, &s->scratch[thread], head, job->outputs + i * s->head.outputs);
}

void tn_sampler_draw(struct tn_sampler *sampler, tarn_stream *const *streams,
                     const float *outputs, size_t n)
{
    tn_parallel(n < ALONE ? 1 : sampler->threads, n, draw,
                &(struct job){sampler, streams, outputs});
}
