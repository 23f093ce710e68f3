/* SPDX-License-Identifier: MIT */
/* run_plan.c - a run is planned: what it multiplies with, and where everything lies. */
#include "model/body.h"
#include "model/slices.h"

/* ---- Plans -------------------------------------------------------------- */

static tarn_status plan(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    const struct tn_dense_desc predictor = {
        .rows = run->R,
        .in = arch->config.width,
        .out = arch->head.outputs,
        .bias = true,
        .trains = desc->trains,
        .packed = desc->packed,
        .elements = desc->elements,
    };
    struct tn_dense_desc projection = predictor;
    tarn_status status = arch->body->plan(run, desc, err);

    projection.in = arch->config.frames * arch->config.stack;
    projection.out = arch->position.embedding;
    projection.ldy = arch->config.width;
    if (status == TARN_OK)
        status = tn_dense_init(&run->predictor, &predictor, &run->host, err);
    if (status == TARN_OK && run->weights->frames)
        status = tn_dense_init(&run->projection, &projection, &run->host, err);
    return status;
}

/* ---- Memory ------------------------------------------------------------- */

static size_t scratch_size(const tarn_run *run)
{
    const struct tn_head *const head = &run->model->arch.head;
    const struct tn_rows rows = tn_rows_on(&run->host, run->R, head->outputs);
    const size_t projection =
        run->weights->frames ? tn_dense_scratch_size(&run->projection) : 0;
    const size_t loss = run->steps ? 0 : tn_head_scratch_size(head, &rows, run->B);

    return tn_max(
        tn_max(run->model->arch.body->scratch(run), tn_dense_scratch_size(&run->predictor)),
        tn_max(projection, loss));
}

static void lay_out_sequences(tarn_run *run, struct tn_arena *arena)
{
    const struct tn_arch *const arch = &run->model->arch;

    run->outputs = tn_arena_floats(arena, run->R * arch->head.outputs);
    run->given = tn_arena_alloc(arena, run->B, sizeof *run->given);
    run->rounded = tn_arena_alloc(arena, run->B, sizeof *run->rounded);
    if (arch->config.frames > 0)
        run->stacked =
            tn_arena_floats(arena, run->R * arch->config.stack * arch->config.frames);
    if (run->slices)
        tn_slices_lay_out(run, arena);
    else if (run->trains)
        run->d = tn_arena_floats(arena, run->R * arch->config.width);
}

static void lay_out(tarn_run *run, struct tn_arena *arena)
{
    const struct tn_arch *const arch = &run->model->arch;

    arch->body->lay_out(run, arena);
    run->context = tn_arena_alloc(arena, run->R * arch->context.count, sizeof *run->context);
    if (run->steps) {
        run->streams = tn_arena_alloc(arena, run->B, sizeof *run->streams);
        run->symbols = tn_arena_alloc(arena, run->R, sizeof *run->symbols);
    } else
        lay_out_sequences(run, arena);
    run->scratch = tn_arena_alloc(arena, scratch_size(run), 1);
}

static size_t measure(tarn_run *run)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(run, &arena);
    return tn_arena_bytes(&arena);
}

static void place(tarn_run *run, void *memory, float *positions)
{
    struct tn_arena arena = tn_arena_over(memory);

    lay_out(run, &arena);
    run->positions = positions;
    if (!run->steps)
        tn_run_sizes(run, run->T, NULL);
}

/* The sinusoid of all positions, which serves shorter runs too, or a row for each row of a
 * step; NULL: the model has learned them, or the arena measures. */
static float *take_positions(const tarn_run *run, struct tn_arena *arena)
{
    const struct tn_position *const position = &run->model->arch.position;
    const size_t rows = run->steps ? run->R : position->row->learned ? 0 : run->N;
    float *const table = rows ? tn_arena_floats(arena, rows * position->table) : NULL;

    if (table && !run->steps)
        tn_position_fill(position, table, 0, run->N);
    return table;
}

/* Nothing is kept in it from one batch to the next, so that all runs share it. */
static tarn_status allocate(tarn_run *longest, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);
    size_t shared = 0;

    for (tarn_run *run = longest; run; run = run->shorter)
        shared = tn_max(shared, measure(run));
    tn_arena_alloc(&arena, shared, 1);
    take_positions(longest, &arena);
    longest->bytes = tn_arena_bytes(&arena);
    longest->memory = longest->bytes < SIZE_MAX
                          ? tn_allocate(&longest->host.allocator, longest->bytes)
                          : NULL;
    if (!longest->memory && longest->steps)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for %zu streams at a time; reduce capacity",
                       longest->B);
    if (!longest->memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for %zu sequences of %zu positions: %.1f GB; reduce "
                       "batch or length",
                       longest->B, longest->N, (double)longest->bytes * 1e-9);
    arena = tn_arena_over(longest->memory);
    void *const memory = tn_arena_alloc(&arena, shared, 1);
    float *const positions = take_positions(longest, &arena);

    for (tarn_run *run = longest; run; run = run->shorter)
        place(run, memory, positions);
    return TARN_OK;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_run *take_run(const struct tn_arch *arch, struct tn_arena *arena)
{
    tarn_run *const run = tn_arena_alloc(arena, 1, sizeof *run);
    void *const body = arch->body->take(arch, arena);
    struct tn_slices *const slices = tn_arena_alloc(arena, 1, sizeof *slices);

    if (run)
        *run = (tarn_run){.body = body, .slices = slices};
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
    if (!desc->steps && config->positions > 0 &&
        tn_blocks(desc->N, config->stack) > config->positions)
        return tn_fail(err, TARN_EINVAL,
                       "length is %zu; it must be at most %zu, the number of learned positions",
                       desc->N, config->positions * config->stack);
    if (desc->elements != TN_F32 && !model->arch.body->takes_bf16)
        return tn_fail(err, TARN_EINVAL, "precision is %s; it must be f32 with body %s",
                       tn_element_name(desc->elements), config->body);

    /* The widest array of activations; sums of these are checked as they are laid out. */
    const size_t wide =
        tn_max(tn_max(tn_arch_projected(&model->arch), config->frames * config->stack),
               tn_max(config->feed, model->arch.head.outputs));

    if (!tn_size_product(&floats, (size_t[]){desc->B, desc->N, wide, sizeof(float)}, 4))
        return tn_fail(err, TARN_EINVAL,
                       "batch is %zu and length is %zu; so much does not fit in memory",
                       desc->B, desc->N);
    return TARN_OK;
}

