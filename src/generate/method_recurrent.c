/* SPDX-License-Identifier: MIT */
/* method_recurrent.c - each position is one step of every layer's attention: (18)-(20), or a
 * growing cache of keys and values for softmax.
 *
 * All else of the model works on rows, so that the products of many positions are formed
 * together: in a lane for several positions of a prompt, and in one for a single step. Only
 * attention goes from position to position, and held weights give a row the same bits in any
 * company, which makes a prompt and the same symbols one by one the same thing. */
#include <string.h>

#include "generate/recurrent.h"
#include "layer/embed.h"

enum {
    TOGETHER = 64,          /* positions */
    ROWS_TOGETHER = 1 << 12 /* of all streams; more make products no faster */
};

/* ---- Forward ------------------------------------------------------------ */

struct mixing {
    const tarn_generator *g;
    const struct tn_lane *lane;
    const tarn_attention *attention;
    void *state;
};

/* One step per position; rows are (B, n). */
static void mix(void *arg, const struct tn_block *block)
{
    const struct mixing *const m = arg;
    const struct tn_arch *const arch = &m->g->model->arch;
    const ptrdiff_t n = (ptrdiff_t)m->lane->n, D = (ptrdiff_t)arch->D;
    const ptrdiff_t F = (ptrdiff_t)arch->config.width;
    const ptrdiff_t wide = (ptrdiff_t)m->lane->block.projected;

    for (ptrdiff_t i = 0; i < n; i++) {
        const float *const q = block->tape->qkv + i * wide;
        const tarn_attention_arrays arrays = {
            .q = {q, n * wide, wide, D},
            .k = {q + (arch->shares_keys ? 0 : F), n * wide, wide, D},
            .v = {q + wide - F, n * wide, wide, D},
            .y = {block->tape->mixed + i * F, n * F, F, D},
        };

        tarn_attention_step(m->attention, &arrays, m->state, m->lane->work, NULL);
    }
}

static void embed_symbols(const tarn_generator *g, struct tn_lane *lane, struct tn_state *state)
{
    const struct tn_context_place place = {lane->symbols, g->B, lane->n,
                                           tn_recurrent_past(g, state), state->position};
    const struct tn_context *const context = &g->model->arch.context;
    const struct tn_position *const position = &g->model->arch.position;
    const struct tn_weights *const w = &g->model->weights;
    struct tn_rows values = lane->block.rows;

    values.width = position->embedding;
    tn_embed_forward(&values, lane->x, position->F, w->embedding, lane->symbols);
    tn_context_find(context, lane->context, &place);
    tn_context_remember(context, tn_recurrent_past(g, state), &place);
    tn_context_forward(context, &values, lane->x, position->F, w->context, lane->context);
}

static void embed(const tarn_generator *g, struct tn_lane *lane, struct tn_state *state)
{
    const struct tn_recurrent *const own = g->own;
    const uint64_t from = state->position;
    const struct tn_position *const position = &g->model->arch.position;
    const struct tn_weights *const w = &g->model->weights;
    const float *const table =
        w->positions ? w->positions + from * position->F : lane->positions;

    if (lane->frames)
        tn_dense_forward(&lane->projection, lane->x, lane->frames, own->projection,
                         w->frames_bias, lane->scratch);
    else
        embed_symbols(g, lane, state);
    tn_position_fill(position, lane->positions, (size_t)from, lane->n);
    tn_position_apply(position, &lane->block.rows, lane->x, position->F, table, lane->n);
}

static void layers_forward(const tarn_generator *g, struct tn_lane *lane,
                           struct tn_state *state)
{
    const struct tn_recurrent *const own = g->own;

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++) {
        struct mixing mixing = {g, lane, &own->attentions[layer],
                                tn_recurrent_layer(g, state, layer)};
        const struct tn_block block = {
            .plan = &lane->block,
            .weights = &own->blocks[layer],
            .tape = &lane->tape,
            .mix = mix,
            .arg = &mixing,
        };

        tn_block_forward(&block, lane->x, lane->x);
    }
}

