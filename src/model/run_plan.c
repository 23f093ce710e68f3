/* SPDX-License-Identifier: MIT */
/* run_plan.c - a run is planned: what it multiplies with, and where everything lies. */
#include <string.h>

#include "model/run.h"

/* ---- Plans -------------------------------------------------------------- */

static tarn_status plan_attentions(tarn_run *run, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    tarn_attention_desc attention = tn_arch_attention(arch, run->B, run->N);

    for (size_t layer = 0; layer < arch->config.layers; layer++) {
        attention.seed = tn_arch_seed(arch, layer);
        const tarn_status status =
            tn_attention_init(&run->attentions[layer], &attention, &run->host, err);

        if (status != TARN_OK)
            return status;
    }
    return TARN_OK;
}

static tarn_status plan(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    const struct tn_block_desc block = {
        .rows = run->R,
        .trains = desc->trains,
        .elements = desc->elements,
    };
    const struct tn_dense_desc predictor = {
        .rows = run->R,
        .in = arch->config.width,
        .out = arch->head.outputs,
        .bias = true,
        .trains = desc->trains,
        .elements = desc->elements,
    };
    struct tn_dense_desc projection = predictor;

    projection.in = arch->config.frames * arch->config.stack;
    projection.out = arch->position.embedding;
    projection.ldy = arch->config.width;
    tarn_status status = arch->lstm ? tn_run_lstm_plan(run, desc, err)
                                    : tn_block_init(&run->block, arch, &block, &run->host, err);

    if (status == TARN_OK)
        status = tn_dense_init(&run->predictor, &predictor, &run->host, err);
    if (status == TARN_OK && run->model->weights.frames)
        status = tn_dense_init(&run->projection, &projection, &run->host, err);
    if (status == TARN_OK && !arch->lstm)
        status = plan_attentions(run, err);
    return status;
}

/* ---- Memory ------------------------------------------------------------- */

static size_t scratch_size(const tarn_run *run)
{
    const struct tn_head *const head = &run->model->arch.head;
    struct tn_rows rows = run->block.rows;

    rows.width = head->outputs;
    const size_t projection =
        run->model->weights.frames ? tn_dense_scratch_size(&run->projection) : 0;
    const size_t body =
        run->model->arch.lstm ? tn_run_lstm_scratch(run) : tn_block_scratch_size(&run->block);

    return tn_max(tn_max(body, tn_dense_scratch_size(&run->predictor)),
                  tn_max(tn_max(projection, tn_norm_scratch_size(&run->block.rows)),
                         tn_head_scratch_size(head, &rows, run->B)));
}

/* Outside of training a block's input becomes its output; an LSTM's turns with it. */
static void take_inputs(tarn_run *run, struct tn_arena *arena)
{
    const size_t layers = run->model->arch.config.layers;
    const size_t arrays = run->trains ? layers + 1 : run->model->arch.lstm ? 2 : 1;

    for (size_t i = 0; i < arrays; i++) {
        float *const at = tn_arena_floats(arena, run->R * run->block.rows.width);

        for (size_t layer = i; layer <= layers; layer += arrays)
            run->inputs[layer] = at;
    }
}

static void take_tapes(tarn_run *run, struct tn_arena *arena)
{
    const size_t layers = run->model->arch.config.layers;
    const bool each = run->trains && !run->recompute;
    const size_t saved = tarn_attention_saved_size(&run->attentions[0]);

    for (size_t layer = 0; layer < layers; layer++) {
        const bool first = layer == 0;

        run->tapes[layer] =
            each || first ? tn_block_tape_take(&run->block, arena) : run->tapes[0];
        run->saved[layer] = !run->trains    ? NULL
                            : each || first ? tn_arena_take(arena, saved, 1)
                                            : run->saved[0];
    }
}

static void lay_out(tarn_run *run, struct tn_arena *arena)
{
    const struct tn_arch *const arch = &run->model->arch;
    const size_t F = arch->config.width;

    take_inputs(run, arena);
    if (arch->lstm)
        tn_run_lstm_take(run, arena);
    else
        take_tapes(run, arena);
    run->normed =
        arch->lstm ? run->inputs[arch->config.layers] : tn_arena_floats(arena, run->R * F);
    run->outputs = tn_arena_floats(arena, run->R * arch->head.outputs);
    run->given = tn_arena_take(arena, run->B, sizeof *run->given);
    run->rounded = tn_arena_take(arena, run->B, sizeof *run->rounded);
    if (arch->config.frames > 0)
        run->stacked =
            tn_arena_floats(arena, run->R * arch->config.stack * arch->config.frames);
    run->context = tn_arena_take(arena, run->R * arch->context.count, sizeof *run->context);
    if (run->trains) {
        run->d = tn_arena_floats(arena, run->R * F);
        run->stats = tn_arena_take(arena, run->R, sizeof *run->stats);
        if (!arch->lstm)
            run->gradients = tn_block_gradients_take(&run->block, arena);
    }
    run->scratch = tn_arena_take(arena, scratch_size(run), 1);
    run->block.scratch = run->scratch;
    if (!arch->lstm)
        run->attention_work =
            tn_arena_take(arena, tarn_attention_workspace_size(&run->attentions[0]), 1);
}

void tn_run_place(tarn_run *run, void *memory, float *positions)
{
    struct tn_arena arena = tn_arena_over(memory);

    lay_out(run, &arena);
    tn_run_lengths(run, NULL);
    run->positions = positions;
}

