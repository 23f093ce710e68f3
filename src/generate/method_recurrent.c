/* SPDX-License-Identifier: MIT */
/* method_recurrent.c - each position is one step of every layer: (18)-(20), or a growing cache
 * of keys and values for softmax. The method's part of a stream is its state (model/run.h).
 *
 * Many streams are cut into groups, and a thread takes a group through the whole model: there
 * is nothing to wait for between layers, activations stay with their core, and one core reads
 * states from memory while another one multiplies. */
#include <string.h>

#include "generate/engine.h"
#include "layer/kv_cache.h"
#include "model/body.h"

struct recurrent {
    tarn_run *together; /* all threads take a few streams, or many positions of one */
    tarn_run **apart;   /* of many streams, each thread takes a group; NULL: capacity is less */
};

enum {
    PIECE = 512,     /* positions of a prompt */
    GROUP = 64,      /* streams, about: their activations stay in a core's own cache */
    GROUP_LEAST = 24 /* for a thread; fewer do not pay for reading all weights */
};

/* ---- Feeding ------------------------------------------------------------ */

/* Some streams of a feed, or some positions of its only one. */
struct part {
    const tarn_engine *e;
    const struct tn_feed *feed;
    size_t first, streams; /* of the feed */
    size_t from, length;   /* positions */
};

static void run_part(tarn_run *run, const struct part *p)
{
    const struct tn_arch *const arch = &p->e->model->arch;
    const size_t stack = arch->config.stack * arch->config.frames;
    const bool last = p->from + p->length == p->feed->length;
    struct tn_step step = {.streams = p->streams, .length = p->length};

    for (size_t b = 0; b < p->streams; b++) {
        tarn_stream *const stream = p->feed->streams[p->first + b];

        run->streams[b] = (struct tn_run_stream){stream + 1, stream->head.position + p->from};
        for (size_t i = 0; i < p->length && !p->feed->frames; i++)
            run->symbols[b * p->length + i] =
                tn_feed_symbol(p->feed, p->first + b, p->from + i);
    }
    if (p->feed->frames)
        step.frames = p->feed->frames + p->first * stack;
    if (p->feed->outputs && last)
        step.outputs = p->feed->outputs + p->first * arch->head.outputs;
    tn_run_step(run, &step);
}

struct groups {
    struct part part; /* any of them */
    size_t size;      /* streams; the last may have fewer */
};

static void run_group(void *arg, size_t index, size_t thread)
{
    const struct groups *const groups = arg;
    const struct recurrent *const own = groups->part.e->own;
    struct part part = groups->part;

    part.first = index * groups->size;
    part.streams = tn_min(groups->size, part.feed->n - part.first);
    run_part(own->apart[thread], &part);
}

/* As many for each thread. */
static void feed_apart(struct part part)
{
    const size_t threads = part.e->host.threads, n = part.feed->n;
    const size_t count = tn_round_up(tn_blocks(n, GROUP), threads);
    struct groups groups = {part, tn_blocks(n, count)};

    groups.part.length = 1;
    tn_parallel(threads, tn_blocks(n, groups.size), run_group, &groups);
}

static void feed_together(struct part part)
{
    const struct recurrent *const own = part.e->own;
    const size_t n = part.feed->n, length = part.feed->length;

    for (; part.first < n; part.first += part.streams) {
        part.streams = tn_min(own->together->B, n - part.first);
        for (part.from = 0; part.from < length; part.from += part.length) {
            part.length = tn_min(own->together->N, length - part.from);
            run_part(own->together, &part);
        }
    }
}

static tarn_status feed(tarn_engine *e, const struct tn_feed *feed, tarn_error *err)
{
    const struct recurrent *const own = e->own;
    const bool many = own->apart && feed->n >= e->host.threads * GROUP_LEAST;

    (void)err;
    (many ? feed_apart : feed_together)((struct part){.e = e, .feed = feed});
    return TARN_OK;
}

