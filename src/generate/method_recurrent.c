/* SPDX-License-Identifier: MIT */
/* method_recurrent.c - each position is one step of every layer's attention: (18)-(20), or a
 * growing cache of keys and values for softmax.
 *
 * All else of the model works on rows, so that the products of many positions are formed
 * together: in a lane for several positions of a prompt, and in one for a single step. Only
 * attention goes from position to position, and held weights give a row the same bits in any
 * company, which makes a prompt and the same symbols one by one the same thing.
 *
 * Many streams are cut into shares, and a thread takes one through the whole model: there is
 * nothing to wait for between layers, activations stay with their core, and one core reads sums
 * from memory while another one multiplies. */
#include <string.h>

#include "generate/recurrent.h"
#include "layer/embed.h"

enum {
    TOGETHER = 64,           /* positions */
    ROWS_TOGETHER = 1 << 12, /* of all streams; more make products no faster */
    SHARE = 64,              /* streams, about: their activations stay in a core's own cache */
    SHARE_LEAST = 24         /* for a thread; fewer do not pay for reading all weights */
};

/* ---- Forward ------------------------------------------------------------ */

/* A share of the streams on its way through the model. */
struct turn {
    const tarn_generator *g;
    const struct tn_lane *lane;
    const struct tn_desk *desk;
    struct tn_streams streams;
    struct tn_state *state;
};

struct mixing {
    const struct turn *turn;
    size_t layer;
};

/* One step per position; rows are (streams, n). */
static void mix(void *arg, const struct tn_block *block)
{
    const struct mixing *const m = arg;
    const struct turn *const turn = m->turn;
    const struct tn_recurrent *const own = turn->g->own;
    tarn_attention_arrays arrays = tn_block_arrays(block, turn->lane->n);

    for (size_t b = 0; b < turn->streams.count; b++)
        turn->desk->states[b] =
            tn_recurrent_layer(turn->g, turn->state, m->layer, turn->streams.first + b);
    for (size_t n = 0; n < turn->lane->n; n++) {
        tn_attention_step(&own->attentions[m->layer], &arrays, turn->desk->states,
                          turn->streams.count, turn->lane->host.threads, turn->desk->work);
        for (size_t i = 0; i < TARN_ATTENTION_INPUTS && arrays.in[i].data; i++)
            arrays.in[i].data += arrays.in[i].position;
        arrays.y.data += arrays.y.position;
    }
}

static int32_t *past_of(const struct turn *turn)
{
    const struct tn_context *const context = &turn->g->model->arch.context;

    return tn_recurrent_past(turn->g, turn->state) + turn->streams.first * context->reach;
}

static void embed_symbols(const struct turn *turn, const struct tn_rows *rows)
{
    const struct tn_desk *const desk = turn->desk;
    const struct tn_context_place place = {desk->symbols, turn->streams.count, turn->lane->n,
                                           past_of(turn), turn->state->position};
    const struct tn_context *const context = &turn->g->model->arch.context;
    const struct tn_position *const position = &turn->g->model->arch.position;
    const struct tn_weights *const w = &turn->g->model->weights;
    struct tn_rows values = *rows;

    values.width = position->embedding;
    tn_embed_forward(&values, desk->x, position->F, w->embedding, desk->symbols);
    tn_context_find(context, desk->context, &place);
    tn_context_remember(context, past_of(turn), &place);
    tn_context_forward(context, &values, desk->x, position->F, w->context, desk->context);
}

/* The rows of a share that has fewer streams than others are zeros. */
static void embed(const struct turn *turn)
{
    const struct tn_recurrent *const own = turn->g->own;
    const struct tn_lane *const lane = turn->lane;
    const struct tn_desk *const desk = turn->desk;
    const uint64_t from = turn->state->position;
    const struct tn_position *const position = &turn->g->model->arch.position;
    const struct tn_weights *const w = &turn->g->model->weights;
    const float *const table =
        w->positions ? w->positions + from * position->F : desk->positions;
    struct tn_rows rows = desk->block.rows;

    rows.rows = turn->streams.count * lane->n;
    if (desk->frames)
        tn_dense_forward(&lane->projection, desk->x, desk->frames, own->projection,
                         w->frames_bias, desk->scratch);
    else
        embed_symbols(turn, &rows);
    tn_position_fill(position, desk->positions, (size_t)from, lane->n);
    tn_position_apply(position, &rows, desk->x, position->F, table, lane->n);
    memset(desk->x + rows.rows * rows.width, 0,
           (desk->block.rows.rows - rows.rows) * rows.width * sizeof(float));
}

