/* SPDX-License-Identifier: MIT */
/* stream.c - what can be done with a stream without its engine's weights. */
#include <string.h>

#include "generate/engine.h"

/* ---- Create and free ---------------------------------------------------- */

/* Lies before a stream that an engine created, which itself has no pointers. */
struct owner {
    tarn_engine *engine;
    void *memory; /* as allocated */
};

static struct owner *owner_of(tarn_stream *stream)
{
    return (struct owner *)(void *)((char *)stream - TN_ALIGN);
}

size_t tarn_stream_size(const tarn_engine *e)
{
    return sizeof(tarn_stream) + tn_round_up(e->method->stream(e), TN_ALIGN);
}

tarn_status tarn_stream_create(tarn_stream **stream, tarn_engine *e, tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    if (!stream || !e)
        return tn_fail(err, TARN_EINVAL, "stream and engine must not be NULL");
    const size_t bytes = tarn_stream_size(e);

    *stream = NULL;
    tn_arena_alloc(&measure, TN_ALIGN + bytes, 1);
    void *const memory = tn_allocate(&e->host.allocator, tn_arena_bytes(&measure));

    if (!memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for another stream of %zu bytes; the engine has %zu",
                       bytes, e->streams);
    *stream = (tarn_stream *)(void *)(tn_arena_over(memory).base + TN_ALIGN);
    memset(*stream, 0, bytes);
    *owner_of(*stream) = (struct owner){e, memory};
    e->streams++;
    return TARN_OK;
}

void tarn_stream_free(tarn_stream *stream)
{
    if (!stream)
        return;
    const struct owner owner = *owner_of(stream);

    owner.engine->streams--;
    tn_release(&owner.engine->host.allocator, owner.memory);
}

/* ---- Questions and settings --------------------------------------------- */

uint64_t tarn_stream_position(const tarn_stream *stream)
{
    return stream->head.position;
}

int32_t tarn_stream_next(const tarn_stream *stream)
{
    return stream->head.drawn - 1;
}

tarn_status tarn_stream_sampling(tarn_stream *stream, const tarn_sampling *sampling,
                                 tarn_error *err)
{
    tarn_status status;

    if (!stream || !sampling)
        return tn_fail(err, TARN_EINVAL, "stream and sampling must not be NULL");
    struct tn_stream_head head = stream->head;

    head.temperature = sampling->temperature;
    head.top_k = sampling->top_k;
    head.top_p = sampling->top_p;
    head.greedy = sampling->greedy;
    head.seed = sampling->seed;
    head.number = sampling->number;
    if ((status = tn_sampling_refuse(&head, err)) == TARN_OK)
        stream->head = head;
    return status;
}
