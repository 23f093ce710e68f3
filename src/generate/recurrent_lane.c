/* SPDX-License-Identifier: MIT */
/* recurrent_lane.c - the plans of the model for some positions of every stream, and the desks
 * that shares of streams are worked on at. */
#include <string.h>

#include "generate/recurrent.h"

/* ---- Memory ------------------------------------------------------------- */

static void *take_scratch(const struct tn_lane *lane, struct tn_arena *arena)
{
    const size_t projection =
        lane->projection.forward ? tn_dense_scratch_size(&lane->projection) : 0;
    const size_t others =
        tn_max(tn_block_scratch_size(&lane->block), tn_dense_scratch_size(&lane->predictor));

    return tn_arena_take(arena, tn_max(projection, others), 1);
}

static struct tn_desk lay_out_desk(const tarn_generator *g, const struct tn_lane *lane,
                                   struct tn_arena *arena)
{
    const struct tn_recurrent *const own = g->own;
    const struct tn_arch *const arch = &g->model->arch;
    const size_t F = arch->config.width, R = lane->streams * lane->n;
    const bool table = !arch->position.row->learned;
    struct tn_desk desk = {.block = lane->block};

    desk.tape = tn_block_tape_take(&lane->block, arena);
    desk.x = tn_arena_floats(arena, R * F);
    desk.positions = table ? tn_arena_floats(arena, lane->n * arch->position.table) : NULL;
    desk.normed = tn_arena_floats(arena, lane->streams * F);
    desk.symbols = tn_arena_take(arena, R, sizeof *desk.symbols);
    desk.context = tn_arena_take(arena, R * arch->context.count, sizeof *desk.context);
    if (arch->config.frames > 0)
        desk.frames = tn_arena_floats(arena, R * arch->config.stack * arch->config.frames);
    desk.scratch = take_scratch(lane, arena);
    desk.block.scratch = desk.scratch;
    desk.states = tn_arena_take(arena, lane->streams, sizeof *desk.states);
    desk.work = tn_arena_take(
        arena, tn_attention_step_size(&own->attentions[0], lane->host.threads), 1);
    return desk;
}

static void lay_out(const tarn_generator *g, struct tn_lane *lane, struct tn_arena *arena)
{
    const size_t desks = tn_lane_is_whole(lane) ? 1 : tn_min(g->host.threads, lane->shares);

    lane->desks = tn_arena_take(arena, desks, sizeof *lane->desks);
    lane->outputs =
        tn_arena_floats(arena, lane->shares * lane->streams * g->model->arch.head.outputs);
    for (size_t i = 0; i < desks; i++) {
        const struct tn_desk desk = lay_out_desk(g, lane, arena);

        if (lane->desks)
            lane->desks[i] = desk;
    }
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status init_products(const tarn_generator *g, struct tn_lane *lane, tarn_error *err)
{
    const struct tn_arch *const arch = &g->model->arch;
    const struct tn_block_desc block = {
        .rows = lane->streams * lane->n,
        .held = true,
        .elements = g->elements,
    };
    const struct tn_dense_desc predictor = {
        .rows = lane->streams,
        .in = arch->config.width,
        .out = arch->head.outputs,
        .bias = true,
        .held = true,
        .elements = g->elements,
    };
    struct tn_dense_desc projection = predictor;
    tarn_status status;

    projection.rows = lane->streams * lane->n;
    projection.in = arch->config.frames * arch->config.stack;
    projection.out = arch->position.embedding;
    projection.ldy = arch->config.width;
    if ((status = tn_block_init(&lane->block, arch, &block, &lane->host, err)) != TARN_OK ||
        (status = tn_dense_init(&lane->predictor, &predictor, &lane->host, err)) != TARN_OK ||
        arch->config.frames == 0)
        return status;
    return tn_dense_init(&lane->projection, &projection, &lane->host, err);
}

tarn_status tn_lane_create(struct tn_lane *lane, const tarn_generator *g, size_t n,
                           size_t shares, tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);
    tarn_status status;

    lane->n = n;
    lane->streams = tn_blocks(g->B, shares);
    lane->shares = tn_blocks(g->B, lane->streams);
    lane->host = tn_host_with(&g->host, tn_lane_is_whole(lane) ? g->host.threads : 1);
    if ((status = init_products(g, lane, err)) != TARN_OK)
        return status;
    lay_out(g, lane, &measure);
    lane->bytes = tn_arena_bytes(&measure);
    lane->memory = tn_allocate(&g->host.allocator, lane->bytes);
    if (!lane->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu streams", g->B);
    struct tn_arena arena = tn_arena_over(lane->memory);

    if (!tn_lane_is_whole(lane))
        memset(lane->memory, 0, lane->bytes); /* rows that no stream has are multiplied too */
    lay_out(g, lane, &arena);
    return TARN_OK;
}

void tn_lane_clear(struct tn_lane *lane, const tarn_generator *g)
{
    tn_block_clear(&lane->block);
    tn_dense_clear(&lane->predictor);
    tn_dense_clear(&lane->projection);
    tn_release(&g->host.allocator, lane->memory);
}
