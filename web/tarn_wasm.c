/* SPDX-License-Identifier: MIT */
/* tarn_wasm.c - what the WebAssembly module exports: a model, its engine, and streams.
 *
 * The functions of generate.h with arguments that JavaScript can pass: numbers, and addresses
 * in the module's memory. tarn.js is the only caller. A function that fails returns 0, false or
 * NaN, and failure() is its sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "generate/engine.h"
#include "model/model_file.h"

#define EXPORT(name) __attribute__((export_name(#name)))

struct session {
    tarn_model *model;
    tarn_engine *engine;
    float *outputs; /* of one stream, for scores */
    void *scratch;  /* of the head's loss of one row */
};

static tarn_error err;
static char text[TARN_PATH_SIZE];

EXPORT(failure) const char *failure(void)
{
    return err.text;
}

EXPORT(version) const char *version(void)
{
    return tarn_version();
}

EXPORT(instruction_set) const char *instruction_set(size_t index)
{
    return tarn_cpu_name(index);
}

/* Aligned as tn_safetensors_parse() needs it; NULL: not enough memory. */
EXPORT(allocate) void *allocate(size_t bytes)
{
    struct tn_bytes block;

    return tn_bytes_allocate(&block, bytes, &err) == TARN_OK ? block.data : NULL;
}

EXPORT(release) void release(void *memory)
{
    free(memory);
}

/* ---- Model and engine --------------------------------------------------- */

EXPORT(unload) void unload(struct session *s)
{
    if (!s)
        return;
    tarn_engine_free(s->engine, NULL);
    tarn_model_free(s->model);
    free(s->outputs);
    free(s->scratch);
    free(s);
}

static tarn_status read_model(struct session *s, struct tn_bytes *file)
{
    struct tn_safetensors tensors;
    tarn_status status = tn_safetensors_parse(&tensors, file, "model", &err);

    if (status != TARN_OK)
        return status;
    status = tn_model_from_file(&s->model, &tensors, "model", NULL, &err);
    tn_safetensors_free(&tensors);
    return status;
}

static struct tn_rows one_row(const struct session *s)
{
    return (struct tn_rows){s->engine->host.kernels, 1, 1, tarn_model_outputs(s->model)};
}

static tarn_status make_room(struct session *s)
{
    const struct tn_rows one = one_row(s);

    s->outputs = calloc(one.width, sizeof *s->outputs);
    s->scratch = malloc(tn_head_scratch_size(&s->model->arch.head, &one, 1));
    return s->outputs && s->scratch ? TARN_OK : tn_fail(&err, TARN_ENOMEM, "not enough memory");
}

/* `file`, of allocate(), is released in any case. Empty strings and 0 are the defaults of
 * tarn_engine_desc. */
EXPORT(load)
struct session *load(void *file, size_t size, size_t longest, size_t capacity,
                     const char *precision, const char *cpu)
{
    const tarn_engine_desc desc = {.longest = longest,
                                   .capacity = capacity,
                                   .precision = *precision ? precision : NULL,
                                   .host = {.threads = 1, .cpu = *cpu ? cpu : NULL}};
    struct tn_bytes bytes = {.data = file, .size = size};
    struct session *const s = calloc(1, sizeof *s);
    tarn_status status = TARN_OK;

    if (!s)
        status = tn_fail(&err, TARN_ENOMEM, "not enough memory");
    if (status == TARN_OK)
        status = read_model(s, &bytes);
    tn_bytes_free(&bytes);
    if (status == TARN_OK)
        status = tarn_engine_create(&s->engine, s->model, &desc, &err);
    if (status == TARN_OK)
        status = make_room(s);
    if (status == TARN_OK)
        return s;
    unload(s);
    return NULL;
}

/* A field of the configuration as text; NULL: there is no such field. Valid until the next
 * call. */
EXPORT(config) const char *config(const struct session *s, const char *field)
{
    const tarn_config *const all = tarn_model_config(s->model);

    return tarn_config_text(all, text, sizeof text, field, &err) == TARN_OK ? text : NULL;
}

EXPORT(parameters) size_t parameters(const struct session *s)
{
    return tarn_model_parameters(s->model);
}

EXPORT(outputs) size_t outputs(const struct session *s)
{
    return tarn_model_outputs(s->model);
}

EXPORT(stream_size) size_t stream_size(const struct session *s)
{
    return tarn_stream_size(s->engine);
}

/* ---- Streams ------------------------------------------------------------ */

