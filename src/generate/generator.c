/* SPDX-License-Identifier: MIT */
/* generator.c - generators: made here, checked here, handed to the method they name. */
#include "generate/generator.h"

#include <math.h>
#include <string.h>

#include "model/body.h"

#define TN_METHOD(name) extern const struct tn_method tn_method_##name;
#include "generate/methods.def"
#undef TN_METHOD

static const struct tn_method *const methods[] = {
#define TN_METHOD(name) &tn_method_##name,
#include "generate/methods.def"
#undef TN_METHOD
};

static const struct tn_table table = {"method", tarn_method};

const tarn_table_row *tarn_method(size_t index)
{
    return index < sizeof methods / sizeof methods[0] ? &methods[index]->about : NULL;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status choose(tarn_generator *g, const char *name, tarn_error *err)
{
    const struct tn_arch *const arch = &g->model->arch;
    tarn_status status;

    g->method = tn_table_find(
        &table, NULL, name ? name : (arch->has_step ? "recurrent" : "recompute"), &status, err);
    if (!g->method)
        return status;
    if (!arch->body->steps)
        return tn_fail(err, TARN_EINVAL,
                       "model: its body is %s; only a transformer can generate",
                       arch->body->about.name);
    if (!arch->config.causal)
        return tn_fail(
            err, TARN_EINVAL,
            "model: is not causal, so it cannot generate; train one with causal attention");
    if (g->method->needs_step && !arch->has_step)
        return tn_fail(err, TARN_EINVAL,
                       "method: '%s' attention has no recurrent form; use recompute",
                       arch->config.attention);
    if (arch->config.frames > 0 && !g->method->hear)
        return tn_fail(
            err, TARN_EINVAL,
            "method: '%s' needs symbols, and the model's inputs are frames; use recurrent",
            g->method->about.name);
    return TARN_OK;
}

static tarn_status check(const tarn_model *model, const tarn_generator_desc *desc,
                         tarn_error *err)
{
    size_t floats;
    const tarn_config *const config = &model->arch.config;
    const size_t wide = tn_max(tn_max(4 * config->width, config->frames * config->stack),
                               tn_max(config->feed, model->arch.head.outputs));

    if (desc->batch == 0 ||
        !tn_size_product(&floats, (size_t[]){desc->batch, wide, 64 * sizeof(float)}, 3))
        return tn_fail(err, TARN_EINVAL,
                       "batch is %zu; it must be at least 1 and fit in memory", desc->batch);
    return TARN_OK;
}

tarn_status tarn_generator_create(tarn_generator **generator, const tarn_model *model,
                                  const tarn_generator_desc *desc, tarn_error *err)
{
    struct tn_host host;
    tarn_status status;

    if (!generator || !model || !desc)
        return tn_fail(err, TARN_EINVAL, "generator, model and desc must not be NULL");
    *generator = NULL;
    if ((status = check(model, desc, err)) != TARN_OK ||
        (status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    tarn_generator *const g = tn_allocate(&host.allocator, sizeof *g);

    if (!g)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a generator");
    *g = (tarn_generator){
        .model = model,
        .B = desc->batch,
        .longest = desc->longest,
        .host = host,
    };
    if ((status = choose(g, desc->method, err)) != TARN_OK ||
        (status = tn_element_named(&g->elements, desc->precision, err)) != TARN_OK ||
        (status = g->method->create(g, err)) != TARN_OK)
        tarn_generator_free(g);
    else
        *generator = g;
    return status;
}

void tarn_generator_free(tarn_generator *g)
{
    if (!g)
        return;
    if (g->method)
        g->method->free(g);
    const tarn_allocator allocator = g->host.allocator;

    tn_release(&allocator, g);
}

/* ---- Use ---------------------------------------------------------------- */

size_t tn_generator_end(const tarn_generator *g)
{
    const size_t learned = g->model->arch.config.positions;

    return tn_min(g->longest ? g->longest : SIZE_MAX, learned ? learned : SIZE_MAX);
}

static tarn_status check_room(const tarn_generator *g, const struct tn_state *state, size_t n,
                              bool frames, tarn_error *err)
{
    const size_t end = tn_generator_end(g);

    if (frames != (g->model->arch.config.frames > 0))
        return tn_fail(err, TARN_EINVAL,
                       "model: its inputs are %s; this call needs a model of %s",
                       frames ? "symbols" : "frames", frames ? "frames" : "symbols");
    if (state->position > end || n > end - state->position)
        return tn_fail(err, TARN_EINVAL,
                       "%zu more symbols after %llu are too many; at most %zu are allowed, %s",
                       n, (unsigned long long)state->position, end,
                       end == g->longest ? "`longest`" : "the number of learned positions");
    return TARN_OK;
}

static tarn_status check_feed(const tarn_generator *g, const struct tn_state *state,
                              const int32_t *symbols, size_t n, tarn_error *err)
{
    size_t count;
    tarn_status status;

    if (n == 0 || !tn_size_product(&count, (size_t[]){g->B, n, sizeof *symbols}, 3))
        return tn_fail(err, TARN_EINVAL, "n is %zu; it must be at least 1 and fit in memory",
                       n);
    if ((status = check_room(g, state, n, false, err)) != TARN_OK)
        return status;
    return tn_symbols_check(g->model, symbols, g->B * n, "symbols", err);
}

tarn_status tarn_generator_prefill(tarn_generator *g, void *state, const float **outputs,
                                   const int32_t *symbols, size_t n, tarn_error *err)
{
    tarn_status status;

    if (!g || !state || !outputs || !symbols)
        return tn_fail(err, TARN_EINVAL,
                       "generator, state, outputs and symbols must not be NULL");
    if ((status = check_feed(g, state, symbols, n, err)) != TARN_OK)
        return status;
    return g->method->feed(g, state, outputs, symbols, n, err);
}

tarn_status tarn_generator_step(tarn_generator *g, void *state, const float **outputs,
                                const int32_t *symbols, tarn_error *err)
{
    return tarn_generator_prefill(g, state, outputs, symbols, 1, err);
}

tarn_status tarn_generator_frames(tarn_generator *g, void *state, const float **outputs,
                                  const float *frames, tarn_error *err)
{
    tarn_status status;

    if (!g || !state || !outputs || !frames)
        return tn_fail(err, TARN_EINVAL,
                       "generator, state, outputs and frames must not be NULL");
    if ((status = check_room(g, state, 1, true, err)) != TARN_OK)
        return status;
    const tarn_config *const config = &g->model->arch.config;

    for (size_t i = 0; i < g->B * config->stack * config->frames; i++)
        if (!isfinite(frames[i]))
            return tn_fail(err, TARN_EINVAL, "frames[%zu] is %g; it must be finite", i,
                           (double)frames[i]);
    g->method->hear(g, state, outputs, frames);
    return TARN_OK;
}

/* ---- Questions ---------------------------------------------------------- */

size_t tarn_generator_state_size(const tarn_generator *g)
{
    return g->method->state(g);
}

size_t tarn_generator_bytes(const tarn_generator *g)
{
    return g->method->bytes(g);
}

const char *tarn_generator_method(const tarn_generator *g)
{
    return g->method->about.name;
}

/* What a step reads of the weights: all but the tables in which symbols and positions are
 * looked up. */
struct reading {
    const tarn_generator *g;
    size_t floats, bytes;
};

static void read_tensor(void *arg, const struct tn_tensor *tensor)
{
    struct reading *const reading = arg;
    const struct tn_weights *const w = &reading->g->model->weights;
    const bool narrow = tensor->columns > 0 && reading->g->elements == TN_BF16;
    const size_t count = tn_tensor_count(tensor);

    if (*tensor->at == w->embedding || *tensor->at == w->context || *tensor->at == w->positions)
        return;
    reading->floats += count;
    reading->bytes += count * (narrow ? sizeof(uint16_t) : sizeof(float));
}

static struct reading read_all(const tarn_generator *g)
{
    struct tn_weights weights = g->model->weights;
    struct reading reading = {.g = g};

    tn_weights_visit(&weights, &g->model->arch, read_tensor, &reading);
    return reading;
}

size_t tarn_generator_weight_bytes(const tarn_generator *g)
{
    return read_all(g).bytes;
}

double tarn_generator_flops(const tarn_generator *g, uint64_t position)
{
    return 2.0 * (double)read_all(g).floats * (double)g->method->rows(g, position) +
           (double)g->model->arch.config.layers * g->method->attention_flops(g, position);
}

uint64_t tarn_state_position(const void *state)
{
    uint64_t position;

    memcpy(&position, state, sizeof position);
    return position;
}
