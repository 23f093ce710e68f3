/* SPDX-License-Identifier: MIT */
/* method_recompute.c - a stream is its symbols, and every step runs the whole sequence again:
 * the paper's softmax and lsh. One stream after the other, so that the bits of one do not
 * depend on the others. */
#include <string.h>

#include "generate/engine.h"

enum { GROWTH = 32 }; /* positions between two plans */

/* A run for a length that is a multiple of GROWTH; positions past a sequence's end are
 * ignored. */
struct recompute {
    tarn_run *run;
    int32_t *symbols; /* of the run's length */
    size_t bytes;     /* of these */
};

static int32_t *history(const tarn_stream *stream)
{
    return (int32_t *)(uintptr_t)(stream + 1); /* longest */
}

static void destroy_run(tarn_engine *e)
{
    struct recompute *const own = e->own;

    tarn_run_free(own->run);
    tn_release(&e->host.allocator, own->symbols);
    own->run = NULL;
    own->symbols = NULL;
    own->bytes = 0;
}

/* A run for at least `length` positions and hardly more. */
static tarn_status make_run(tarn_engine *e, size_t length, tarn_error *err)
{
    struct recompute *const own = e->own;
    const size_t N = tn_min(tn_round_up(length, GROWTH), tn_engine_end(e));
    const struct tn_run_desc desc = {.B = 1, .N = N};

    if (own->run && own->run->N == N)
        return TARN_OK;
    destroy_run(e);
    own->bytes = N * sizeof *own->symbols;
    own->symbols = tn_allocate(&e->host.allocator, own->bytes);
    if (!own->symbols)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu positions", N);
    return tn_run_create(&own->run, e->model, &desc, &e->host, err);
}

/* The symbols are written after those that the stream has, and do not count until its position
 * has moved on. */
static tarn_status feed_stream(tarn_engine *e, const struct tn_feed *feed, size_t b,
                               tarn_error *err)
{
    struct recompute *const own = e->own;
    const tarn_stream *const stream = feed->streams[b];
    const size_t O = e->model->arch.head.outputs, from = (size_t)stream->head.position;
    const size_t n = from + feed->length;
    tarn_status status;

    for (size_t i = 0; i < feed->length; i++)
        history(stream)[from + i] = tn_feed_symbol(feed, b, i);
    if (!feed->outputs)
        return TARN_OK;
    if ((status = make_run(e, n, err)) != TARN_OK)
        return status;
    memcpy(own->symbols, history(stream), n * sizeof *own->symbols);
    memset(own->symbols + n, 0, (own->run->N - n) * sizeof *own->symbols);
    tn_run_sizes(own->run, own->run->T, &n);
    tn_run_forward(own->run, own->symbols);
    memcpy(feed->outputs + b * O, own->run->outputs + (n - 1) * O, O * sizeof(float));
    return TARN_OK;
}

static tarn_status feed(tarn_engine *e, const struct tn_feed *feed, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t b = 0; b < feed->n && status == TARN_OK; b++)
        status = feed_stream(e, feed, b, err);
    return status;
}

/* ---- Create and free ---------------------------------------------------- */

static tarn_status create(tarn_engine *e, tarn_error *err)
{
    if (e->elements != TN_F32)
        return tn_fail(err, TARN_EINVAL,
                       "precision is %s; it must be f32 with method recompute: use method "
                       "recurrent",
                       tn_element_name(e->elements));
    if (e->longest == 0)
        return tn_fail(err, TARN_EINVAL,
                       "longest is 0; it must be the maximum sequence length, because method "
                       "recompute keeps the whole sequence");
    e->own = tn_allocate(&e->host.allocator, sizeof(struct recompute));
    if (!e->own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an engine");
    *(struct recompute *)e->own = (struct recompute){0};
    return TARN_OK;
}

static void destroy(tarn_engine *e)
{
    if (!e->own)
        return;
    destroy_run(e);
    tn_release(&e->host.allocator, e->own);
}

static size_t stream_bytes(const tarn_engine *e)
{
    size_t bytes;

    return tn_size_product(&bytes, (size_t[]){e->longest, sizeof(int32_t)}, 2) ? bytes
                                                                               : SIZE_MAX;
}

static size_t bytes_used(const tarn_engine *e)
{
    const struct recompute *const own = e->own;

    return own->run ? own->bytes + own->run->bytes : 0;
}

static size_t rows(const tarn_engine *e, uint64_t position)
{
    (void)e;
    return (size_t)position + 1;
}

/* Of a forward over all positions so far. */
static double attention_flops(const tarn_engine *e, uint64_t position)
{
    const tarn_attention_desc desc =
        tn_arch_attention(&e->model->arch, 1, (size_t)position + 1);
    tarn_attention plan;
    double flops = 0.0;

    if (tn_attention_init(&plan, &desc, &e->host, NULL) == TARN_OK)
        flops = tarn_attention_forward_flops(&plan);
    tn_attention_clear(&plan);
    return flops;
}

/* ---- Files -------------------------------------------------------------- */

static size_t section(const tarn_engine *e, size_t n, size_t index, bool *common)
{
    (void)e;
    *common = false;
    return index == 0 ? n * sizeof(int32_t) : 0;
}

static void pack(const tarn_engine *e, void *packed, const tarn_stream *stream)
{
    (void)e;
    memcpy(packed, history(stream), (size_t)stream->head.position * sizeof(int32_t));
}

static void unpack(const tarn_engine *e, tarn_stream *stream, const void *packed)
{
    (void)e;
    memcpy(history(stream), packed, (size_t)stream->head.position * sizeof(int32_t));
}

static const int32_t *kept(const tarn_engine *e, const tarn_stream *stream, size_t *count)
{
    (void)e;
    *count = (size_t)stream->head.position;
    return history(stream);
}

const struct tn_method tn_method_recompute = {
    .about =
        {.name = "recompute",
         .help = "each step runs the whole sequence again, as for softmax and lsh in the paper",
         .options = tn_no_options},
    .create = create,
    .free = destroy,
    .stream = stream_bytes,
    .bytes = bytes_used,
    .rows = rows,
    .attention_flops = attention_flops,
    .feed = feed,
    .section = section,
    .pack = pack,
    .unpack = unpack,
    .kept = kept,
};
