/* SPDX-License-Identifier: MIT */
/* slice_caches.c - a slice reads the keys and values of all before it: every process has them
 * all, up to its own (kv_cache.h). Gradients of these go back to the process that they are of.
 *
 * A slice gives each key before it a gradient. Summed as a binary tree, those of own slices are
 * the branches that wait when the slice of the key is reached, from the last slice to the
 * first, nearest first; then come those of other processes. */
#include "model/slice_states.h"

#include <string.h>

#include "comm/tree_sum.h"
#include "layer/kv_cache.h"
#include "model/slices.h"

static size_t bytes_of(const tarn_attention *attention)
{
    return tarn_attention_state_size(attention);
}

/* Of a layer: B, one after the other. */
static char *caches_of(const struct tn_slice_states *s, const tarn_attention *attention,
                       size_t layer)
{
    return s->states + layer * s->run->B * bytes_of(attention);
}

static size_t own_positions(const struct tn_slice_states *s)
{
    return s->run->slices->own * s->run->N;
}

/* Floats of keys and values of all own positions of all sequences. */
static size_t own_floats(const struct tn_slice_states *s, const tarn_attention *attention)
{
    return s->run->B * attention->H * own_positions(s) * (attention->D + attention->M);
}

static void lay_out(struct tn_slice_states *s, const tarn_attention *attention,
                    struct tn_arena *arena)
{
    const struct tn_slices *const slices = s->run->slices;
    const size_t behind = tn_comm_size(slices->comm) - 1 - tn_comm_rank(slices->comm);

    s->states = tn_arena_alloc(arena, s->run->model->arch.config.layers * s->run->B,
                               bytes_of(attention));
    s->branches = (struct tn_branches){
        .host = &s->run->host,
        .leaves = slices->own,
        .floats = s->run->B * bytes_of(attention) / sizeof(float),
    };
    tn_branches_lay_out(&s->branches, arena);
    s->inbox = tn_arena_floats(arena, behind * own_floats(s, attention));
}

/* ---- Transfers ---------------------------------------------------------- */

/* The rows of `positions` positions from `from` on are `to_rank`'s, or come from it. In `cache`
 * they lie as there; as an inbox, one head after the other. */
static tarn_status move_rows(const struct tn_slice_states *s, const tarn_attention *attention,
                             float *caches, size_t from, size_t peer, bool receives,
                             tarn_error *err)
{
    const tarn_comm *const comm = s->run->slices->comm;
    const size_t stride = bytes_of(attention) / sizeof(float), n = own_positions(s);
    tarn_status status = TARN_OK;

    for (size_t task = 0; task < 2 * s->run->B * attention->H && status == TARN_OK; task++) {
        const size_t b = task / 2 / attention->H, h = task / 2 % attention->H;
        float *const floats = tn_state_floats(caches + b * stride);
        const size_t width = task % 2 ? attention->M : attention->D;
        float *const rows =
            (task % 2 ? tn_kv_cache_values : tn_kv_cache_keys)(attention, floats, h) +
            from * width;
        const size_t bytes = n * width * sizeof(float);

        status = receives ? tn_comm_receive(comm, rows, bytes, peer, TN_TAG_RECORDS, err)
                          : tn_comm_send(comm, rows, bytes, peer, TN_TAG_RECORDS, err);
    }
    return status;
}

/* ---- Forward ------------------------------------------------------------ */

static void note(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    const tarn_attention *const plan = call->attention;
    const struct tn_attention_call heads = {.plan = plan, .arrays = &call->arrays};
    char *const caches = caches_of(s, plan, call->layer);

    if (call->i == 0 && s->run->lengths) /* what is never read is sent */
        memset(caches, 0, s->run->B * bytes_of(plan));
    for (size_t task = 0; task < plan->B * plan->H; task++) {
        const size_t b = task / plan->H;

        tn_kv_cache_append(&heads, tn_state_floats(caches + b * bytes_of(plan)), b,
                           task % plan->H, s->run->slices->counts[b], s->run->slices->there[b]);
    }
}

