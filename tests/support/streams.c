/* SPDX-License-Identifier: MIT */
#include "support/streams.h"

#include <stdlib.h>
#include <string.h>

tarn_engine *engine_of(const tarn_model *model, tarn_engine_desc desc)
{
    tarn_engine *engine;
    tarn_error err;

    desc.host.cpu = forced_cpu();
    check_ok(tarn_engine_create(&engine, model, &desc, &err), &err);
    return engine;
}

void engine_close(tarn_engine *engine)
{
    tarn_error err;

    check_ok(tarn_engine_free(engine, &err), &err);
}

struct streams streams_open(const tarn_model *model, tarn_engine_desc desc, size_t n)
{
    struct streams s = {.engine = engine_of(model, desc), .n = n};
    tarn_error err;

    s.O = tarn_model_outputs(model);
    s.size = tarn_stream_size(s.engine);
    s.at = take(n, sizeof(tarn_stream *));
    s.outputs = take(n * s.O, sizeof *s.outputs);
    for (size_t i = 0; i < n; i++)
        check_ok(tarn_stream_create(&s.at[i], s.engine, &err), &err);
    return s;
}

struct streams streams_by(const tarn_model *model, const char *method, size_t longest, size_t n)
{
    return streams_open(model, (tarn_engine_desc){.longest = longest, .method = method}, n);
}

void streams_close(struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        tarn_stream_free(s->at[i]);
    free(s->at);
    free(s->outputs);
    engine_close(s->engine);
}

void streams_restart(struct streams *s)
{
    for (size_t i = 0; i < s->n; i++)
        memset(s->at[i], 0, s->size);
}

const float *streams_step(struct streams *s, const int32_t *symbols)
{
    tarn_error err;

    check_ok(tarn_engine_step(s->engine, s->at, s->outputs, symbols, s->n, &err), &err);
    return s->outputs;
}

const float *streams_prefill(struct streams *s, const int32_t *symbols, size_t n)
{
    tarn_error err;

    for (size_t i = 0; i < s->n; i++)
        check_ok(tarn_engine_prefill(s->engine, s->at[i], s->outputs + i * s->O,
                                     symbols + i * n, n, &err),
                 &err);
    return s->outputs;
}

void streams_sampling(struct streams *s, tarn_sampling sampling)
{
    tarn_error err;

    for (size_t i = 0; i < s->n; i++, sampling.number++)
        check_ok(tarn_stream_sampling(s->at[i], &sampling, &err), &err);
}

const float *streams_feed(struct streams *s, const int32_t *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++)
        streams_step(s, symbols + i * s->n);
    return s->outputs;
}

unsigned char *streams_pack(const struct streams *s, size_t *size)
{
    tarn_error err;

    *size = 0;
    check_ok(tarn_streams_pack(s->engine, NULL, size, s->at, s->n, &err), &err);
    unsigned char *const bytes = take(*size, 1);

    check_ok(tarn_streams_pack(s->engine, bytes, size, s->at, s->n, &err), &err);
    return bytes;
}