/* Only the last position's outputs are wanted. */
static void predict(const tarn_generator *g, struct tn_lane *lane)
{
    const struct tn_recurrent *const own = g->own;
    const struct tn_weights *const w = &g->model->weights;
    const size_t F = lane->block.rows.width;
    struct tn_rows last = lane->block.rows;

    last.rows = g->B;
    for (size_t b = 0; b < g->B; b++)
        memcpy(lane->normed + b * F, lane->x + ((b + 1) * lane->n - 1) * F, F * sizeof(float));
    tn_norm_forward(&last, lane->normed, NULL, lane->normed, w->norm_gain, w->norm_bias,
                    TN_NORM_EPS);
    tn_dense_forward(&lane->predictor, lane->outputs, lane->normed, own->predictor,
                     w->predictor_bias, lane->scratch);
}

struct turn {
    const tarn_generator *g;
    struct tn_lane *lane;
    struct tn_state *state;
    bool last;
};

/* The lane's inputs through the model. */
static void take_turn(void *arg)
{
    const struct turn *const turn = arg;

    embed(turn->g, turn->lane, turn->state);
    layers_forward(turn->g, turn->lane, turn->state);
    if (turn->last)
        predict(turn->g, turn->lane);
}

static void go(struct turn *turn, const float **outputs)
{
    if (turn->lane->together)
        tn_together(turn->g->threads, take_turn, turn);
    else
        take_turn(turn);
    turn->state->position += turn->lane->n;
    *outputs = turn->lane->outputs;
}

static tarn_status feed(tarn_generator *g, struct tn_state *state, const float **outputs,
                        const int32_t *symbols, size_t n, tarn_error *err)
{
    struct tn_recurrent *const own = g->own;

    (void)err;
    for (size_t at = 0; at < n;) {
        const bool many = own->many.n > 0 && n - at >= own->many.n;
        struct tn_lane *const lane = many ? &own->many : &own->one;
        struct turn turn = {g, lane, state, at + lane->n == n};

        for (size_t b = 0; b < g->B; b++)
            memcpy(lane->symbols + b * lane->n, symbols + b * n + at,
                   lane->n * sizeof *symbols);
        go(&turn, outputs);
        at += lane->n;
    }
    return TARN_OK;
}

static void hear(tarn_generator *g, struct tn_state *state, const float **outputs,
                 const float *frames)
{
    struct tn_recurrent *const own = g->own;
    const tarn_config *const config = &g->model->arch.config;
    struct turn turn = {g, &own->one, state, true};

    memcpy(own->one.frames, frames, g->B * config->stack * config->frames * sizeof *frames);
    go(&turn, outputs);
}

/* ---- Life --------------------------------------------------------------- */

static void lay_out(const tarn_generator *g, struct tn_lane *lane, struct tn_arena *arena)
{
    const struct tn_recurrent *const own = g->own;
    const struct tn_arch *const arch = &g->model->arch;
    const size_t F = arch->config.width, R = g->B * lane->n;

    lane->tape = tn_block_tape_take(&lane->block, arena);
    lane->x = tn_arena_floats(arena, R * F);
    lane->positions = arch->position.row->learned
                          ? NULL
                          : tn_arena_floats(arena, lane->n * arch->position.table);
    lane->normed = tn_arena_floats(arena, g->B * F);
    lane->outputs = tn_arena_floats(arena, g->B * arch->head.outputs);
    lane->symbols = tn_arena_take(arena, R, sizeof *lane->symbols);
    lane->context = tn_arena_take(arena, R * arch->context.count, sizeof *lane->context);
    const bool frames = arch->config.frames > 0;

    if (frames)
        lane->frames = tn_arena_floats(arena, R * arch->config.stack * arch->config.frames);
    lane->scratch = tn_arena_take(arena,
                                  tn_max(frames ? tn_dense_scratch_size(&lane->projection) : 0,
                                         tn_max(tn_block_scratch_size(&lane->block),
                                                tn_dense_scratch_size(&lane->predictor))),
                                  1);
    lane->block.scratch = lane->scratch;
    lane->work = tn_arena_take(arena, tarn_attention_workspace_size(&own->attentions[0]), 1);
}