/* To all processes behind, from all before. */
static tarn_status spread(const struct tn_slice_states *s, const tarn_attention *attention,
                          float *caches, tarn_error *err)
{
    const tarn_comm *const comm = s->run->slices->comm;
    const size_t own = own_positions(s);
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < comm->size && status == TARN_OK; i++)
        if (i != comm->rank)
            status = i < comm->rank
                         ? move_rows(s, attention, caches, i * own, i, true, err)
                         : move_rows(s, attention, caches, comm->rank * own, i, false, err);
    return status == TARN_OK ? tn_comm_wait(comm, TN_TAG_RECORDS, TN_SHORT, err) : status;
}

static void exchange(struct tn_slice_states *s, const tarn_attention *attention, size_t layer)
{
    const struct tn_slices *const slices = s->run->slices;
    tarn_error err;

    if (tn_comm_size(slices->comm) > 1 && slices->status == TARN_OK)
        tn_slices_keep(
            s->run, spread(s, attention, (float *)(void *)caches_of(s, attention, layer), &err),
            &err);
}

/* Of which the slice reads what is before it. */
static char *caches_before(const struct tn_slice_states *s, const struct tn_slice_call *call)
{
    char *const caches = caches_of(s, call->attention, call->layer);

    for (size_t b = 0; b < s->run->B; b++)
        tn_state_set(call->attention, caches + b * bytes_of(call->attention),
                     s->run->slices->counts[b]);
    return caches;
}

static void forward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    tarn_attention_arrays arrays = call->arrays;
    char *const caches = caches_before(s, call);

    arrays.state0 = arrays.state1 = caches;
    tn_attention_forward(call->attention, &arrays, call->saved, call->work);
}

/* ---- Backward ----------------------------------------------------------- */

/* din of the keys and values of a head of the slice += these rows. */
static void add_rows(const struct tn_slice_states *s, const struct tn_slice_call *call,
                     size_t b, size_t h, const float *keys, const float *values)
{
    const tarn_attention *const plan = call->attention;

    for (size_t n = 0; n < s->run->slices->there[b]; n++) {
        plan->host.kernels->axpy(tn_out(call->arrays.din[TN_KEY], b, h, n), 1.0f,
                                 keys + n * plan->D, plan->D);
        plan->host.kernels->axpy(tn_out(call->arrays.din[TN_VALUE], b, h, n), 1.0f,
                                 values + n * plan->M, plan->M);
    }
}

static void add_branch(const struct tn_slice_states *s, const struct tn_slice_call *call,
                       float *branch)
{
    const tarn_attention *const plan = call->attention;
    const size_t from = tn_slice_from(s->run, call->i);

    for (size_t task = 0; task < plan->B * plan->H; task++) {
        const size_t b = task / plan->H, h = task % plan->H;
        float *const floats = tn_state_floats(branch + b * bytes_of(plan) / sizeof *branch);

        add_rows(s, call, b, h, tn_kv_cache_keys(plan, floats, h) + from * plan->D,
                 tn_kv_cache_values(plan, floats, h) + from * plan->M);
    }
}

static void note_back(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    struct tn_branches *const branches = &s->branches;
    tarn_attention_arrays arrays = call->arrays;

    if (call->i + 1 == s->run->slices->own)
        tn_branches_begin(branches);
    arrays.state0 = caches_before(s, call);
    arrays.dstate0 = tn_branches_leaf(branches);
    tn_attention_backward(call->attention, &arrays, call->saved, call->work);
    for (size_t i = branches->waiting; i-- > 0;)
        add_branch(s, call, branches->sums[i]);
    tn_branches_add(branches, 0, branches->floats);
    tn_branches_end_leaf(branches);
}

/* What the process that is number `i` from the last has sent. */
static float *inbox_of(const struct tn_slice_states *s, const tarn_attention *attention,
                       size_t i)
{
    return s->inbox + i * own_floats(s, attention);
}