static void layers_forward(const struct turn *turn)
{
    const tarn_generator *const g = turn->g;
    const struct tn_recurrent *const own = g->own;

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++) {
        struct mixing mixing = {turn, layer};
        const struct tn_block block = {
            .plan = &turn->desk->block,
            .weights = &own->blocks[layer],
            .tape = &turn->desk->tape,
            .mix = mix,
            .arg = &mixing,
        };

        tn_block_forward(&block, turn->desk->x, turn->desk->x);
    }
}

/* Only the last position's outputs are wanted. */
static void predict(const struct turn *turn)
{
    const struct tn_lane *const lane = turn->lane;
    const struct tn_desk *const desk = turn->desk;
    const struct tn_recurrent *const own = turn->g->own;
    const struct tn_weights *const w = &turn->g->model->weights;
    const size_t F = desk->block.rows.width, O = turn->g->model->arch.head.outputs;
    struct tn_rows last = desk->block.rows;

    last.rows = lane->streams;
    for (size_t b = 0; b < lane->streams; b++)
        memcpy(desk->normed + b * F, desk->x + ((b + 1) * lane->n - 1) * F, F * sizeof(float));
    tn_norm_forward(&last, desk->normed, NULL, desk->normed, w->norm_gain, w->norm_bias,
                    TN_NORM_EPS);
    tn_dense_forward(&lane->predictor, lane->outputs + turn->streams.first * O, desk->normed,
                     own->predictor, w->predictor_bias, desk->scratch);
}

/* ---- Shares ------------------------------------------------------------- */

/* What all streams are given: n positions each of `symbols`, which has `stride` of a stream, or
 * of frames a stack. */
struct inputs {
    const int32_t *symbols;
    size_t stride;
    const float *frames;
};

struct round {
    const tarn_generator *g;
    const struct tn_lane *lane;
    struct tn_state *state;
    struct inputs inputs;
    bool last;
};

static void take_inputs(const struct turn *turn, const struct inputs *inputs)
{
    const tarn_config *const config = &turn->g->model->arch.config;
    const size_t stack = config->stack * config->frames, n = turn->lane->n;
    const struct tn_streams s = turn->streams;

    if (inputs->frames)
        memcpy(turn->desk->frames, inputs->frames + s.first * stack,
               s.count * stack * sizeof(float));
    for (size_t b = 0; b < s.count && inputs->symbols; b++)
        memcpy(turn->desk->symbols + b * n, inputs->symbols + (s.first + b) * inputs->stride,
               n * sizeof(int32_t));
}

static void take_turn(void *arg, size_t share, size_t thread)
{
    const struct round *const round = arg;
    const struct tn_lane *const lane = round->lane;
    const size_t first = share * lane->streams;
    const struct turn turn = {
        .g = round->g,
        .lane = lane,
        .desk = &lane->desks[thread],
        .streams = {first, tn_min(lane->streams, round->g->B - first)},
        .state = round->state,
    };

    take_inputs(&turn, &round->inputs);
    embed(&turn);
    layers_forward(&turn);
    if (round->last)
        predict(&turn);
}

static void go(struct round *round, const float **outputs)
{
    const struct tn_lane *const lane = round->lane;

    if (!tn_lane_is_whole(lane))
        tn_parallel(round->g->host.threads, lane->shares, take_turn, round);
    else
        take_turn(round, 0, 0);
    round->state->position += lane->n;
    *outputs = lane->outputs;
}

static tarn_status feed(tarn_generator *g, struct tn_state *state, const float **outputs,
                        const int32_t *symbols, size_t n, tarn_error *err)
{
    struct tn_recurrent *const own = g->own;

    (void)err;
    for (size_t at = 0; at < n;) {
        const bool many = own->many.n > 0 && n - at >= own->many.n;
        struct tn_lane *const lane = many ? &own->many : &own->one;
        struct round round = {
            g, lane, state, {.symbols = symbols + at, .stride = n}, at + lane->n == n};

        go(&round, outputs);
        at += lane->n;
    }
    return TARN_OK;
}

