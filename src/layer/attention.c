/* SPDX-License-Identifier: MIT */
/* attention.c - plans: made here, checked here, handed to the kind they name. */
#include "layer/attention_kind.h"

#include <assert.h>
#include <string.h>

#include "layer/attention_check.h"

const struct tn_table tn_attention_kinds = {"kind", tarn_attention_kind};

const tarn_table_row *tarn_attention_kind(size_t index)
{
    const struct tn_attention_kind *const *row = tn_attention_kind_rows;

    while (*row && index > 0) {
        row++;
        index--;
    }
    return *row ? &(*row)->about : NULL;
}

/* ---- Inputs ------------------------------------------------------------- */

const tarn_attention_input tn_query_key_value[] = {
    {.name = "query", .help = "what a position looks for", .width = TARN_QUERY_WIDTH},
    {.name = "key",
     .help = "what a position is found by",
     .width = TARN_QUERY_WIDTH,
     .at_keys = true},
    {.name = "value",
     .help = "what a position gives",
     .width = TARN_VALUE_WIDTH,
     .at_keys = true},
    {0},
};

const tarn_attention_input *tarn_attention_inputs(const char *kind)
{
    const struct tn_attention_kind *const row =
        kind ? tn_table_find(&tn_attention_kinds, NULL, kind, NULL, NULL) : NULL;

    return row ? row->inputs : NULL;
}

size_t tn_input_count(const tarn_attention_input *inputs)
{
    size_t count = 0;

    while (inputs[count].name)
        count++;
    return count;
}

size_t tn_input_width(const tarn_attention *plan, const tarn_attention_input *input)
{
    return input->width == TARN_QUERY_WIDTH   ? plan->D
           : input->width == TARN_VALUE_WIDTH ? plan->M
                                              : 1;
}

size_t tn_input_length(const tarn_attention *plan, const tarn_attention_input *input)
{
    return input->parameter ? 1 : input->at_keys ? plan->Nk : plan->N;
}

size_t tn_input_batch(const tarn_attention_input *input, size_t B)
{
    return input->parameter ? 1 : B;
}

/* ---- States ------------------------------------------------------------- */

struct header {
    uint64_t count, whose;
    char pad[TN_STATE_HEADER - 2 * sizeof(uint64_t)];
};

/* Through memcpy: a state may be aligned for floats only. */
static struct header header_of(const void *state)
{
    struct header header;

    memcpy(&header, state, sizeof header);
    return header;
}

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
    return h;
}

static size_t kind_draws(const tarn_attention *plan)
{
    return plan->kind->draws ? plan->kind->draws(plan) : 0;
}

/* A number of the kind, its feature map, their options, random features and sizes: not of the
 * instruction set, so that a state can move to another machine. FNV-1a, without the bits that
 * make infinities and NaN of floats; never 0, which is a state that no position has been added
 * to. */
static uint64_t whose(const tarn_attention *plan, uint64_t seed)
{
    const tarn_table_row *const rows[] = {&plan->kind->about,
                                          plan->map.row ? &plan->map.row->about : NULL};
    const bool draws = kind_draws(plan) + tn_feature_map_draws(&plan->map) > 0;
    const uint64_t cache = plan->capacity + ((uint64_t)TN_KV_BLOCK << 48); /* as it lies */
    const uint64_t sizes[] = {
        plan->H,         plan->D, plan->M, plan->map.C, plan->kind->caches ? cache : 0,
        draws ? seed : 0};
    uint64_t h = 0xcbf29ce484222325;

    for (size_t i = 0; i < 2; i++)
        h = rows[i] ? hash(h, rows[i]->name, strlen(rows[i]->name) + 1) : h;
    h = hash(h, &plan->options, sizeof plan->options);
    h = hash(h, &plan->map.options, sizeof plan->map.options);
    return (hash(h, sizes, sizeof sizes) & 0x3fffffff3fffffff) | 1;
}

void tn_state_set(const tarn_attention *plan, void *state, size_t count)
{
    const struct header header = {.count = count, .whose = count > 0 ? plan->whose : 0};

    memcpy(state, &header, sizeof header);
}

