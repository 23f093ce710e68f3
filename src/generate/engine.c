/* SPDX-License-Identifier: MIT */
/* engine.c - engines: made here, their calls checked here, handed to the method they name. */
#include "generate/engine.h"

#include <math.h>

#include "base/number.h"
#include "model/body.h"

static const struct tn_method *const methods[] = {&tn_method_recurrent, &tn_method_recompute};

static const struct tn_table table = {"method", tarn_method};

enum { PER_THREAD = 64 }; /* streams, by default */

const tarn_table_row *tarn_method(size_t index)
{
    return index < sizeof methods / sizeof methods[0] ? &methods[index]->about : NULL;
}

/* ---- Create and free ---------------------------------------------------- */

static tarn_status choose(tarn_engine *e, const char *name, tarn_error *err)
{
    const struct tn_arch *const arch = &e->model->arch;
    tarn_status status;

    e->method = tn_table_find(
        &table, NULL, name ? name : (arch->has_step ? "recurrent" : "recompute"), &status, err);
    if (!e->method)
        return status;
    if (!arch->body->step)
        return tn_fail(err, TARN_EINVAL,
                       "model: its body is %s; only a transformer can generate",
                       arch->body->about.name);
    if (!arch->config.causal)
        return tn_fail(
            err, TARN_EINVAL,
            "model: is not causal, so it cannot generate; train one with causal attention");
    if (e->method->needs_step && !arch->has_step)
        return tn_fail(err, TARN_EINVAL,
                       "method: '%s' attention has no recurrent form; use recompute",
                       arch->config.attention);
    if (arch->config.frames > 0 && !e->method->has_frames)
        return tn_fail(
            err, TARN_EINVAL,
            "method: '%s' needs symbols, and the model's inputs are frames; use recurrent",
            e->method->about.name);
    return TARN_OK;
}

/* Streams of the same model, method and size mean the same. */
static uint64_t form_of(const tarn_engine *e)
{
    uint64_t hash = tn_random_absorb(e->fingerprint, tarn_stream_size(e));

    for (const char *at = e->method->about.name; *at; at++)
        hash = tn_random_absorb(hash, (uint64_t)*at);
    return hash | 1;
}

static tarn_status fill(tarn_engine *e, const tarn_engine_desc *desc, tarn_error *err)
{
    tarn_status status;

    if ((status = choose(e, desc->method, err)) != TARN_OK ||
        (status = tn_element_named(&e->elements, desc->precision, TN_ELEMENTS, err)) !=
            TARN_OK ||
        (status = e->method->create(e, err)) != TARN_OK ||
        (status = tn_sampler_create(&e->sampler, e->model, &e->host, err)) != TARN_OK)
        return status;
    if (e->method->stream(e) > PTRDIFF_MAX)
        return tn_fail(err, TARN_EINVAL, "longest is %zu; such streams do not fit in memory",
                       e->longest);
    e->fingerprint = tarn_model_fingerprint(e->model);
    e->form = form_of(e);
    return TARN_OK;
}

static void destroy(tarn_engine *e)
{
    const tarn_allocator allocator = e->host.allocator;

    if (e->method)
        e->method->free(e);
    tn_sampler_free(e->sampler, &e->host);
    tn_release(&allocator, e);
}

