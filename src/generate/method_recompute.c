/* SPDX-License-Identifier: MIT */
/* method_recompute.c - the state is the symbols themselves, and every step runs the whole
 * sequence again: the paper's plain softmax and lsh. */
#include <string.h>

#include "generate/generator.h"

enum { GROWTH = 32 }; /* positions between two plans */

/* A run for a length that is a multiple of GROWTH; what it has too much is not looked at. */
struct recompute {
    tarn_run *run;
    int32_t *symbols; /* B x the run's length */
    size_t *lengths;  /* B */
    float *outputs;   /* B x O */
    void *memory;     /* that holds these */
    size_t bytes;
};

static int32_t *history(struct tn_state *state)
{
    return (int32_t *)(state + 1); /* B x longest */
}

static void destroy_run(tarn_generator *g)
{
    struct recompute *const own = g->own;

    tarn_run_free(own->run);
    tn_release(&g->host.allocator, own->memory);
    own->run = NULL;
    own->memory = NULL;
}

static void lay_out(const tarn_generator *g, size_t length, struct tn_arena *arena)
{
    struct recompute *const own = g->own;

    own->symbols = tn_arena_take(arena, g->B * length, sizeof *own->symbols);
    own->lengths = tn_arena_take(arena, g->B, sizeof *own->lengths);
    own->outputs = tn_arena_floats(arena, g->B * g->model->arch.head.outputs);
}

/* A run for at least `length` positions and hardly more. */
static tarn_status make_run(tarn_generator *g, size_t length, tarn_error *err)
{
    struct recompute *const own = g->own;
    const size_t N = tn_min(tn_round_up(length, GROWTH), tn_generator_end(g));
    const struct tn_run_desc desc = {.B = g->B, .N = N};
    struct tn_arena measure = tn_arena_over(NULL);

    if (own->run && own->run->N == N)
        return TARN_OK;
    destroy_run(g);
    lay_out(g, N, &measure);
    own->bytes = tn_arena_bytes(&measure);
    own->memory = tn_allocate(&g->host.allocator, own->bytes);
    if (!own->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu streams of %zu positions",
                       g->B, N);
    struct tn_arena arena = tn_arena_over(own->memory);

    lay_out(g, N, &arena);
    return tn_run_create(&own->run, g->model, &desc, &g->host, err);
}

/* The state's symbols, then zeros, which no position that counts sees. */
static void load(tarn_generator *g, struct tn_state *state)
{
    struct recompute *const own = g->own;
    const size_t N = own->run->N, n = (size_t)state->position;

    memset(own->symbols, 0, g->B * N * sizeof *own->symbols);
    for (size_t b = 0; b < g->B; b++) {
        memcpy(own->symbols + b * N, history(state) + b * g->longest, n * sizeof *own->symbols);
        own->lengths[b] = n;
    }
}

static tarn_status feed(tarn_generator *g, struct tn_state *state, const float **outputs,
                        const int32_t *symbols, size_t n, tarn_error *err)
{
    struct recompute *const own = g->own;
    const size_t O = g->model->arch.head.outputs, from = (size_t)state->position;
    const tarn_status status = make_run(g, from + n, err);

    if (status != TARN_OK)
        return status;
    for (size_t b = 0; b < g->B; b++)
        memcpy(history(state) + b * g->longest + from, symbols + b * n, n * sizeof *symbols);
    state->position += n;
    load(g, state);
    own->run->lengths = own->lengths;
    tn_run_forward(own->run, own->symbols);
    for (size_t b = 0; b < g->B; b++)
        memcpy(own->outputs + b * O, own->run->outputs + (b * own->run->N + from + n - 1) * O,
               O * sizeof(float));
    *outputs = own->outputs;
    return TARN_OK;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status create(tarn_generator *g, tarn_error *err)
{
    size_t bytes;

    if (g->elements != TN_F32)
        return tn_fail(err, TARN_EINVAL,
                       "precision is bf16; it must be f32 with method recompute: use method "
                       "recurrent for bf16");
    if (g->longest == 0)
        return tn_fail(err, TARN_EINVAL,
                       "longest is 0; it must be the maximum sequence length, because method "
                       "recompute keeps the whole sequence");
    if (!tn_size_product(&bytes, (size_t[]){g->B, g->longest, sizeof(int32_t)}, 3) ||
        bytes > PTRDIFF_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "longest is %zu; so many symbols of %zu streams do not fit in memory",
                       g->longest, g->B);
    g->own = tn_allocate(&g->host.allocator, sizeof(struct recompute));
    if (!g->own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a generator");
    *(struct recompute *)g->own = (struct recompute){0};
    return TARN_OK;
}

static void destroy(tarn_generator *g)
{
    if (!g->own)
        return;
    destroy_run(g);
    tn_release(&g->host.allocator, g->own);
}

static size_t state_size(const tarn_generator *g)
{
    return sizeof(struct tn_state) + g->B * g->longest * sizeof(int32_t);
}

static size_t bytes_held(const tarn_generator *g)
{
    const struct recompute *const own = g->own;

    return own->run ? own->bytes + own->run->bytes : 0;
}

static size_t rows(const tarn_generator *g, uint64_t position)
{
    return g->B * ((size_t)position + 1);
}

/* Of a forward over all positions so far. */
static double attention_flops(const tarn_generator *g, uint64_t position)
{
    const tarn_attention_desc desc =
        tn_arch_attention(&g->model->arch, g->B, (size_t)position + 1);
    tarn_attention plan;
    double flops = 0.0;

    if (tn_attention_init(&plan, &desc, &g->host, NULL) == TARN_OK)
        flops = tarn_attention_forward_flops(&plan);
    tn_attention_clear(&plan);
    return flops;
}

/* ---- Files -------------------------------------------------------------- */

static size_t packed(const tarn_generator *g, size_t n)
{
    return g->B * n * sizeof(int32_t);
}

static void pack(const tarn_generator *g, void *out, const struct tn_state *state)
{
    const size_t bytes = (size_t)state->position * sizeof(int32_t);
    const int32_t *const all = (const int32_t *)(state + 1);

    for (size_t b = 0; b < g->B; b++)
        memcpy((char *)out + b * bytes, all + b * g->longest, bytes);
}

static void unpack(const tarn_generator *g, struct tn_state *state, const void *in)
{
    const size_t bytes = (size_t)state->position * sizeof(int32_t);

    for (size_t b = 0; b < g->B; b++)
        memcpy(history(state) + b * g->longest, (const char *)in + b * bytes, bytes);
}

/* From a file, symbols may be anything. */
static tarn_status check(const tarn_generator *g, const struct tn_state *state,
                         const char *path, tarn_error *err)
{
    const int32_t *const all = (const int32_t *)(state + 1);
    tarn_status status = TARN_OK;

    for (size_t b = 0; b < g->B && status == TARN_OK; b++)
        status = tn_symbols_check(g->model, all + b * g->longest, (size_t)state->position, path,
                                  err);
    return status;
}

extern const struct tn_method tn_method_recompute;
static const tarn_option_info options[] = {{0}};
const struct tn_method tn_method_recompute = {
    .about =
        {.name = "recompute",
         .help = "each step runs the whole sequence again, as for softmax and lsh in the paper",
         .options = options},
    .create = create,
    .free = destroy,
    .state = state_size,
    .bytes = bytes_held,
    .rows = rows,
    .attention_flops = attention_flops,
    .feed = feed,
    .packed = packed,
    .pack = pack,
    .unpack = unpack,
    .check = check,
};