/* ---- Create and free ---------------------------------------------------- */

static tarn_status create_apart(const tarn_engine *e, struct recurrent *own,
                                struct tn_run_desc desc, tarn_error *err)
{
    const struct tn_host one = tn_host_with(&e->host, 1);
    const size_t bytes = e->host.threads * sizeof(tarn_run *);
    tarn_status status = TARN_OK;

    own->apart = tn_allocate(&e->host.allocator, bytes);
    if (!own->apart)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an engine");
    memset(own->apart, 0, bytes);
    desc.B = GROUP;
    desc.N = 1;
    for (size_t i = 0; i < e->host.threads && status == TARN_OK; i++)
        status = tn_run_create(&own->apart[i], e->model, &desc, &one, err);
    return status;
}

static tarn_status create(tarn_engine *e, tarn_error *err)
{
    const size_t end = tn_engine_end(e), few = e->host.threads * GROUP_LEAST;
    const struct tn_run_desc desc = {
        .B = tn_min(e->capacity, few),
        .N = e->model->arch.config.frames > 0 ? 1 : PIECE,
        .elements = e->elements,
        .steps = true,
        .longest = end < SIZE_MAX ? end : 0,
    };
    struct recurrent *const own = tn_allocate(&e->host.allocator, sizeof *own);
    tarn_status status;

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an engine");
    *own = (struct recurrent){0};
    e->own = own;
    if ((status = tn_run_create(&own->together, e->model, &desc, &e->host, err)) != TARN_OK ||
        e->capacity < few)
        return status;
    return create_apart(e, own, desc, err);
}

static void destroy(tarn_engine *e)
{
    struct recurrent *const own = e->own;

    if (!own)
        return;
    for (size_t i = 0; own->apart && i < e->host.threads; i++)
        tarn_run_free(own->apart[i]);
    tarn_run_free(own->together);
    tn_release(&e->host.allocator, own->apart);
    tn_release(&e->host.allocator, own);
}

/* ---- Questions ---------------------------------------------------------- */

static size_t stream_bytes(const tarn_engine *e)
{
    return tn_run_stream_size(((const struct recurrent *)e->own)->together);
}

static size_t bytes_used(const tarn_engine *e)
{
    const struct recurrent *const own = e->own;
    size_t bytes = own->together->bytes + tn_run_packed_bytes(own->together);

    for (size_t i = 0; own->apart && i < e->host.threads; i++)
        bytes += own->apart[i]->bytes;
    return bytes;
}

static const tarn_attention *attention_of(const tarn_engine *e, size_t layer)
{
    const tarn_run *const run = ((const struct recurrent *)e->own)->together;

    return run->model->arch.body->attention(run, layer);
}

static size_t rows(const tarn_engine *e, uint64_t position)
{
    (void)e;
    (void)position;
    return 1;
}

/* A state that does not grow takes what the first position does; a cache adds a row of scores
 * and one of values for each position in it. */
static double attention_flops(const tarn_engine *e, uint64_t position)
{
    tarn_attention one = *attention_of(e, 0);

    if (one.kind->caches)
        return 4.0 * (double)e->model->arch.config.width * (double)(position + 1);
    one.N = one.Nk = 1;
    return tarn_attention_forward_flops(&one);
}

/* ---- Files --------------------------------------------------------------
 *
 * Of a stream they keep, layer after layer, sums as they are, of a cache what is filled, and
 * the symbols that the context reaches back to. */

enum { PARTS = 3 }; /* of a layer's state in a file */

static size_t layers_of(const tarn_engine *e)
{
    return e->model->arch.config.layers;
}

static size_t reach_bytes(const tarn_engine *e)
{
    return e->model->arch.context.reach * sizeof(int32_t);
}

/* Recent symbols that the context reaches back to, then the states of the layers. */
static int32_t *past_of(const tarn_stream *stream)
{
    return (int32_t *)(uintptr_t)(stream + 1);
}

