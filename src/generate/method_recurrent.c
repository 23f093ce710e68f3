/* SPDX-License-Identifier: MIT */
/* method_recurrent.c - each position is one step of every layer's attention: (18)-(20), or a
 * growing cache of keys and values for softmax.
 *
 * All else of the model works on rows, one for each stream of a step or for each position of a
 * prompt, so that their products are formed together. Packed weights give a row the same bits
 * in any company, which makes a prompt and the same symbols one by one the same, and a stream
 * among others the same as alone.
 *
 * Many streams are cut into groups, and a thread takes a group through the whole model: there
 * is nothing to wait for between layers, activations stay with their core, and one core reads
 * states from memory while another one multiplies. */
#include <string.h>

#include "generate/recurrent.h"
#include "layer/embed.h"

enum {
    PIECE = 512,     /* positions of a prompt */
    GROUP = 64,      /* streams, about: their activations stay in a core's own cache */
    GROUP_LEAST = 24 /* for a thread; fewer do not pay for reading all weights */
};

/* ---- Forward ------------------------------------------------------------ */

/* Some streams of a feed, or some positions of its only one, on their way through the model. */
struct pass {
    const tarn_engine *e;
    const struct tn_recurrent_plan *plan;
    const struct tn_worker *worker;
    const struct tn_feed *feed;
    size_t first, streams; /* of the feed */
    size_t from, length;   /* positions */
};

static const tarn_stream *stream_at(const struct pass *p, size_t b)
{
    return p->feed->streams[p->first + b];
}

static uint64_t position_at(const struct pass *p, size_t b)
{
    return stream_at(p, b)->head.position + p->from;
}

static size_t rows_of(const struct pass *p)
{
    return p->streams * p->length;
}

/* Rows of the tables of context: of the first table for all streams, then of the next. */
static void find_context(const struct pass *p, size_t b)
{
    const struct tn_context *const context = &p->e->model->arch.context;
    const struct tn_worker *const w = p->worker;
    int32_t *const past = tn_recurrent_past(stream_at(p, b));
    const struct tn_context_place place = {w->symbols + b * p->length, 1, p->length, past,
                                           position_at(p, b)};
    int32_t one[TN_CONTEXT_MOST]; /* position of one stream among others */

    tn_context_find(context, p->streams == 1 ? w->context : one, &place);
    for (size_t j = 0; j < context->count && p->streams > 1; j++)
        w->context[j * p->streams + b] = one[j];
    tn_context_remember(context, past, &place);
}

static void embed_symbols(const struct pass *p, struct tn_rows rows)
{
    const struct tn_worker *const w = p->worker;
    const struct tn_arch *const arch = &p->e->model->arch;
    const struct tn_weights *const weights = &p->e->model->weights;
    const size_t n = p->length, F = arch->position.F;

    for (size_t b = 0; b < p->streams; b++) {
        for (size_t i = 0; i < n; i++)
            w->symbols[b * n + i] = tn_feed_symbol(p->feed, p->first + b, p->from + i);
        find_context(p, b);
    }
    rows.width = arch->position.embedding;
    tn_embed_forward(&rows, w->x, F, weights->embedding, w->symbols);
    tn_context_forward(&arch->context, &rows, w->x, F, weights->context, w->context);
}

static void embed_frames(const struct pass *p)
{
    const struct tn_recurrent *const own = p->e->own;
    const struct tn_worker *const w = p->worker;
    const tarn_config *const config = &p->e->model->arch.config;
    const size_t stack = config->stack * config->frames;
    const struct tn_dense projection = tn_dense_of_rows(&p->plan->projection, p->streams);

    tn_dense_forward(&projection, w->x, p->feed->frames + p->first * stack, own->projection,
                     p->e->model->weights.frames_bias, w->scratch);
}

/* Rows of the table of positions, one for each row of the pass. Streams that advance together
 * are often at the same position. */
static void fill_positions(const struct pass *p)
{
    const struct tn_position *const position = &p->e->model->arch.position;
    const float *const learned = p->e->model->weights.positions;
    const size_t width = position->table, floats = p->length * width;

    for (size_t b = 0; b < p->streams; b++) {
        float *const table = p->worker->positions + b * floats;
        const uint64_t from = position_at(p, b);

        if (learned)
            memcpy(table, learned + from * width, floats * sizeof *table);
        else if (b > 0 && from == position_at(p, b - 1))
            memcpy(table, table - floats, floats * sizeof *table);
        else
            tn_position_fill(position, table, (size_t)from, p->length);
    }
}

static void embed(const struct pass *p)
{
    const struct tn_position *const position = &p->e->model->arch.position;
    struct tn_rows rows = p->worker->block.rows;

    rows.rows = rows_of(p);
    if (p->feed->frames)
        embed_frames(p);
    else
        embed_symbols(p, rows);
    fill_positions(p);
    tn_position_apply(position, &rows, p->worker->x, position->F, p->worker->positions,
                      rows.rows);
}

struct mixing {
    const struct pass *pass;
    size_t layer;
};

/* Attention over the positions of a prompt continues the stream's state, all of them in
 * parallel, and leaves what steps would leave. */
