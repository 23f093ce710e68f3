/* SPDX-License-Identifier: MIT */
/* recurrent_plan.c - the products of the model for some rows, and the memory that workers have
 * for these. */
#include "generate/recurrent.h"

/* ---- Memory ------------------------------------------------------------- */

static void *scratch_take(const struct tn_recurrent_plan *plan, struct tn_arena *arena)
{
    const size_t projection =
        plan->projection.forward ? tn_dense_scratch_size(&plan->projection) : 0;
    const size_t others =
        tn_max(tn_block_scratch_size(&plan->block), tn_dense_scratch_size(&plan->predictor));

    return tn_arena_take(arena, tn_max(projection, others), 1);
}

/* Of a step, and of any number of positions. */
static size_t attention_size(const struct tn_recurrent_plan *plan, const tarn_engine *e)
{
    const struct tn_recurrent *const own = e->own;
    tarn_attention attention = own->attentions[0];
    size_t most = tn_attention_step_size(&attention, plan->host.threads);

    attention.host = plan->host;
    for (size_t n = 2; n <= plan->positions; n++) {
        attention.N = attention.Nk = n;
        most = tn_max(most, tarn_attention_workspace_size(&attention));
    }
    return most;
}

static struct tn_worker worker_take(const struct tn_recurrent_plan *plan, const tarn_engine *e,
                                    struct tn_arena *arena)
{
    const struct tn_arch *const arch = &e->model->arch;
    const size_t F = arch->config.width, R = plan->rows;
    struct tn_worker w = {.block = plan->block};

    w.tape = tn_block_tape_take(&plan->block, arena);
    w.x = tn_arena_floats(arena, R * F);
    w.positions = tn_arena_floats(arena, R * arch->position.table);
    w.last = tn_arena_floats(arena, plan->streams * F);
    w.symbols = tn_arena_take(arena, R, sizeof *w.symbols);
    w.context = tn_arena_take(arena, R * arch->context.count, sizeof *w.context);
    if (arch->config.frames > 0)
        w.frames = tn_arena_floats(arena, R * arch->config.stack * arch->config.frames);
    w.states = tn_arena_take(arena, plan->streams, sizeof *w.states);
    w.scratch = scratch_take(plan, arena);
    w.block.scratch = w.scratch;
    w.attention = tn_arena_take(arena, attention_size(plan, e), 1);
    return w;
}

/* Twice: see tn_arena. */
static void lay_out(struct tn_recurrent_plan *plan, const tarn_engine *e,
                    struct tn_arena *arena)
{
    plan->workers = tn_arena_take(arena, plan->count, sizeof *plan->workers);
    for (size_t i = 0; i < plan->count; i++) {
        const struct tn_worker worker = worker_take(plan, e, arena);

        if (plan->workers)
            plan->workers[i] = worker;
    }
}

/* ---- Create and free ---------------------------------------------------- */

static tarn_status init_products(struct tn_recurrent_plan *plan, const tarn_engine *e,
                                 tarn_error *err)
{
    const struct tn_arch *const arch = &e->model->arch;
    const struct tn_block_desc block = {
        .rows = plan->rows, .held = true, .elements = e->elements};
    const struct tn_dense_desc predictor = {
        .rows = plan->streams,
        .in = arch->config.width,
        .out = arch->head.outputs,
        .bias = true,
        .held = true,
        .elements = e->elements,
    };
    struct tn_dense_desc projection = predictor;
    tarn_status status;

    projection.rows = plan->rows;
    projection.in = arch->config.frames * arch->config.stack;
    projection.out = arch->position.embedding;
    projection.ldy = arch->config.width;
    if ((status = tn_block_init(&plan->block, arch, &block, &plan->host, err)) != TARN_OK ||
        (status = tn_dense_init(&plan->predictor, &predictor, &plan->host, err)) != TARN_OK ||
        arch->config.frames == 0)
        return status;
    return tn_dense_init(&plan->projection, &projection, &plan->host, err);
}

tarn_status tn_recurrent_plan_create(struct tn_recurrent_plan *plan, const tarn_engine *e,
                                     tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);
    tarn_status status;

    if ((status = init_products(plan, e, err)) != TARN_OK)
        return status;
    lay_out(plan, e, &measure);
    plan->bytes = tn_arena_bytes(&measure);
    plan->memory = tn_allocate(&plan->host.allocator, plan->bytes);
    if (!plan->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu streams at a time",
                       e->capacity);
    struct tn_arena arena = tn_arena_over(plan->memory);

    lay_out(plan, e, &arena);
    return TARN_OK;
}

void tn_recurrent_plan_clear(struct tn_recurrent_plan *plan)
{
    tn_block_clear(&plan->block);
    tn_dense_clear(&plan->predictor);
    tn_dense_clear(&plan->projection);
    tn_release(&plan->host.allocator, plan->memory);
}