static void *layer_state(const tarn_engine *e, const tarn_stream *stream, size_t layer)
{
    const tarn_run *const run = ((const struct recurrent *)e->own)->together;

    return run->model->arch.body->layer_state(run, (void *)(uintptr_t)(stream + 1), layer);
}

/* A sum is whole at any position. It is kept as for a stream without a limit, so that one with
 * a limit can continue in one without. */
static void layer_parts(const tarn_engine *e, size_t n, size_t parts[PARTS])
{
    tarn_attention plan = *attention_of(e, 0);

    plan.steps = 0;
    if (plan.kind->caches) {
        parts[0] = 0;
        parts[1] = plan.H * n * plan.D * sizeof(float);
        parts[2] = plan.H * n * plan.M * sizeof(float);
    } else {
        const size_t floats =
            (tarn_attention_state_size(&plan) - TN_STATE_HEADER) / sizeof(float);

        parts[0] = TN_STATE_HEADER;
        parts[1] = floats / 2 * sizeof(float);
        parts[2] = (floats - floats / 2) * sizeof(float);
    }
}

static size_t layer_packed(const size_t parts[PARTS])
{
    return parts[0] + parts[1] + parts[2];
}

/* Sections that are empty do not count. */
static size_t section(const tarn_engine *e, size_t n, size_t index, bool *common)
{
    size_t parts[PARTS];

    layer_parts(e, n, parts);
    *common = false;
    for (size_t i = 0; i < layers_of(e) * PARTS; i++)
        if (parts[i % PARTS] > 0 && index-- == 0) {
            *common = i % PARTS == 0;
            return parts[i % PARTS];
        }
    return index == 0 ? reach_bytes(e) : 0;
}

/* The rest of what is packed is zeros: no position has come so far. */
static void pack_sums(const tarn_attention *attention, char *to, const void *from, size_t bytes)
{
    const size_t own = tarn_attention_state_size(attention);

    memcpy(to, from, own);
    memset(to + own, 0, bytes - own);
}

static void pack(const tarn_engine *e, void *packed, const tarn_stream *stream)
{
    const size_t n = (size_t)stream->head.position;
    size_t parts[PARTS];
    char *to = packed;

    layer_parts(e, n, parts);
    for (size_t layer = 0; layer < layers_of(e); layer++, to += layer_packed(parts)) {
        const tarn_attention *const attention = attention_of(e, layer);
        const void *const state = layer_state(e, stream, layer);

        if (attention->kind->caches)
            tn_kv_cache_pack(attention, to, to + parts[1], state, n);
        else
            pack_sums(attention, to, state, layer_packed(parts));
    }
    memcpy(to, past_of(stream), reach_bytes(e));
}

static void unpack(const tarn_engine *e, tarn_stream *stream, const void *packed)
{
    const size_t n = (size_t)stream->head.position;
    size_t parts[PARTS];
    const char *from = packed;

    layer_parts(e, n, parts);
    for (size_t layer = 0; layer < layers_of(e); layer++, from += layer_packed(parts)) {
        const tarn_attention *const attention = attention_of(e, layer);
        void *const state = layer_state(e, stream, layer);

        if (n == 0)
            continue; /* zeros, which are the start */
        if (attention->kind->caches)
            tn_kv_cache_unpack(attention, state, from, from + parts[1], n);
        else
            memcpy(state, from, tarn_attention_state_size(attention));
        tn_state_set(attention, state, n);
    }
    memcpy(past_of(stream), from, reach_bytes(e));
}

static const int32_t *kept(const tarn_engine *e, const tarn_stream *stream, size_t *count)
{
    *count = e->model->arch.context.reach;
    return past_of(stream);
}

const struct tn_method tn_method_recurrent = {
    .about = {.name = "recurrent",
              .help =
                  "each step updates a state, eq. (18)-(20), or a key-value cache for softmax",
              .options = tn_no_options},
    .needs_step = true,
    .has_frames = true,
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