static void mix_positions(const struct pass *p, tarn_attention plan, void *state,
                          tarn_attention_arrays arrays)
{
    plan.N = plan.Nk = p->length;
    arrays.state0 = arrays.state1 = state;
    tarn_attention_forward(&plan, &arrays, NULL, p->worker->attention, NULL);
}

static void mix(void *arg, const struct tn_block *block)
{
    const struct mixing *const m = arg;
    const struct pass *const p = m->pass;
    const tarn_attention *const attention =
        &((const struct tn_recurrent *)p->e->own)->attentions[m->layer];
    void **const states = p->worker->states;
    const tarn_attention_arrays arrays = tn_block_arrays(block, p->length);

    for (size_t b = 0; b < p->streams; b++)
        states[b] = tn_recurrent_layer(p->e, stream_at(p, b), m->layer);
    if (p->length > 1)
        mix_positions(p, *attention, states[0], arrays);
    else
        tn_attention_step(attention, &arrays, states, p->streams, p->plan->host.threads,
                          p->worker->attention);
}

static void layers_forward(const struct pass *p)
{
    const struct tn_recurrent *const own = p->e->own;
    const struct tn_block_plan plan = tn_block_of_rows(&p->worker->block, rows_of(p));

    for (size_t layer = 0; layer < p->e->model->arch.config.layers; layer++) {
        struct mixing mixing = {p, layer};
        const struct tn_block block = {
            .plan = &plan,
            .weights = &own->blocks[layer],
            .tape = &p->worker->tape,
            .mix = mix,
            .arg = &mixing,
        };

        tn_block_forward(&block, p->worker->x, p->worker->x);
    }
}

/* Only the last position's outputs are wanted. */
static void predict(const struct pass *p)
{
    const struct tn_recurrent *const own = p->e->own;
    const struct tn_worker *const w = p->worker;
    const struct tn_weights *const weights = &p->e->model->weights;
    const size_t F = w->block.rows.width, O = p->e->model->arch.head.outputs;
    const struct tn_dense predictor = tn_dense_of_rows(&p->plan->predictor, p->streams);
    struct tn_rows rows = w->block.rows;

    rows.rows = p->streams;
    for (size_t b = 0; b < p->streams; b++)
        memcpy(w->last + b * F, w->x + ((b + 1) * p->length - 1) * F, F * sizeof(float));
    tn_norm_forward(&rows, w->last, NULL, w->last, weights->norm_gain, weights->norm_bias,
                    TN_NORM_EPS);
    tn_dense_forward(&predictor, p->feed->outputs + p->first * O, w->last, own->predictor,
                     weights->predictor_bias, w->scratch);
}

static void run_pass(const struct pass *p)
{
    embed(p);
    layers_forward(p);
    if (p->feed->outputs && p->from + p->length == p->feed->length)
        predict(p);
}

/* ---- Feeding ------------------------------------------------------------ */

struct groups {
    struct pass pass; /* of any of them */
    size_t size;      /* streams; the last may have fewer */
};

static void run_group(void *arg, size_t index, size_t thread)
{
    const struct groups *const groups = arg;
    struct pass pass = groups->pass;

    pass.worker = &pass.plan->workers[thread];
    pass.first = index * groups->size;
    pass.streams = tn_min(groups->size, pass.feed->n - pass.first);
    run_pass(&pass);
}

/* As many for each thread. */
static void feed_apart(struct pass pass)
{
    const size_t threads = pass.e->host.threads, n = pass.feed->n;
    const size_t count = tn_round_up(tn_blocks(n, pass.plan->streams), threads);
    struct groups groups = {pass, tn_blocks(n, count)};

    tn_parallel(threads, tn_blocks(n, groups.size), run_group, &groups);
}

static void feed_together(struct pass pass)
{
    const size_t n = pass.feed->n, length = pass.feed->length;

    pass.worker = pass.plan->workers;
    for (; pass.first < n; pass.first += pass.streams) {
        pass.streams = tn_min(pass.plan->streams, n - pass.first);
        for (pass.from = 0; pass.from < length; pass.from += pass.length) {
            pass.length = tn_min(pass.plan->positions, length - pass.from);
            run_pass(&pass);
        }
    }
}

static tarn_status feed(tarn_engine *e, const struct tn_feed *feed, tarn_error *err)
{
    const struct tn_recurrent *const own = e->own;
    const bool many = own->apart.rows > 0 && feed->n >= e->host.threads * GROUP_LEAST;
    const struct pass pass = {
        .e = e, .plan = many ? &own->apart : &own->together, .feed = feed, .length = 1};

    (void)err;
    (many ? feed_apart : feed_together)(pass);
    return TARN_OK;
}

/* ---- Create and free ---------------------------------------------------- */

