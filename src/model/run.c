/* SPDX-License-Identifier: MIT */
/* run.c - the model from symbols or frames to outputs, and the gradient back. */
#include "model/run.h"

#include <math.h>
#include <string.h>

#include "layer/embed.h"
#include "model/body.h"
#include "model/slices.h"

/* ---- States ------------------------------------------------------------- */

static size_t past_bytes(const tarn_run *run)
{
    return run->B * run->model->arch.context.reach * sizeof(int32_t);
}

/* Rounded, so that the past symbols after the states are aligned. */
static size_t body_bytes(const tarn_run *run)
{
    const struct tn_body *const body = run->model->arch.body;

    return body->states ? tn_round_up(body->states(run), TN_ALIGN) : 0;
}

size_t tn_run_states_size(const tarn_run *run)
{
    const size_t bytes = body_bytes(run);

    return bytes > 0 ? bytes + past_bytes(run) : 0;
}

bool tn_run_states_fit(const tarn_run *run, const void *states, uint64_t position)
{
    const struct tn_context *const context = &run->model->arch.context;
    const char *const past = (const char *)states + body_bytes(run);

    for (size_t i = 0; i < past_bytes(run) / sizeof(int32_t); i++) {
        int32_t symbol;

        memcpy(&symbol, past + i * sizeof symbol, sizeof symbol);
        if (symbol < 0 || (size_t)symbol >= context->symbols)
            return false;
    }
    return run->model->arch.body->states_fit(run, states, position);
}

static struct tn_context_place place_of(const tarn_run *run, const int32_t *symbols)
{
    const struct tn_run_states *const states = run->states;
    const struct tn_slices *const slices = run->slices;

    if (slices)
        return (struct tn_context_place){symbols, run->B, run->N, slices->past,
                                         tn_slice_from(run, slices->at)};
    if (!states)
        return (struct tn_context_place){symbols, run->B, run->N, NULL, 0};
    return (struct tn_context_place){
        symbols, run->B, run->N,
        (const int32_t *)(const void *)((const char *)states->from + body_bytes(run)),
        states->position};
}

static void remember(const tarn_run *run, const struct tn_context_place *place)
{
    int32_t *const past = (int32_t *)(void *)((char *)run->states->to + body_bytes(run));

    memcpy(past, place->past, past_bytes(run));
    tn_context_remember(&run->model->arch.context, past, place);
}

/* ---- Embedding ---------------------------------------------------------- */

/* Of the symbols in `rows` rows, and of their contexts, whose rows were found. */
static void embed_symbols(const tarn_run *run, size_t rows, const int32_t *symbols)
{
    const struct tn_context *const context = &run->model->arch.context;
    const struct tn_position *const position = &run->model->arch.position;
    struct tn_rows values = run->rows;

    values.rows = rows;
    values.width = position->embedding;
    tn_embed_forward(&values, run->x, position->F, run->weights->embedding, symbols);
    tn_context_forward(context, &values, run->x, position->F, run->weights->context,
                       run->context);
}

static void project_frames(const tarn_run *run, size_t rows, const float *stacks)
{
    const struct tn_dense projection = tn_dense_of_rows(&run->projection, rows);

    tn_dense_forward(&projection, run->x, stacks, run->weights->frames,
                     run->weights->frames_bias, run->scratch);
}

/* The table, of `length` rows, begins again with every sequence. */
static void add_positions(const tarn_run *run, size_t rows, const float *table, size_t length)
{
    struct tn_rows all = run->rows;

    all.rows = rows;
    tn_position_apply(&run->model->arch.position, &all, run->x, all.width, table, length);
}

static void predict(const tarn_run *run, size_t rows, float *outputs)
{
    const struct tn_dense predictor = tn_dense_of_rows(&run->predictor, rows);

    tn_dense_forward(&predictor, outputs, run->y, run->weights->predictor,
                     run->weights->predictor_bias, run->scratch);
}

/* ---- Whole sequences ---------------------------------------------------- */

/* The table of a pass that does not begin where the last one did is filled again. */
static const float *position_table(tarn_run *run, uint64_t from)
{
    if (run->weights->positions)
        return run->weights->positions + from * run->rows.width;
    if (run->positions && run->positions_from != from)
        tn_position_fill(&run->model->arch.position, run->positions, (size_t)from, run->N);
    run->positions_from = from;
    return run->positions;
}

void tn_run_embed(tarn_run *run, const int32_t *symbols)
{
    const struct tn_context_place place = place_of(run, symbols);

    if (run->weights->frames)
        project_frames(run, run->R, run->stacked);
    else if (run->weights->embedding) {
        tn_context_find(&run->model->arch.context, run->context, &place);
        embed_symbols(run, run->R, symbols);
        if (run->states)
            remember(run, &place);
    }
    add_positions(run, run->R, position_table(run, place.from), run->N);
}