static void hear(tarn_generator *g, struct tn_state *state, const float **outputs,
                 const float *frames)
{
    struct tn_recurrent *const own = g->own;
    struct round round = {g, &own->one, state, {.frames = frames}, true};

    go(&round, outputs);
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status attentions_create(const tarn_generator *g, struct tn_recurrent *own,
                                     tarn_error *err)
{
    const size_t end = tn_generator_end(g), keys = end < SIZE_MAX ? end : 1;
    tarn_attention_desc desc = tn_arch_attention(&g->model->arch, g->B, keys);
    tarn_status status = TARN_OK;

    for (size_t layer = 0; layer < g->model->arch.config.layers && status == TARN_OK; layer++) {
        desc.seed = tn_arch_seed(&g->model->arch, layer);
        status = tn_attention_init(&own->attentions[layer], &desc, &g->host, err);
        own->attentions[layer].steps = end < SIZE_MAX ? end : 0;
    }
    if (status == TARN_OK && end == SIZE_MAX && own->attentions[0].kind->caches)
        status = tn_fail(err, TARN_EINVAL,
                         "longest is 0; it must be the maximum sequence length, because the "
                         "state of '%s' attention grows",
                         g->model->arch.config.attention);
    return status;
}

/* Both lanes share them; that of prompts has all threads to pack them with. */
static void hold(const tarn_generator *g, struct tn_recurrent *own, struct tn_arena *arena)
{
    const struct tn_weights *const w = &g->model->weights;
    const struct tn_lane *const lane = own->many.n > 0 ? &own->many : &own->one;

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++)
        own->blocks[layer] = tn_block_hold(&lane->block, &w->blocks[layer], arena);
    own->predictor = tn_dense_hold(&lane->predictor, w->predictor, arena);
    if (w->frames)
        own->projection = tn_dense_hold(&lane->projection, w->frames, arena);
}

static tarn_status hold_weights(const tarn_generator *g, struct tn_recurrent *own,
                                tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    hold(g, own, &measure);
    own->bytes = tn_arena_bytes(&measure);
    own->memory = tn_allocate(&g->host.allocator, own->bytes);
    if (!own->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a copy of the weights");
    struct tn_arena arena = tn_arena_over(own->memory);

    hold(g, own, &arena);
    return TARN_OK;
}

/* As many for each thread, if there are streams enough that each has some. */
static size_t shares_of(const tarn_generator *g)
{
    return g->B < g->host.threads * SHARE_LEAST
               ? 1
               : tn_round_up(tn_blocks(g->B, SHARE), g->host.threads);
}

static tarn_status create(tarn_generator *g, tarn_error *err)
{
    const size_t layers = g->model->arch.config.layers;
    const size_t bytes = sizeof(struct tn_recurrent) + layers * sizeof(tarn_attention) +
                         layers * sizeof(struct tn_block_weights);
    struct tn_recurrent *const own = tn_allocate(&g->host.allocator, bytes);
    tarn_status status;

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a generator");
    memset(own, 0, bytes);
    own->attentions = (tarn_attention *)(own + 1);
    own->blocks = (struct tn_block_weights *)(own->attentions + layers);
    g->own = own;
    if ((status = attentions_create(g, own, err)) != TARN_OK)
        return status;
    own->stream_state = tn_round_up(tarn_attention_state_size(&own->attentions[0]), TN_ALIGN);
    if ((status = tn_lane_create(&own->one, g, 1, shares_of(g), err)) != TARN_OK)
        return status;
    const size_t together = tn_min(TOGETHER, ROWS_TOGETHER / g->B);

    if (g->model->arch.config.frames == 0 && together > 1 &&
        (status = tn_lane_create(&own->many, g, together, 1, err)) != TARN_OK)
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
    tn_lane_clear(&own->one, g);
    tn_lane_clear(&own->many, g);
    tn_release(&g->host.allocator, own->memory);
    tn_release(&g->host.allocator, own);
}

static size_t state_size(const tarn_generator *g)
{
    const struct tn_recurrent *const own = g->own;

    return sizeof(struct tn_state) + g->model->arch.config.layers * g->B * own->stream_state +
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

    if (one.kind->caches)
        return 4.0 * (double)g->B * (double)arch->config.width * (double)(position + 1);
    one.N = one.Nk = 1;
    return tarn_attention_forward_flops(&one);
}

extern const struct tn_method tn_method_recurrent;
static const tarn_option_info options[] = {{0}};
const struct tn_method tn_method_recurrent = {
    .about = {.name = "recurrent",
              .help =
                  "each step updates a state, eq. (18)-(20), or a key-value cache for softmax",
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