static tarn_status lane_create(const tarn_generator *g, struct tn_lane *lane, size_t n,
                               tarn_error *err)
{
    const struct tn_arch *const arch = &g->model->arch;
    const struct tn_block_desc block = {
        .rows = g->B * n,
        .held = true,
        .elements = g->elements,
        .threads = g->threads,
        .cpu = g->cpu,
        .allocator = g->allocator,
    };
    const struct tn_dense_desc predictor = {
        .rows = g->B,
        .in = arch->config.width,
        .out = arch->head.outputs,
        .bias = true,
        .held = true,
        .elements = g->elements,
        .threads = g->threads,
        .cpu = g->cpu,
        .allocator = g->allocator,
    };
    const struct tn_dense_desc projection = {
        .rows = g->B * n,
        .in = arch->config.frames * arch->config.stack,
        .out = arch->position.embedding,
        .ldy = arch->config.width,
        .bias = true,
        .held = true,
        .elements = g->elements,
        .threads = g->threads,
        .cpu = g->cpu,
        .allocator = g->allocator,
    };
    struct tn_arena measure = tn_arena_over(NULL);
    tarn_status status;

    lane->n = n;
    if ((status = tn_block_init(&lane->block, arch, &block, err)) != TARN_OK ||
        (status = tn_dense_init(&lane->predictor, &predictor, err)) != TARN_OK ||
        (arch->config.frames > 0 &&
         (status = tn_dense_init(&lane->projection, &projection, err)) != TARN_OK))
        return status;
    lane->together = !tn_block_forks(&lane->block) && !tn_dense_forks(&lane->predictor) &&
                     !(arch->config.frames > 0 && tn_dense_forks(&lane->projection));
    lay_out(g, lane, &measure);
    lane->bytes = tn_arena_bytes(&measure);
    lane->memory = tn_allocate(g->allocator, lane->bytes);
    if (!lane->memory)
        return tn_fail(err, TARN_ENOMEM, "no memory for %zu streams", g->B);
    struct tn_arena arena = tn_arena_over(lane->memory);

    lay_out(g, lane, &arena);
    return TARN_OK;
}

static void lane_free(const tarn_generator *g, struct tn_lane *lane)
{
    tn_block_clear(&lane->block);
    tn_dense_clear(&lane->predictor);
    tn_dense_clear(&lane->projection);
    tn_release(g->allocator, lane->memory);
}

static tarn_status attentions_create(const tarn_generator *g, struct tn_recurrent *own,
                                     tarn_error *err)
{
    const size_t end = tn_generator_end(g), keys = end < SIZE_MAX ? end : 1;
    tarn_attention_desc desc = tn_arch_attention(&g->model->arch, g->B, keys);
    tarn_status status = TARN_OK;

    desc.threads = g->threads;
    desc.cpu = g->cpu;
    desc.allocator = g->allocator;
    for (size_t layer = 0; layer < g->model->arch.config.layers && status == TARN_OK; layer++) {
        desc.seed = tn_arch_seed(&g->model->arch, layer);
        status = tn_attention_init(&own->attentions[layer], &desc, err);
        own->attentions[layer].steps = end < SIZE_MAX ? end : 0;
    }
    if (status == TARN_OK && end == SIZE_MAX && own->attentions[0].kind->cached)
        status = tn_fail(err, TARN_EINVAL,
                         "longest: 0; expected how long a sequence may become, since the "
                         "state of '%s' attention grows",
                         g->model->arch.config.attention);
    return status;
}

/* Both lanes share them. */
static void hold(const tarn_generator *g, struct tn_recurrent *own, struct tn_arena *arena)
{
    const struct tn_weights *const w = &g->model->weights;

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++)
        own->blocks[layer] = tn_block_hold(&own->one.block, &w->blocks[layer], arena);
    own->predictor = tn_dense_hold(&own->one.predictor, w->predictor, arena);
    if (w->frames)
        own->projection = tn_dense_hold(&own->one.projection, w->frames, arena);
}