size_t tn_state_count(const void *state)
{
    return state ? (size_t)header_of(state).count : 0;
}

bool tn_state_fits(const tarn_attention *plan, const void *state)
{
    const struct header header = header_of(state);

    return header.count == 0 ? header.whose == 0 : header.whose == plan->whose;
}

bool tn_call_has_states(const struct tn_attention_call *call)
{
    return call->arrays->state0 || call->arrays->state1;
}

static size_t state_at(const struct tn_attention_call *call, size_t b)
{
    return b * tarn_attention_state_size(call->plan);
}

size_t tn_call_count(const struct tn_attention_call *call, size_t b)
{
    const char *const state0 = call->arrays->state0;

    return state0 ? tn_state_count(state0 + state_at(call, b)) : 0;
}

const float *tn_call_state0(const struct tn_attention_call *call, size_t b)
{
    const char *const state0 = call->arrays->state0;

    return state0 ? (const float *)(const void *)(state0 + state_at(call, b) + TN_STATE_HEADER)
                  : NULL;
}

float *tn_call_state1(const struct tn_attention_call *call, size_t b)
{
    char *const state1 = call->arrays->state1;

    return state1 ? tn_state_floats(state1 + state_at(call, b)) : NULL;
}

const float *tn_call_dstate1(const struct tn_attention_call *call, size_t b)
{
    const float *const d = call->arrays->dstate1;

    return d ? d + (state_at(call, b) + TN_STATE_HEADER) / sizeof *d : NULL;
}

float *tn_call_dstate0(const struct tn_attention_call *call, size_t b)
{
    float *const d = call->arrays->dstate0;

    return d ? d + (state_at(call, b) + TN_STATE_HEADER) / sizeof *d : NULL;
}

/* ---- Life --------------------------------------------------------------- */

static void draw(tarn_attention *plan, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    tn_feature_map_draw(&plan->map, &random);
    if (plan->kind->draw)
        plan->kind->draw(plan, &random);
    plan->whose = whose(plan, seed);
}

/* One block for the draws of the map and of the kind. */
static tarn_status allocate_draws(tarn_attention *plan, tarn_error *err)
{
    const size_t map_floats = tn_feature_map_draws(&plan->map), floats = kind_draws(plan);

    if (map_floats > SIZE_MAX / 8 || floats > SIZE_MAX / 8)
        return tn_fail(err, TARN_ENOMEM, "attention: the random features do not fit in memory");
    if (map_floats + floats == 0)
        return TARN_OK;
    plan->draws = tn_allocate(&plan->host.allocator, (map_floats + floats) * sizeof(float));
    if (!plan->draws)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for %zu random numbers of the attention",
                       map_floats + floats);
    plan->map.draws = plan->draws + floats;
    return TARN_OK;
}

static tarn_status name_kind(tarn_attention *plan, const tarn_attention_desc *desc,
                             tarn_error *err)
{
    tarn_status status;

    plan->kind = tn_table_find(&tn_attention_kinds, &plan->options, desc->kind, &status, err);
    if (!plan->kind)
        return status;
    if (plan->kind->has_map && (!plan->kind->uses_map || plan->kind->uses_map(plan)))
        return tn_feature_map_init(&plan->map, desc->feature_map ? desc->feature_map : "elu",
                                   desc->query_width, plan->host.kernels, err);
    if (desc->feature_map)
        return tn_fail(err, TARN_EINVAL,
                       "feature_map: '%.40s' is given, but '%s' attention with these options "
                       "uses none; leave it out",
                       desc->feature_map, plan->kind->about.name);
    return TARN_OK;
}