EXPORT(stream_create) tarn_stream *stream_create(struct session *s)
{
    tarn_stream *stream;

    return tarn_stream_create(&stream, s->engine, &err) == TARN_OK ? stream : NULL;
}

EXPORT(stream_free) void stream_free(tarn_stream *stream)
{
    tarn_stream_free(stream);
}

EXPORT(stream_copy)
void stream_copy(const struct session *s, tarn_stream *to, const tarn_stream *from)
{
    memcpy(to, from, tarn_stream_size(s->engine));
}

EXPORT(position) double position(const tarn_stream *stream)
{
    return (double)tarn_stream_position(stream);
}

/* The symbol that was drawn but not yet fed; -1: none. */
EXPORT(next) int32_t next(const tarn_stream *stream)
{
    return tarn_stream_next(stream);
}

EXPORT(sampling)
bool sampling(tarn_stream *stream, double temperature, size_t top_k, double top_p, bool greedy,
              uint64_t seed, uint64_t number)
{
    const tarn_sampling how = {.temperature = temperature,
                               .top_k = top_k,
                               .top_p = top_p,
                               .greedy = greedy,
                               .seed = seed,
                               .number = number};

    return tarn_stream_sampling(stream, &how, &err) == TARN_OK;
}

/* What a stream has now, for those who change a part of it: temperature, top_p, top_k, greedy;
 * seed, number. */
EXPORT(settings)
void settings(const tarn_stream *stream, double numbers[4], uint64_t seeds[2])
{
    const struct tn_stream_head *const head = &stream->head;

    numbers[0] = head->temperature;
    numbers[1] = head->top_p;
    numbers[2] = (double)head->top_k;
    numbers[3] = head->greedy;
    seeds[0] = head->seed;
    seeds[1] = head->number;
}

EXPORT(step)
bool step(struct session *s, tarn_stream *const *streams, float *out, const int32_t *symbols,
          size_t n)
{
    return tarn_engine_step(s->engine, streams, out, symbols, n, &err) == TARN_OK;
}

EXPORT(prefill)
bool prefill(struct session *s, tarn_stream *stream, float *out, const int32_t *symbols,
             size_t n)
{
    return tarn_engine_prefill(s->engine, stream, out, symbols, n, &err) == TARN_OK;
}

EXPORT(draw)
bool draw(struct session *s, tarn_stream *const *streams, int32_t *symbols, const float *out,
          size_t n)
{
    return tarn_engine_draw(s->engine, streams, symbols, out, n, &err) == TARN_OK;
}

/* As tarn_streams_pack(): the bytes of --save-state. 0: it failed. */
EXPORT(pack)
size_t pack(const struct session *s, void *bytes, size_t size, tarn_stream *stream)
{
    return tarn_streams_pack(s->engine, bytes, &size, &stream, 1, &err) == TARN_OK ? size : 0;
}

EXPORT(unpack)
bool unpack(const struct session *s, tarn_stream *stream, const void *bytes, size_t size)
{
    return tarn_streams_unpack(s->engine, &stream, 1, bytes, size, &err) == TARN_OK;
}

/* ---- Scores ------------------------------------------------------------- */

/* -log p of one symbol, in nats. */
static double loss_of(const struct session *s, int32_t symbol)
{
    const struct tn_rows one = one_row(s);
    struct tn_loss loss;

    tn_head_loss(&(struct tn_head_call){.head = &s->model->arch.head,
                                        .rows = &one,
                                        .outputs = s->outputs,
                                        .targets = &symbol,
                                        .scratch = s->scratch},
                 &loss);
    return loss.loss;
}

/* Feeds all symbols but the last and returns the sum of -log p of all but the first. */
EXPORT(score)
double score(struct session *s, tarn_stream *stream, const int32_t *symbols, size_t n)
{
    double sum = 0.0;

    if (s->model->arch.head.row->sequence) {
        tn_fail(&err, TARN_EINVAL, "the model predicts whole sequences, which have no score");
        return (double)NAN;
    }
    if (tn_symbols_check(s->model, symbols, n, "symbols", &err) != TARN_OK)
        return (double)NAN;
    for (size_t i = 0; i + 1 < n; i++) {
        if (tarn_engine_step(s->engine, &stream, s->outputs, &symbols[i], 1, &err) != TARN_OK)
            return (double)NAN;
        sum += loss_of(s, symbols[i + 1]);
    }
    return sum;
}