/* Without memory. */
static tarn_status create_one(tarn_run **run, const tarn_model *model,
                              const struct tn_run_desc *desc, const struct tn_host *host,
                              tarn_error *err)
{
    struct tn_arena plan_size = tn_arena_over(NULL);
    tarn_status status = check(model, desc, err);

    *run = NULL;
    if (status != TARN_OK)
        return status;
    take_run(&model->arch, &plan_size);
    void *const plans = tn_allocate(&host->allocator, tn_arena_bytes(&plan_size));

    if (!plans)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a run plan");
    struct tn_arena arena = tn_arena_over(plans);
    tarn_run *const made = take_run(&model->arch, &arena);

    made->plans = plans;
    made->model = model;
    made->weights = &model->weights;
    made->host = *host;
    made->B = desc->B;
    made->T = desc->N;
    made->N = desc->steps ? desc->N : tn_blocks(desc->N, model->arch.config.stack);
    made->R = desc->steps ? tn_max(made->B, made->N) : made->B * made->N;
    made->rows = tn_rows_on(&made->host, made->R, model->arch.config.width);
    made->trains = desc->trains;
    made->recompute = desc->recompute;
    made->steps = desc->steps;
    if (desc->slices > 0)
        tn_slices_init(made->slices, desc);
    else
        made->slices = NULL;
    if ((status = plan(made, desc, err)) != TARN_OK ||
        (made->slices && (status = model->arch.body->slices->check(made, err)) != TARN_OK))
        tarn_run_free(made);
    else
        *run = made;
    return status;
}

static tarn_status create_shorter(tarn_run *run, const struct tn_run_desc *longest,
                                  tarn_error *err)
{
    struct tn_run_desc desc = *longest;
    tarn_status status = TARN_OK;

    for (size_t i = 1; i < TN_RUN_LENGTHS && desc.N > 1 && status == TARN_OK; i++) {
        desc.N -= tn_max(1, desc.N / 16);
        status = create_one(&run->shorter, run->model, &desc, &run->host, err);
        run = run->shorter;
    }
    return status;
}

/* The run of a slice, and that of whole sequences, which has nothing but sizes. */
static tarn_status create_slices(tarn_run **run, const tarn_model *model,
                                 const struct tn_run_desc *desc, const struct tn_host *host,
                                 tarn_error *err)
{
    struct tn_run_desc slice = *desc;
    tarn_run *made = NULL;
    tarn_status status;

    *run = NULL;
    if ((status = check(model, desc, err)) != TARN_OK ||
        (status = tn_slices_check(model, desc, err)) != TARN_OK)
        return status;
    slice.N = tn_blocks(desc->N, desc->slices);
    if ((status = create_one(&made, model, &slice, host, err)) == TARN_OK) {
        made->slices->length = desc->N;
        status = allocate(made, err);
    }
    if (status == TARN_OK && !(*run = tn_allocate(&host->allocator, sizeof **run)))
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for a run plan");
    if (status != TARN_OK) {
        tarn_run_free(made);
        return status;
    }
    **run = *made;
    (*run)->plans = *run;
    (*run)->memory = NULL;
    (*run)->slice = made;
    (*run)->slices = NULL;
    (*run)->N = (*run)->T = desc->N;
    (*run)->R = desc->B * desc->N;
    return TARN_OK;
}

tarn_status tn_run_create(tarn_run **run, const tarn_model *model,
                          const struct tn_run_desc *given, const struct tn_host *host,
                          tarn_error *err)
{
    struct tn_run_desc desc = *given;

    if (desc.slices > 0)
        return create_slices(run, model, &desc, host, err);

    desc.packed |= desc.steps;
    tarn_status status = create_one(run, model, &desc, host, err);

    if (status == TARN_OK && desc.varies)
        status = create_shorter(*run, &desc, err);
    if (status == TARN_OK)
        status = allocate(*run, err);
    for (tarn_run *one = *run; status == TARN_OK && desc.packed && one; one = one->shorter)
        status = tn_run_pack(one, err);
    if (status != TARN_OK) {
        tarn_run_free(*run);
        *run = NULL;
    }
    return status;
}

tarn_run *tn_run_for(tarn_run *run, size_t T)
{
    while (run->shorter && run->shorter->T >= T)
        run = run->shorter;
    return run;
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
    while (run) {
        const tarn_allocator allocator = run->host.allocator;
        tarn_run *const shorter = run->shorter;

        tarn_run_free(run->slice);
        if (!run->slice) {
            tn_run_unpack(run);
            run->model->arch.body->clear(run);
            tn_dense_clear(&run->predictor);
            tn_dense_clear(&run->projection);
        }
        tn_release(&allocator, run->memory);
        tn_release(&allocator, run->plans);
        run = shorter;
    }
}
