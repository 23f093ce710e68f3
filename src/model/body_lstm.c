/* SPDX-License-Identifier: MIT */
/* body_lstm.c - layers of an LSTM (lstm.h): the output of one is the input of the next. The
 * paper's baseline for speech is three of them over frames as they are.
 *
 * A layer has a direction more unless the model is causal, and needs no positions. */
#include <stdio.h>
#include <string.h>

#include "layer/lstm.h"
#include "model/body.h"

struct lstm {
    struct tn_lstm
        plans[2];   /* of the first layer, which may read another width; of the others */
    float **inputs; /* of each layer, then the last one's output */
    struct tn_lstm_activations *activations;
    float *d; /* another run->d: they change places with each layer */
};

/* ---- Sizes -------------------------------------------------------------- */

static size_t ways_of(const struct tn_arch *arch)
{
    return arch->config.causal ? 1 : TN_LSTM_WAYS;
}

/* Units of a direction. */
static size_t units_of(const struct tn_arch *arch)
{
    return arch->config.width / ways_of(arch);
}

static size_t inputs_of(const struct tn_arch *arch, size_t layer)
{
    const tarn_config *const config = &arch->config;

    return layer == 0 && config->frames > 0 ? config->frames * config->stack : config->width;
}

static tarn_status check(const struct tn_arch *arch, tarn_error *err)
{
    const tarn_config *const config = &arch->config;

    if (config->width % ways_of(arch) != 0)
        return tn_fail(err, TARN_EINVAL,
                       "width is %zu; it must be even for a bidirectional lstm", config->width);
    if (config->frames > 0 && strcmp(config->position, "none") != 0)
        return tn_fail(err, TARN_EINVAL,
                       "position is '%s'; it must be none for an lstm that reads frames",
                       config->position);
    if (config->dropout != 0.0)
        return tn_fail(err, TARN_EINVAL, "dropout is %g; it must be 0 with an lstm",
                       config->dropout);
    return TARN_OK;
}

/* Named and started as PyTorch's. */
static void tensors(struct tn_tensor_walk *walk, struct tn_weights *weights,
                    const struct tn_arch *arch)
{
    const size_t H = units_of(arch), ways = ways_of(arch);

    for (size_t i = 0; i < arch->config.layers * ways; i++) {
        const size_t layer = i / ways, way = i % ways;
        struct tn_lstm_weights *const to = &weights->blocks[layer].lstm[way];
        const struct {
            float **at;
            const char *name;
            size_t columns;
        } rows[] = {{&to->in, "weight_ih", inputs_of(arch, layer)},
                    {&to->hidden, "weight_hh", H},
                    {&to->in_bias, "bias_ih", 0},
                    {&to->hidden_bias, "bias_hh", 0}};

        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            char name[64];

            snprintf(name, sizeof name, "lstm.%s_l%zu%s", rows[k].name, layer,
                     way ? "_reverse" : "");
            tn_visit_tensor(walk, rows[k].at, name, 4 * H, rows[k].columns, TN_START_UNIFORM,
                            (double)H);
        }
    }
}

/* ---- Plans -------------------------------------------------------------- */

static void *take(const struct tn_arch *arch, struct tn_arena *arena)
{
    const size_t layers = arch->config.layers;
    struct lstm *const own = tn_arena_alloc(arena, 1, sizeof *own);
    float **const inputs = tn_arena_alloc(arena, layers + 1, sizeof *inputs);
    struct tn_lstm_activations *const activations =
        tn_arena_alloc(arena, layers, sizeof *activations);

    if (own)
        *own = (struct lstm){.inputs = inputs, .activations = activations};
    return own;
}

static tarn_status plan(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    struct lstm *const own = run->body;
    struct tn_lstm_desc lstm = {.B = run->B,
                                .N = run->N,
                                .units = units_of(arch),
                                .one_way = ways_of(arch) == 1,
                                .trains = desc->trains};
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < tn_min(arch->config.layers, 2) && status == TARN_OK; i++) {
        lstm.in = inputs_of(arch, i);
        status = tn_lstm_init(&own->plans[i], &lstm, &run->host, err);
    }
    return status;
}

static void clear(tarn_run *run)
{
    struct lstm *const own = run->body;

    tn_lstm_clear(&own->plans[0]);
    tn_lstm_clear(&own->plans[1]);
}

static const struct tn_lstm *plan_of(const tarn_run *run, size_t layer)
{
    const struct lstm *const own = run->body;

    return &own->plans[layer > 0];
}

/* ---- Memory ------------------------------------------------------------- */

/* Outside of training two arrays take turns as input and output. */
static void lay_out(tarn_run *run, struct tn_arena *arena)
{
    const size_t layers = run->model->arch.config.layers, floats = run->R * run->rows.width;
    struct lstm *const own = run->body;

    for (size_t i = 0; i <= layers; i++)
        own->inputs[i] =
            i < 2 || run->trains ? tn_arena_floats(arena, floats) : own->inputs[i - 2];
    for (size_t i = 0; i < layers; i++)
        own->activations[i] = tn_lstm_activations_lay_out(plan_of(run, i), arena);
    if (run->trains)
        own->d = tn_arena_floats(arena, floats);
    run->x = own->inputs[0];
    run->y = own->inputs[layers];
}

static size_t scratch(const tarn_run *run)
{
    const bool more = run->model->arch.config.layers > 1;

    return tn_max(tn_lstm_scratch_size(plan_of(run, 0)),
                  more ? tn_lstm_scratch_size(plan_of(run, 1)) : 0);
}

/* ---- Use ---------------------------------------------------------------- */

static const float *input_of(const tarn_run *run, size_t layer)
{
    const struct lstm *const own = run->body;

    return layer == 0 && run->stacked ? run->stacked : own->inputs[layer];
}

static void forward(tarn_run *run)
{
    const struct lstm *const own = run->body;

    for (size_t i = 0; i < run->model->arch.config.layers; i++)
        tn_lstm_forward(plan_of(run, i), &own->activations[i], own->inputs[i + 1],
                        input_of(run, i), run->weights->blocks[i].lstm, run->lengths,
                        run->scratch);
}

static void backward(tarn_run *run, const struct tn_weights *gradients)
{
    struct lstm *const own = run->body;

    for (size_t i = run->model->arch.config.layers; i-- > 0;) {
        float *const dx = i == 0 && run->stacked ? NULL : own->d;

        tn_lstm_backward(plan_of(run, i), &own->activations[i], dx, gradients->blocks[i].lstm,
                         run->d, own->inputs[i + 1], input_of(run, i),
                         run->weights->blocks[i].lstm, run->lengths, run->scratch);
        tn_run_complete(run, gradients->blocks[i].lstm[0].in);
        if (dx) {
            own->d = run->d;
            run->d = dx;
        }
    }
}

const struct tn_body tn_body_lstm = {
    .about = {"lstm", "LSTM layers, bidirectional unless causal", tn_no_options},
    .takes_frames = true,
    .check = check,
    .tensors = tensors,
    .take = take,
    .plan = plan,
    .clear = clear,
    .lay_out = lay_out,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
};