tarn_status tarn_engine_create(tarn_engine **engine, const tarn_model *model,
                               const tarn_engine_desc *desc, tarn_error *err)
{
    struct tn_host host;
    tarn_status status;

    if (!engine || !model || !desc)
        return tn_fail(err, TARN_EINVAL, "engine, model and desc must not be NULL");
    *engine = NULL;
    if ((status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    tarn_engine *const e = tn_allocate(&host.allocator, sizeof *e);

    if (!e)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an engine");
    *e = (tarn_engine){
        .model = model,
        .longest = desc->longest,
        .capacity = desc->capacity ? desc->capacity : PER_THREAD * host.threads,
        .host = host,
    };
    if ((status = fill(e, desc, err)) != TARN_OK)
        destroy(e);
    else
        *engine = e;
    return status;
}

tarn_status tarn_engine_free(tarn_engine *e, tarn_error *err)
{
    if (e && e->streams > 0)
        return tn_fail(err, TARN_EINVAL, "engine: has %zu streams; free them first",
                       e->streams);
    if (e)
        destroy(e);
    return TARN_OK;
}

/* ---- Checks ------------------------------------------------------------- */

size_t tn_engine_end(const tarn_engine *e)
{
    const size_t learned = e->model->arch.config.positions;

    return tn_min(e->longest ? e->longest : SIZE_MAX, learned ? learned : SIZE_MAX);
}

tarn_status tn_stream_check(const tarn_engine *e, const tarn_stream *stream, size_t i,
                            size_t length, tarn_error *err)
{
    const size_t end = tn_engine_end(e);

    if (!stream)
        return tn_fail(err, TARN_EINVAL, "streams[%zu] must not be NULL", i);
    if (stream->form != e->form && (stream->form != 0 || stream->head.position != 0))
        return tn_fail(err, TARN_EINVAL,
                       "streams[%zu]: is of another model, method or `longest` than the engine",
                       i);
    const uint64_t position = stream->head.position;

    if (position > end || length > end - position)
        return tn_fail(
            err, TARN_EINVAL,
            "streams[%zu]: %zu more symbols after %llu are too many; at most %zu are allowed, "
            "%s",
            i, length, (unsigned long long)position, end,
            end == e->longest ? "`longest`" : "the number of learned positions");
    return TARN_OK;
}

/* Marks are 0 outside of this. */
static tarn_status check_twice(tarn_stream *const *streams, size_t n, tarn_error *err)
{
    size_t marked = 0;

    while (marked < n && !streams[marked]->marked)
        streams[marked++]->marked = 1;
    for (size_t i = 0; i < marked; i++)
        streams[i]->marked = 0;
    return marked == n ? TARN_OK
                       : tn_fail(err, TARN_EINVAL,
                                 "streams[%zu]: is the same stream as one before it; each may "
                                 "appear once",
                                 marked);
}

static tarn_status check_streams(const tarn_engine *e, tarn_stream *const *streams, size_t n,
                                 size_t length, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < n && status == TARN_OK; i++)
        status = tn_stream_check(e, streams[i], i, length, err);
    return status == TARN_OK ? check_twice(streams, n, err) : status;
}

static tarn_status check_symbols(const tarn_engine *e, const struct tn_feed *feed,
                                 tarn_error *err)
{
    if (feed->symbols)
        return tn_symbols_check(e->model, feed->symbols, feed->n * feed->length, "symbols",
                                err);
    for (size_t i = 0; i < feed->n; i++)
        if (feed->streams[i]->head.drawn == 0)
            return tn_fail(err, TARN_EINVAL,
                           "streams[%zu]: has no next symbol; draw one, or pass symbols", i);
    return TARN_OK;
}

static tarn_status check_frames(const tarn_engine *e, const struct tn_feed *feed,
                                tarn_error *err)
{
    const tarn_config *const config = &e->model->arch.config;

    for (size_t i = 0; i < feed->n * config->stack * config->frames; i++)
        if (!isfinite(feed->frames[i]))
            return tn_fail(err, TARN_EINVAL, "frames[%zu] is %g; it must be finite", i,
                           (double)feed->frames[i]);
    return TARN_OK;
}

static tarn_status check_feed(const tarn_engine *e, const struct tn_feed *feed, tarn_error *err)
{
    size_t count;
    tarn_status status;
    const bool frames = feed->frames != NULL;

    if (frames != (e->model->arch.config.frames > 0))
        return tn_fail(err, TARN_EINVAL,
                       "model: its inputs are %s; this call needs a model of %s",
                       frames ? "symbols" : "frames", frames ? "frames" : "symbols");
    if (feed->n == 0 || feed->length == 0 ||
        !tn_size_product(&count, (size_t[]){feed->n, feed->length, sizeof(int32_t)}, 3))
        return tn_fail(err, TARN_EINVAL, "n is %zu; it must be at least 1 and fit in memory",
                       tn_min(feed->n, feed->length));
    if ((status = check_streams(e, feed->streams, feed->n, feed->length, err)) != TARN_OK)
        return status;
    return frames ? check_frames(e, feed, err) : check_symbols(e, feed, err);
}

/* ---- Use ---------------------------------------------------------------- */

static tarn_status feed(tarn_engine *e, const struct tn_feed *feed, tarn_error *err)
{
    tarn_status status;

    if ((status = check_feed(e, feed, err)) != TARN_OK ||
        (status = e->method->feed(e, feed, err)) != TARN_OK)
        return status;
    for (size_t i = 0; i < feed->n; i++) {
        feed->streams[i]->head.position += feed->length;
        feed->streams[i]->head.drawn = 0;
        feed->streams[i]->form = e->form;
    }
    if (feed->outputs && !tn_all_finite(feed->outputs, feed->n * e->model->arch.head.outputs))
        return tn_fail(err, TARN_ENUMBER,
                       "the outputs of the model are not finite: its weights are too large");
    return TARN_OK;
}

tarn_status tarn_engine_step(tarn_engine *e, tarn_stream *const *streams, float *outputs,
                             const int32_t *symbols, size_t n, tarn_error *err)
{
    if (!e || !streams)
        return tn_fail(err, TARN_EINVAL, "engine and streams must not be NULL");
    const struct tn_feed next = {streams, n, 1, symbols, NULL, outputs};

    return feed(e, &next, err);
}

tarn_status tarn_engine_prefill(tarn_engine *e, tarn_stream *stream, float *outputs,
                                const int32_t *symbols, size_t n, tarn_error *err)
{
    if (!e || !stream || !symbols)
        return tn_fail(err, TARN_EINVAL, "engine, stream and symbols must not be NULL");
    const struct tn_feed prompt = {&stream, 1, n, symbols, NULL, outputs};

    return feed(e, &prompt, err);
}

tarn_status tarn_engine_frames(tarn_engine *e, tarn_stream *const *streams, float *outputs,
                               const float *frames, size_t n, tarn_error *err)
{
    if (!e || !streams || !frames)
        return tn_fail(err, TARN_EINVAL, "engine, streams and frames must not be NULL");
    const struct tn_feed next = {streams, n, 1, NULL, frames, outputs};

    return feed(e, &next, err);
}

tarn_status tarn_engine_draw(tarn_engine *e, tarn_stream *const *streams, int32_t *symbols,
                             const float *outputs, size_t n, tarn_error *err)
{
    tarn_status status;

    if (!e || !streams || !outputs)
        return tn_fail(err, TARN_EINVAL, "engine, streams and outputs must not be NULL");
    if (!e->sampler)
        return tn_fail(err, TARN_EINVAL,
                       "model: its head '%s' predicts whole sequences; sampling needs one that "
                       "predicts a symbol per position",
                       e->model->arch.head.row->about.name);
    if ((status = check_streams(e, streams, n, 0, err)) != TARN_OK)
        return status;
    tn_sampler_draw(e->sampler, streams, outputs, n);
    for (size_t i = 0; i < n && symbols; i++)
        symbols[i] = streams[i]->head.drawn - 1;
    return TARN_OK;
}

/* ---- Questions ---------------------------------------------------------- */

size_t tarn_engine_bytes(const tarn_engine *e)
{
    return e->method->bytes(e);
}

const char *tarn_engine_method(const tarn_engine *e)
{
    return e->method->about.name;
}

/* What a step reads of the weights: all but the tables that symbols and positions index. */
struct reading {
    const tarn_engine *engine;
    size_t floats, bytes;
};

static void read_tensor(void *arg, const struct tn_tensor *tensor)
{
    struct reading *const reading = arg;
    const struct tn_weights *const w = &reading->engine->model->weights;
    const enum tn_element elements = tensor->columns > 0 ? reading->engine->elements : TN_F32;

    if (*tensor->at == w->embedding || *tensor->at == w->context || *tensor->at == w->positions)
        return;
    reading->floats += tn_tensor_count(tensor);
    reading->bytes += tn_element_bytes(elements, tensor->rows, tn_max(tensor->columns, 1));
}

static struct reading read_all(const tarn_engine *e)
{
    struct tn_weights weights = e->model->weights;
    struct reading reading = {.engine = e};

    tn_weights_visit(&weights, &e->model->arch, read_tensor, &reading);
    return reading;
}

size_t tarn_engine_weight_bytes(const tarn_engine *e)
{
    return read_all(e).bytes;
}

double tarn_engine_flops(const tarn_engine *e, uint64_t position)
{
    return 2.0 * (double)read_all(e).floats * (double)e->method->rows(e, position) +
           (double)e->model->arch.config.layers * e->method->attention_flops(e, position);
}