void tn_run_predict(tarn_run *run)
{
    predict(run, run->R, run->outputs);
}

void tn_run_forward(tarn_run *run, const int32_t *symbols)
{
    tn_run_embed(run, symbols);
    run->model->arch.body->forward(run);
    tn_run_predict(run);
}

void tn_run_sizes(tarn_run *run, size_t T, const size_t *lengths)
{
    run->given_T = T;
    run->lengths = lengths || T < run->T ? run->rounded : NULL;
    for (size_t b = 0; b < run->B; b++) {
        run->given[b] = lengths ? lengths[b] : T;
        run->rounded[b] = tn_blocks(run->given[b], run->model->arch.config.stack);
    }
}

struct frames {
    const tarn_run *run;
    const float *at;
};

/* A position is a stack of frames; what a sequence does not have is zeros. */
static void stack_sequence(void *arg, size_t b, size_t thread)
{
    const struct frames *const frames = arg;
    const tarn_run *const run = frames->run;
    const tarn_config *const config = &run->model->arch.config;
    const size_t there = run->given[b] * config->frames;
    const size_t all = run->N * config->stack * config->frames;
    float *const to = run->stacked + b * all;

    (void)thread;
    memcpy(to, frames->at + b * run->given_T * config->frames, there * sizeof *to);
    memset(to + there, 0, (all - there) * sizeof *to);
}

void tn_run_forward_frames(tarn_run *run, const float *frames)
{
    tn_parallel(run->host.threads, run->B, stack_sequence, &(struct frames){run, frames});
    tn_run_forward(run, NULL);
}

/* ---- Steps of streams --------------------------------------------------- */

size_t tn_run_past_size(const tarn_run *run)
{
    return tn_round_up(run->model->arch.context.reach * sizeof(int32_t), TN_ALIGN);
}

size_t tn_run_stream_size(const tarn_run *run)
{
    const size_t past = tn_run_past_size(run), body = run->model->arch.body->stream(run);

    return body > SIZE_MAX - past ? SIZE_MAX : past + body;
}

/* Rows of the tables of context: of the first table for all streams, then of the next. */
static void find_context(const tarn_run *run, const struct tn_step *step, size_t b)
{
    const struct tn_context *const context = &run->model->arch.context;
    int32_t *const past = run->streams[b].state;
    const struct tn_context_place place = {run->symbols + b * step->length, 1, step->length,
                                           past, run->streams[b].position};
    int32_t one[TN_CONTEXT_MOST]; /* position of one stream among others */

    tn_context_find(context, step->streams == 1 ? run->context : one, &place);
    for (size_t j = 0; j < context->count && step->streams > 1; j++)
        run->context[j * step->streams + b] = one[j];
    tn_context_remember(context, past, &place);
}

/* Rows of the table of positions, one for each row of the step. Streams that advance together
 * are often at the same position. */
static void fill_positions(const tarn_run *run, const struct tn_step *step)
{
    const struct tn_position *const position = &run->model->arch.position;
    const float *const learned = run->weights->positions;
    const size_t width = position->table, floats = step->length * width;

    for (size_t b = 0; b < step->streams; b++) {
        float *const table = run->positions + b * floats;
        const uint64_t from = run->streams[b].position;

        if (learned)
            memcpy(table, learned + from * width, floats * sizeof *table);
        else if (b > 0 && from == run->streams[b - 1].position)
            memcpy(table, table - floats, floats * sizeof *table);
        else
            tn_position_fill(position, table, (size_t)from, step->length);
    }
}

void tn_run_step(tarn_run *run, const struct tn_step *step)
{
    const size_t rows = step->streams * step->length;

    if (step->frames)
        project_frames(run, rows, step->frames);
    else {
        for (size_t b = 0; b < step->streams; b++)
            find_context(run, step, b);
        embed_symbols(run, rows, run->symbols);
    }
    fill_positions(run, step);
    add_positions(run, rows, run->positions, rows);
    run->model->arch.body->step(run, step);
    if (step->outputs)
        predict(run, step->streams, step->outputs);
}

/* ---- Backward ----------------------------------------------------------- */

void tn_run_loss(tarn_run *run, struct tn_loss *loss, double *losses, const int32_t *targets,
                 const size_t *counts, const float *weights, float scale)
{
    struct tn_rows rows = run->rows;
    const struct tn_head_call call = {
        .head = &run->model->arch.head,
        .rows = &rows,
        .outputs = run->outputs,
        .targets = targets,
        .weights = weights,
        .scale = scale,
        .doutputs = scale > 0.0f ? run->outputs : NULL,
        .scratch = run->scratch,
        .sequences = {run->B, run->lengths, counts, losses},
    };

    rows.width = run->model->arch.head.outputs;
    tn_head_loss(&call, loss);
}