static tarn_status attentions_create(const tarn_engine *e, struct tn_recurrent *own,
                                     tarn_error *err)
{
    const size_t end = tn_engine_end(e), keys = end < SIZE_MAX ? end : 1;
    tarn_attention_desc desc = tn_arch_attention(&e->model->arch, 1, keys);
    tarn_status status = TARN_OK;

    for (size_t layer = 0; layer < e->model->arch.config.layers && status == TARN_OK; layer++) {
        desc.seed = tn_arch_seed(&e->model->arch, layer);
        status = tn_attention_init(&own->attentions[layer], &desc, &e->host, err);
        own->attentions[layer].steps = end < SIZE_MAX ? end : 0;
    }
    if (status == TARN_OK && end == SIZE_MAX && own->attentions[0].kind->caches)
        status = tn_fail(err, TARN_EINVAL,
                         "longest is 0; it must be the maximum sequence length, because the "
                         "state of '%s' attention grows",
                         e->model->arch.config.attention);
    return status;
}

static tarn_status plans_create(const tarn_engine *e, struct tn_recurrent *own, tarn_error *err)
{
    const size_t threads = e->host.threads, few = threads * GROUP_LEAST;
    tarn_status status;

    own->together.host = e->host;
    own->together.count = 1;
    own->together.streams = tn_min(e->capacity, few);
    own->together.positions = e->model->arch.config.frames > 0 ? 1 : PIECE;
    own->together.rows = tn_max(own->together.streams, own->together.positions);
    if ((status = tn_recurrent_plan_create(&own->together, e, err)) != TARN_OK ||
        e->capacity < few)
        return status;
    own->apart.host = tn_host_with(&e->host, 1);
    own->apart.count = threads;
    own->apart.streams = own->apart.rows = GROUP;
    own->apart.positions = 1;
    return tn_recurrent_plan_create(&own->apart, e, err);
}

/* Both plans use them; together all threads pack. */
static void pack(const tarn_engine *e, struct tn_recurrent *own, struct tn_arena *arena)
{
    const struct tn_weights *const w = &e->model->weights;
    const struct tn_recurrent_plan *const plan = &own->together;

    for (size_t layer = 0; layer < e->model->arch.config.layers; layer++)
        own->blocks[layer] = tn_block_hold(&plan->block, &w->blocks[layer], arena);
    own->predictor = tn_dense_hold(&plan->predictor, w->predictor, arena);
    if (w->frames)
        own->projection = tn_dense_hold(&plan->projection, w->frames, arena);
}

static tarn_status pack_weights(const tarn_engine *e, struct tn_recurrent *own, tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    pack(e, own, &measure);
    own->bytes = tn_arena_bytes(&measure);
    own->memory = tn_allocate(&e->host.allocator, own->bytes);
    if (!own->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a copy of the weights");
    struct tn_arena arena = tn_arena_over(own->memory);

    pack(e, own, &arena);
    return TARN_OK;
}

static tarn_status create(tarn_engine *e, tarn_error *err)
{
    const size_t layers = e->model->arch.config.layers;
    const size_t bytes = sizeof(struct tn_recurrent) + layers * sizeof(tarn_attention) +
                         layers * sizeof(struct tn_block_weights);
    struct tn_recurrent *const own = tn_allocate(&e->host.allocator, bytes);
    tarn_status status;

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an engine");
    memset(own, 0, bytes);
    own->attentions = (tarn_attention *)(own + 1);
    own->blocks = (struct tn_block_weights *)(own->attentions + layers);
    e->own = own;
    if ((status = attentions_create(e, own, err)) != TARN_OK)
        return status;
    own->past_bytes = tn_round_up(e->model->arch.context.reach * sizeof(int32_t), TN_ALIGN);
    own->layer_bytes = tn_round_up(tarn_attention_state_size(&own->attentions[0]), TN_ALIGN);
    if ((status = plans_create(e, own, err)) != TARN_OK)
        return status;
    return pack_weights(e, own, err);
}

static void destroy(tarn_engine *e)
{
    struct tn_recurrent *const own = e->own;

    if (!own)
        return;
    for (size_t layer = 0; layer < e->model->arch.config.layers; layer++)
        tn_attention_clear(&own->attentions[layer]);
    tn_recurrent_plan_clear(&own->together);
    tn_recurrent_plan_clear(&own->apart);
    tn_release(&e->host.allocator, own->memory);
    tn_release(&e->host.allocator, own);
}

static size_t bytes_used(const tarn_engine *e)
{
    const struct tn_recurrent *const own = e->own;

    return own->together.bytes + own->apart.bytes + own->bytes;
}

static size_t rows(const tarn_engine *e, uint64_t position)
{
    (void)e;
    (void)position;
    return 1;
}

/* A state that does not grow takes what the first position does; a cache adds a row of scores
 * and one of values for each position in it. */
static double attention_flops(const tarn_engine *e, uint64_t position)
{
    const struct tn_recurrent *const own = e->own;
    tarn_attention one = own->attentions[0];

    if (one.kind->caches)
        return 4.0 * (double)e->model->arch.config.width * (double)(position + 1);
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
    .has_frames = true,
    .create = create,
    .free = destroy,
    .stream = tn_recurrent_stream,
    .bytes = bytes_used,
    .rows = rows,
    .attention_flops = attention_flops,
    .feed = feed,
    .section = tn_recurrent_section,
    .pack = tn_recurrent_pack,
    .unpack = tn_recurrent_unpack,
    .kept = tn_recurrent_kept,
};