tarn_status tn_attention_init(tarn_attention *plan, const tarn_attention_desc *desc,
                              const struct tn_host *host, tarn_error *err)
{
    tarn_status status;

    *plan = (tarn_attention){
        .host = *host,
        .causal = desc->causal,
        .B = desc->batch,
        .H = desc->heads,
        .N = desc->queries,
        .Nk = desc->causal ? desc->queries : desc->keys,
        .capacity = desc->keys,
        .D = desc->query_width,
        .M = desc->value_width,
    };
    if ((status = tn_check_desc(desc, err)) != TARN_OK ||
        (status = name_kind(plan, desc, err)) != TARN_OK ||
        (status = tn_check_plan(plan, err)) != TARN_OK ||
        (status = allocate_draws(plan, err)) != TARN_OK)
        return status;
    draw(plan, desc->seed);
    return TARN_OK;
}

void tn_attention_clear(tarn_attention *plan)
{
    tn_release(&plan->host.allocator, plan->draws);
    plan->draws = NULL;
}

tarn_status tarn_attention_create(tarn_attention **attention, const tarn_attention_desc *desc,
                                  tarn_error *err)
{
    struct tn_host host;
    tarn_status status;

    if (!attention)
        return tn_fail(err, TARN_EINVAL, "attention must not be NULL");
    *attention = NULL;
    if (!desc)
        return tn_fail(err, TARN_EINVAL, "desc must not be NULL");
    if ((status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    tarn_attention *const plan = tn_allocate(&host.allocator, sizeof *plan);

    if (!plan)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an attention plan");
    status = tn_attention_init(plan, desc, &host, err);
    if (status == TARN_OK)
        *attention = plan;
    else
        tarn_attention_free(plan);
    return status;
}

void tarn_attention_free(tarn_attention *attention)
{
    if (!attention)
        return;
    const tarn_allocator allocator = attention->host.allocator;

    tn_attention_clear(attention);
    tn_release(&allocator, attention);
}

void tarn_attention_redraw(tarn_attention *attention, uint64_t seed)
{
    if (attention)
        draw(attention, seed);
}

/* ---- Use ---------------------------------------------------------------- */

size_t tarn_attention_saved_size(const tarn_attention *attention)
{
    return attention ? tn_saved_bytes(attention) : 0;
}

size_t tarn_attention_workspace_size(const tarn_attention *attention)
{
    return attention ? tn_work_bytes(attention) : 0;
}

size_t tarn_attention_state_size(const tarn_attention *attention)
{
    return attention ? tn_state_bytes(attention) : 0;
}

/* A stride along one element leads nowhere, whatever it is: as 0 it does no harm where a loop
 * goes on once too often. */
static tarn_input walked_in(tarn_input x, size_t B, size_t N, size_t H)
{
    return (tarn_input){x.data, B > 1 ? x.batch : 0, N > 1 ? x.position : 0,
                        H > 1 ? x.head : 0};
}

static tarn_output walked_out(tarn_output x, size_t B, size_t N, size_t H)
{
    return (tarn_output){x.data, B > 1 ? x.batch : 0, N > 1 ? x.position : 0,
                         H > 1 ? x.head : 0};
}

/* Of B sequences; a step has one position. */
static tarn_attention_arrays walked(const tarn_attention *plan,
                                    const tarn_attention_arrays *arrays, size_t B, bool step)
{
    const tarn_attention_input *const inputs = plan->kind->inputs;
    const size_t N = step ? 1 : plan->N;
    tarn_attention_arrays used = {
        .y = walked_out(arrays->y, B, N, plan->H),
        .dy = walked_in(arrays->dy, B, N, plan->H),
        .key_lengths = arrays->key_lengths,
        .state0 = step ? NULL : arrays->state0,
        .state1 = step ? NULL : arrays->state1,
        .dstate1 = arrays->dstate1,
        .dstate0 = arrays->dstate0,
    };

    for (size_t i = 0; inputs[i].name; i++) {
        const size_t n = step ? 1 : tn_input_length(plan, &inputs[i]);
        const size_t batch = tn_input_batch(&inputs[i], B);

        used.in[i] = walked_in(arrays->in[i], batch, n, plan->H);
        used.din[i] = walked_out(arrays->din[i], batch, n, plan->H);
    }
    return used;
}

static void *aligned(void *memory)
{
    return tn_arena_over(memory).base;
}

struct tn_attention_call tn_attention_call_of(const tarn_attention *plan,
                                              tarn_attention_arrays *used,
                                              const tarn_attention_arrays *arrays,
                                              const void *saved, void *workspace)
{
    *used = walked(plan, arrays, plan->B, false);
    return (struct tn_attention_call){
        .plan = plan,
        .arrays = used,
        .saved = aligned((void *)(uintptr_t)saved),
        .work = aligned(workspace),
    };
}

void tn_attention_forward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                          void *saved, void *workspace)
{
    tarn_attention_arrays used;
    const struct tn_attention_call call =
        tn_attention_call_of(plan, &used, arrays, saved, workspace);

    assert(tn_check_forward(plan, arrays, workspace, NULL) == TARN_OK);
    plan->kind->forward(&call);
    for (size_t b = 0; arrays->state1 && b < plan->B; b++)
        tn_state_set(plan, (char *)arrays->state1 + state_at(&call, b),
                     tn_call_count(&call, b) + tn_key_length(&call, b));
}

tarn_status tarn_attention_forward(const tarn_attention *attention,
                                   const tarn_attention_arrays *arrays, void *saved,
                                   void *workspace, tarn_error *err)
{
    const tarn_status status = tn_check_forward(attention, arrays, workspace, err);

    if (status == TARN_OK)
        tn_attention_forward(attention, arrays, saved, workspace);
    return status;
}

/* Headers have no gradients. */
static void clear_headers(const struct tn_attention_call *call)
{
    for (size_t b = 0; call->arrays->dstate0 && b < call->plan->B; b++)
        memset((char *)call->arrays->dstate0 + state_at(call, b), 0, TN_STATE_HEADER);
}

void tn_attention_backward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                           const void *saved, void *workspace)
{
    tarn_attention_arrays used;
    const struct tn_attention_call call =
        tn_attention_call_of(plan, &used, arrays, saved, workspace);

    assert(tn_check_backward(plan, arrays, saved, workspace, NULL) == TARN_OK);
    plan->kind->backward(&call);
    clear_headers(&call);
}