void tn_run_predict_backward(tarn_run *run, const struct tn_weights *gradients)
{
    tn_dense_backward(&run->predictor, run->d, gradients->predictor, gradients->predictor_bias,
                      run->outputs, run->y, run->weights->predictor, run->scratch);
}

/* Of slices, the rows that were found last are another's. */
void tn_run_embed_backward(const tarn_run *run, const struct tn_weights *gradients,
                           const int32_t *symbols)
{
    const struct tn_position *const position = &run->model->arch.position;
    const struct tn_context_place place = place_of(run, symbols);
    struct tn_rows values = run->rows;

    if (run->slices)
        tn_context_find(&run->model->arch.context, run->context, &place);

    values.width = position->embedding;
    if (gradients->frames) {
        tn_dense_backward(&run->projection, NULL, gradients->frames, gradients->frames_bias,
                          run->d, run->stacked, run->weights->frames, run->scratch);
    } else if (gradients->embedding) {
        tn_embed_backward(&values, gradients->embedding, run->d, position->F, symbols);
        tn_context_backward(&run->model->arch.context, &values, gradients->context, run->d,
                            position->F, run->context);
    }
    if (gradients->positions)
        tn_position_backward(position, &run->rows,
                             gradients->positions + place.from * run->rows.width, run->d,
                             position->F, run->N);
}

void tn_run_backward(tarn_run *run, const struct tn_weights *gradients, const int32_t *symbols)
{
    tn_run_predict_backward(run, gradients);
    run->model->arch.body->backward(run, gradients);
    tn_run_embed_backward(run, gradients, symbols);
}

/* ---- For callers -------------------------------------------------------- */

tarn_status tn_symbols_check(const tarn_model *model, const int32_t *symbols, size_t count,
                             const char *what, tarn_error *err)
{
    const size_t known = model->arch.config.symbols;

    for (size_t i = 0; i < count; i++)
        if (symbols[i] < 0 || (size_t)symbols[i] >= known)
            return tn_fail(err, TARN_EINVAL, "%s[%zu] is %d; it must be from 0 to %zu", what, i,
                           symbols[i], known - 1);
    return TARN_OK;
}

tarn_status tn_lengths_check(const tarn_run *run, size_t T, const size_t *lengths,
                             tarn_error *err)
{
    for (size_t b = 0; lengths && b < run->B; b++)
        if (lengths[b] > T)
            return tn_fail(err, TARN_EINVAL, "lengths[%zu] is %zu; it must be at most %zu", b,
                           lengths[b], T);
    return TARN_OK;
}

tarn_status tn_frames_check(const tarn_run *run, const float *frames, size_t T,
                            const size_t *lengths, tarn_error *err)
{
    const size_t width = run->model->arch.config.frames;

    for (size_t b = 0; b < run->B; b++)
        for (size_t i = 0; i < (lengths ? lengths[b] : T) * width; i++)
            if (!isfinite(frames[b * T * width + i]))
                return tn_fail(
                    err, TARN_EINVAL,
                    "frames: %g in frame %zu of sequence %zu; all numbers must be finite",
                    (double)frames[b * T * width + i], i / width, b);
    return TARN_OK;
}

/* One of symbols and frames is NULL. */
static tarn_status forward(tarn_run *run, const float **outputs, const int32_t *symbols,
                           const float *frames, const size_t *lengths, tarn_error *err)
{
    const bool has = run->model->arch.config.frames > 0;
    tarn_status status;

    if (has != (frames != NULL))
        return tn_fail(err, TARN_EINVAL,
                       "model: its inputs are %s; this call needs a model of %s",
                       has ? "frames" : "symbols", has ? "symbols" : "frames");
    if ((status = tn_lengths_check(run, run->T, lengths, err)) != TARN_OK ||
        (status = has ? tn_frames_check(run, frames, run->T, lengths, err)
                      : tn_symbols_check(run->model, symbols, run->R, "symbols", err)) !=
            TARN_OK)
        return status;
    tn_run_sizes(run, run->T, lengths);
    if (has)
        tn_run_forward_frames(run, frames);
    else
        tn_run_forward(run, symbols);
    *outputs = run->outputs;
    return TARN_OK;
}

tarn_status tarn_run_forward(tarn_run *run, const float **outputs, const int32_t *symbols,
                             const size_t *lengths, tarn_error *err)
{
    return run && outputs && symbols
               ? forward(run, outputs, symbols, NULL, lengths, err)
               : tn_fail(err, TARN_EINVAL, "run, outputs and symbols must not be NULL");
}

tarn_status tarn_run_frames(tarn_run *run, const float **outputs, const float *frames,
                            const size_t *lengths, tarn_error *err)
{
    return run && outputs && frames
               ? forward(run, outputs, NULL, frames, lengths, err)
               : tn_fail(err, TARN_EINVAL, "run, outputs and frames must not be NULL");
}