float *tn_run_positions(const tarn_run *run, struct tn_arena *arena)
{
    const struct tn_position *const position = &run->model->arch.position;
    float *const table =
        position->row->learned ? NULL : tn_arena_floats(arena, run->N * position->table);

    if (table)
        tn_position_fill(position, table, 0, run->N);
    return table;
}

static void measure(tarn_run *run)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(run, &arena);
    run->bytes = tn_arena_bytes(&arena);
}

/* All of it, and the positions behind it. */
static tarn_status allocate(tarn_run *run, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(run, &arena);
    tn_run_positions(run, &arena);
    run->bytes = tn_arena_bytes(&arena);
    run->memory = run->bytes < SIZE_MAX ? tn_allocate(&run->host.allocator, run->bytes) : NULL;
    if (!run->memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for %zu sequences of %zu positions: %.1f GB; reduce "
                       "batch or length",
                       run->B, run->N, (double)run->bytes * 1e-9);
    arena = tn_arena_over(run->memory);
    lay_out(run, &arena);
    tn_run_place(run, run->memory, tn_run_positions(run, &arena));
    return TARN_OK;
}

/* ---- Life --------------------------------------------------------------- */

/* The run and what it has one of per layer. */
static tarn_run *take_run(size_t layers, struct tn_arena *arena)
{
    tarn_run *const run = tn_arena_take(arena, 1, sizeof *run);
    tarn_attention *const attentions = tn_arena_take(arena, layers, sizeof *attentions);
    float **const inputs = tn_arena_take(arena, layers + 1, sizeof *inputs);
    struct tn_block_tape *const tapes = tn_arena_take(arena, layers, sizeof *tapes);
    float **const saved = tn_arena_take(arena, layers, sizeof *saved);
    struct tn_lstm_tape *const lstm_tapes = tn_arena_take(arena, layers, sizeof *lstm_tapes);

    if (run) {
        memset(attentions, 0, layers * sizeof *attentions);
        *run = (tarn_run){.attentions = attentions,
                          .inputs = inputs,
                          .tapes = tapes,
                          .saved = saved,
                          .lstm_tapes = lstm_tapes};
    }
    return run;
}

static tarn_status check(const tarn_model *model, const struct tn_run_desc *desc,
                         tarn_error *err)
{
    const tarn_config *const config = &model->arch.config;
    size_t floats;

    if (desc->B == 0 || desc->N == 0)
        return tn_fail(err, TARN_EINVAL,
                       "batch is %zu and length is %zu; both must be at least 1", desc->B,
                       desc->N);
    if (config->positions > 0 && tn_blocks(desc->N, config->stack) > config->positions)
        return tn_fail(err, TARN_EINVAL,
                       "length is %zu; it must be at most %zu, the number of learned positions",
                       desc->N, config->positions * config->stack);

    /* The widest array of a tape; sums of these are checked as they are laid out. */
    const size_t wide =
        tn_max(tn_max(tn_arch_projected(&model->arch), config->frames * config->stack),
               tn_max(config->feed, model->arch.head.outputs));

    if (!tn_size_product(&floats, (size_t[]){desc->B, desc->N, wide, sizeof(float)}, 4))
        return tn_fail(err, TARN_EINVAL,
                       "batch is %zu and length is %zu; so much does not fit in memory",
                       desc->B, desc->N);
    return TARN_OK;
}

tarn_status tn_run_create(tarn_run **run, const tarn_model *model,
                          const struct tn_run_desc *desc, const struct tn_host *host,
                          tarn_error *err)
{
    const size_t layers = model->arch.config.layers;
    struct tn_arena plan_size = tn_arena_over(NULL);
    tarn_status status = check(model, desc, err);

    *run = NULL;
    if (status != TARN_OK)
        return status;
    take_run(layers, &plan_size);
    void *const plans = tn_allocate(&host->allocator, tn_arena_bytes(&plan_size));

    if (!plans)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a run plan");
    struct tn_arena arena = tn_arena_over(plans);
    tarn_run *const made = take_run(layers, &arena);

    made->plans = plans;
    made->model = model;
    made->host = *host;
    made->B = desc->B;
    made->T = desc->N;
    made->N = tn_blocks(desc->N, model->arch.config.stack);
    made->R = made->B * made->N;
    made->trains = desc->trains;
    made->recompute = desc->recompute;
    if ((status = plan(made, desc, err)) == TARN_OK && !desc->unplaced)
        status = allocate(made, err);
    else if (status == TARN_OK)
        measure(made);
    if (status != TARN_OK)
        tarn_run_free(made);
    else
        *run = made;
    return status;
}

tarn_status tarn_run_create(tarn_run **run, const tarn_model *model, const tarn_run_desc *desc,
                            tarn_error *err)
{
    struct tn_host host;

    if (!run || !model || !desc)
        return tn_fail(err, TARN_EINVAL, "run, model and desc must not be NULL");
    *run = NULL;
    const tarn_status status = tn_host_init(&host, &desc->host, err);

    return status == TARN_OK
               ? tn_run_create(run, model,
                               &(struct tn_run_desc){.B = desc->batch, .N = desc->length},
                               &host, err)
               : status;
}

void tarn_run_free(tarn_run *run)
{
    if (!run)
        return;
    const tarn_allocator allocator = run->host.allocator;

    for (size_t layer = 0; layer < run->model->arch.config.layers; layer++)
        tn_attention_clear(&run->attentions[layer]);
    tn_dense_clear(&run->predictor);
    tn_dense_clear(&run->projection);
    tn_lstm_clear(&run->lstms[0]);
    tn_lstm_clear(&run->lstms[1]);
    tn_block_clear(&run->block);
    tn_release(&allocator, run->memory);
    tn_release(&allocator, run->plans);
}