tarn_status tarn_attention_backward(const tarn_attention *attention,
                                    const tarn_attention_arrays *arrays, const void *saved,
                                    void *workspace, tarn_error *err)
{
    const tarn_status status = tn_check_backward(attention, arrays, saved, workspace, err);

    if (status == TARN_OK)
        tn_attention_backward(attention, arrays, saved, workspace);
    return status;
}

size_t tn_attention_step_size(const tarn_attention *plan, size_t threads)
{
    struct tn_arena arena = tn_arena_over(NULL);

    plan->kind->step_work(plan, threads, &arena);
    return tn_arena_bytes(&arena);
}

void tn_attention_step(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                       void *const *states, size_t n, size_t threads, void *workspace)
{
    const tarn_attention_arrays used = walked(plan, arrays, n, true);

    plan->kind->step(&(struct tn_attention_call){
        .plan = plan,
        .arrays = &used,
        .work = aligned(workspace),
        .states = states,
        .n = n,
        .threads = threads,
    });
    for (size_t i = 0; i < n; i++)
        tn_state_set(plan, states[i], tn_state_count(states[i]) + 1);
}

tarn_status tarn_attention_step(const tarn_attention *attention,
                                const tarn_attention_arrays *arrays, void *const *states,
                                size_t n, void *workspace, tarn_error *err)
{
    const tarn_status status = tn_check_step(attention, arrays, states, n, workspace, err);

    if (status == TARN_OK && n > 0)
        tn_attention_step(attention, arrays, states, n, attention->host.threads, workspace);
    return status;
}

/* ---- Questions ---------------------------------------------------------- */

double tarn_attention_forward_flops(const tarn_attention *attention)
{
    const bool counts = attention && attention->kind->forward_flops;

    return counts ? attention->kind->forward_flops(attention) : 0.0;
}

double tarn_attention_backward_flops(const tarn_attention *attention)
{
    const bool counts = attention && attention->kind->backward_flops;

    return counts ? attention->kind->backward_flops(attention) : 0.0;
}