static tarn_status hold_weights(const tarn_generator *g, struct tn_recurrent *own,
                                tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    hold(g, own, &measure);
    own->bytes = tn_arena_bytes(&measure);
    own->memory = tn_allocate(g->allocator, own->bytes);
    if (!own->memory)
        return tn_fail(err, TARN_ENOMEM, "no memory for a copy of the weights");
    struct tn_arena arena = tn_arena_over(own->memory);

    hold(g, own, &arena);
    return TARN_OK;
}

static tarn_status create(tarn_generator *g, tarn_error *err)
{
    const size_t layers = g->model->arch.config.layers;
    const size_t bytes = sizeof(struct tn_recurrent) + layers * sizeof(tarn_attention) +
                         layers * sizeof(struct tn_block_weights);
    struct tn_recurrent *const own = tn_allocate(g->allocator, bytes);
    tarn_status status;

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "no memory for a generator");
    memset(own, 0, bytes);
    own->attentions = (tarn_attention *)(own + 1);
    own->blocks = (struct tn_block_weights *)(own->attentions + layers);
    g->own = own;
    if ((status = attentions_create(g, own, err)) != TARN_OK)
        return status;
    own->layer_state = tn_round_up(tarn_attention_state_size(&own->attentions[0]), TN_ALIGN);
    if ((status = lane_create(g, &own->one, 1, err)) != TARN_OK)
        return status;
    const size_t together = tn_min(TOGETHER, ROWS_TOGETHER / g->B);

    if (g->model->arch.config.frames == 0 && together > 1 &&
        (status = lane_create(g, &own->many, together, err)) != TARN_OK)
        return status;
    return hold_weights(g, own, err);
}

static void destroy(tarn_generator *g)
{
    struct tn_recurrent *const own = g->own;

    if (!own)
        return;
    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++)
        tn_attention_clear(&own->attentions[layer]);
    lane_free(g, &own->one);
    lane_free(g, &own->many);
    tn_release(g->allocator, own->memory);
    tn_release(g->allocator, own);
}

static size_t state_size(const tarn_generator *g)
{
    const struct tn_recurrent *const own = g->own;

    return sizeof(struct tn_state) + g->model->arch.config.layers * own->layer_state +
           tn_recurrent_past_count(g) * sizeof(int32_t);
}

static size_t bytes_held(const tarn_generator *g)
{
    const struct tn_recurrent *const own = g->own;

    return own->one.bytes + own->many.bytes + own->bytes;
}

static size_t rows(const tarn_generator *g, uint64_t position)
{
    (void)position;
    return g->B;
}

/* A state that does not grow takes what the first position does; a cache adds a row of scores
 * and one of values for each position in it. */
static double attention_flops(const tarn_generator *g, uint64_t position)
{
    const struct tn_recurrent *const own = g->own;
    const struct tn_arch *const arch = &g->model->arch;
    tarn_attention one = own->attentions[0];

    if (one.kind->cached)
        return 4.0 * (double)g->B * (double)arch->config.width * (double)(position + 1);
    one.N = one.Nk = 1;
    return tarn_attention_forward_flops(&one);
}

extern const struct tn_method tn_method_recurrent;
static const tarn_option_info options[] = {{0}};
const struct tn_method tn_method_recurrent = {
    .about = {.name = "recurrent",
              .help = "one step of each layer's state: (18)-(20), or a cache for softmax",
              .options = options},
    .needs_step = true,
    .create = create,
    .free = destroy,
    .state = state_size,
    .bytes = bytes_held,
    .rows = rows,
    .attention_flops = attention_flops,
    .feed = feed,
    .hear = hear,
    .packed = tn_recurrent_packed,
    .pack = tn_recurrent_pack,
    .unpack = tn_recurrent_unpack,
    .check = tn_recurrent_check,
};