/* As move_rows() sends them. */
static tarn_status receive_rows(const struct tn_slice_states *s,
                                const tarn_attention *attention, size_t peer, tarn_error *err)
{
    const tarn_comm *const comm = s->run->slices->comm;
    const size_t n = own_positions(s);
    float *rows = inbox_of(s, attention, comm->size - 1 - peer);
    tarn_status status = TARN_OK;

    for (size_t task = 0; task < 2 * s->run->B * attention->H && status == TARN_OK; task++) {
        const size_t floats = n * (task % 2 ? attention->M : attention->D);

        status = tn_comm_receive(comm, rows, floats * sizeof *rows, peer, TN_TAG_RECORDS, err);
        rows += floats;
    }
    return status;
}

/* To all processes before, from all behind. */
static tarn_status collect(const struct tn_slice_states *s, const tarn_attention *attention,
                           tarn_error *err)
{
    const tarn_comm *const comm = s->run->slices->comm;
    const size_t own = own_positions(s);
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < comm->size && status == TARN_OK; i++)
        if (i != comm->rank)
            status = i > comm->rank
                         ? receive_rows(s, attention, i, err)
                         : move_rows(s, attention, s->branches.sums[0], i * own, i, false, err);
    return status == TARN_OK ? tn_comm_wait(comm, TN_TAG_RECORDS, TN_SHORT, err) : status;
}

/* Of `count` processes, a power of two: in the place of the first. */
static float *join(const struct tn_slice_states *s, const tarn_attention *attention,
                   size_t first, size_t count)
{
    if (count == 1)
        return inbox_of(s, attention, first);
    float *const sum = join(s, attention, first, count / 2);

    tn_tree_add(&s->run->host, sum, join(s, attention, first + count / 2, count / 2),
                own_floats(s, attention), false);
    return sum;
}

/* Processes behind, counted from the last: branches of the tree, nearest first. */
static bool next_branch(size_t behind, size_t *level, size_t *first)
{
    while (behind >> *level > 0 && !(behind >> *level & 1))
        ++*level;
    if (behind >> *level == 0)
        return false;
    *first = ((behind >> *level) - 1) << *level;
    return true;
}

static size_t processes_behind(const struct tn_slice_states *s)
{
    const tarn_comm *const comm = s->run->slices->comm;

    return tn_comm_size(comm) - 1 - tn_comm_rank(comm);
}

static void exchange_back(struct tn_slice_states *s, const tarn_attention *attention)
{
    const struct tn_slices *const slices = s->run->slices;
    tarn_error err;
    size_t first;

    if (tn_comm_size(slices->comm) == 1 || slices->status != TARN_OK)
        return;
    tn_slices_keep(s->run, collect(s, attention, &err), &err);
    for (size_t level = 0; next_branch(processes_behind(s), &level, &first); level++)
        join(s, attention, first, (size_t)1 << level);
}

/* Keys and values of a head follow each other. */
static void add_inbox(const struct tn_slice_states *s, const struct tn_slice_call *call,
                      const float *inbox)
{
    const tarn_attention *const plan = call->attention;
    const size_t n = own_positions(s), from = call->i * s->run->N;

    for (size_t task = 0; task < plan->B * plan->H; task++) {
        const float *const keys = inbox + task * n * (plan->D + plan->M);

        add_rows(s, call, task / plan->H, task % plan->H, keys + from * plan->D,
                 keys + n * plan->D + from * plan->M);
    }
}

static void backward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    size_t first;

    for (size_t level = 0; next_branch(processes_behind(s), &level, &first); level++)
        add_inbox(s, call, inbox_of(s, call->attention, first));
}

const struct tn_slice_way tn_slice_caches = {
    .keeps_dinputs = true,
    .lay_out = lay_out,
    .note = note,
    .exchange = exchange,
    .forward = forward,
    .note_back = note_back,
    .exchange_back = exchange_back,
    .backward = backward,
};
