/* SPDX-License-Identifier: MIT */
#include "layer/attention_check.h"

/* Elements of an array: offsets in bytes must fit in a ptrdiff_t. */
static const size_t elements_max = PTRDIFF_MAX / sizeof(float);

/* No memory holds more, and no product of a few sizes that a kind forms overflows below it:
 * rows padded to whole vectors, one row per thread, C x M. */
static const size_t desc_elements_max =
    PTRDIFF_MAX / sizeof(float) / (SIZE_MAX > UINT32_MAX ? 4096 : 1);
static const size_t width_max = (size_t)1 << 24;

size_t tn_saved_bytes(const tarn_attention *plan)
{
    struct tn_arena arena = tn_arena_over(NULL);

    tn_arena_floats(&arena, plan->kind->saved(plan));
    return tn_arena_bytes(&arena);
}

size_t tn_work_bytes(const tarn_attention *plan)
{
    struct tn_arena arena = tn_arena_over(NULL);

    plan->kind->work(plan, &arena);
    const size_t bytes = tn_arena_bytes(&arena);

    return plan->kind->step && plan->causal
               ? tn_max(bytes, tn_attention_step_size(plan, plan->host.threads))
               : bytes;
}

size_t tn_state_bytes(const tarn_attention *plan)
{
    const size_t floats = plan->kind->step && plan->causal ? plan->kind->state(plan) : 0;

    return floats == 0 ? 0
           : floats <= (SIZE_MAX / 2 - TN_STATE_HEADER) / sizeof(float)
               ? TN_STATE_HEADER + floats * sizeof(float)
               : SIZE_MAX;
}

tarn_status tn_check_desc(const tarn_attention_desc *desc, tarn_error *err)
{
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        {"batch", desc->batch},
        {"heads", desc->heads},
        {"queries", desc->queries},
        {"keys", desc->keys},
        {"query_width", desc->query_width},
        {"value_width", desc->value_width},
    };
    size_t elements;

    if (!desc->kind)
        return tn_fail(err, TARN_EINVAL, "kind is NULL; it must be a name such as \"linear\"");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value == 0)
            return tn_fail(err, TARN_EINVAL, "%s is 0; it must be at least 1", sizes[i].name);
    const size_t factors[] = {desc->batch, desc->heads, tn_max(desc->queries, desc->keys),
                              tn_max(desc->query_width, desc->value_width)};

    if (!tn_size_product(&elements, factors, 4) || elements > desc_elements_max)
        return tn_fail(err, TARN_EINVAL,
                       "sizes: %zu x %zu x %zu x %zu floats do not fit in memory", factors[0],
                       factors[1], factors[2], factors[3]);
    if (factors[3] > width_max)
        return tn_fail(err, TARN_EINVAL, "%s is %zu; it must be at most %zu",
                       desc->query_width > width_max ? "query_width" : "value_width",
                       factors[3], width_max);
    if (desc->causal && desc->queries > desc->keys)
        return tn_fail(err, TARN_EINVAL,
                       "keys is %zu; it must be at least queries, %zu, because a causal "
                       "sequence has as many keys",
                       desc->keys, desc->queries);
    return TARN_OK;
}

tarn_status tn_check_plan(const tarn_attention *plan, tarn_error *err)
{
    const struct tn_attention_kind *const kind = plan->kind;

    if (kind->check) {
        const tarn_status status = kind->check(plan, err);

        if (status != TARN_OK)
            return status;
    }
    if (tn_saved_bytes(plan) == SIZE_MAX || tn_work_bytes(plan) == SIZE_MAX ||
        tn_state_bytes(plan) == SIZE_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "sizes: the buffers of '%s' attention do not fit in memory",
                       kind->about.name);
    return TARN_OK;
}

/* ---- Arrays ------------------------------------------------------------- */

/* The shape and place of one array of a call. */
struct array {
    const char *of, *name; /* "gradient of " or "", and which */
    const float *data;
    ptrdiff_t strides[3]; /* batch, position, head */
    size_t counts[3];     /* B, N, H */
    size_t width;
};

static struct array array_in(const char *name, tarn_input in, size_t B, size_t N, size_t H,
                             size_t width)
{
    return (struct array){"",        name, in.data, {in.batch, in.position, in.head},
                          {B, N, H}, width};
}

static struct array array_out(const char *name, tarn_output out, size_t B, size_t N, size_t H,
                              size_t width)
{
    return array_in(name, (tarn_input){out.data, out.batch, out.position, out.head}, B, N, H,
                    width);
}

static tarn_status check_input(const struct array *a, tarn_error *err)
{
    size_t reach = a->width;

    if (!a->data)
        return tn_fail(err, TARN_EINVAL, "%s%s: data must not be NULL", a->of, a->name);
    if ((uintptr_t)a->data % _Alignof(float) != 0)
        return tn_fail(err, TARN_EINVAL, "%s%s: data is not aligned to %zu bytes", a->of,
                       a->name, _Alignof(float));
    for (size_t i = 0; i < 3; i++) {
        size_t span;

        if (!tn_size_product(&span, (size_t[]){tn_magnitude(a->strides[i]), a->counts[i] - 1},
                             2) ||
            span > elements_max - reach)
            return tn_fail(err, TARN_EINVAL,
                           "%s%s: a stride of %td for %zu elements does not fit in memory",
                           a->of, a->name, a->strides[i], a->counts[i]);
        reach += span;
    }
    return TARN_OK;
}

/* Walking from the smallest stride to the largest, each must step over all that lies within it:
 * then no two elements share a place, and every element has one writer. */
static tarn_status check_output(const struct array *a, tarn_error *err)
{
    const tarn_status status = check_input(a, err);
    bool walked[3] = {a->counts[0] == 1, a->counts[1] == 1, a->counts[2] == 1};
    size_t extent = a->width;

    if (status != TARN_OK)
        return status;
    for (;;) {
        size_t next = 3;

        for (size_t i = 0; i < 3; i++)
            if (!walked[i] &&
                (next == 3 || tn_magnitude(a->strides[i]) < tn_magnitude(a->strides[next])))
                next = i;
        if (next == 3)
            return TARN_OK;
        if (tn_magnitude(a->strides[next]) < extent)
            return tn_fail(
                err, TARN_EINVAL,
                "%s%s: a stride of %td makes elements overlap; it must be at least %zu", a->of,
                a->name, a->strides[next], extent);
        extent += tn_magnitude(a->strides[next]) * (a->counts[next] - 1);
        walked[next] = true;
    }
}

/* The inputs and y of B sequences; a step has one position. */
static tarn_status check_forward_arrays(const tarn_attention *plan,
                                        const tarn_attention_arrays *arrays, size_t B,
                                        bool step, tarn_error *err)
{
    const struct array y = array_out("y", arrays->y, B, step ? 1 : plan->N, plan->H, plan->M);
    tarn_status status = TARN_OK;

    for (const tarn_attention_input *input = plan->kind->inputs;
         input->name && status == TARN_OK; input++) {
        const size_t n = step ? 1 : tn_input_length(plan, input);
        const struct array in =
            array_in(input->name, arrays->in[input - plan->kind->inputs],
                     tn_input_batch(input, B), n, plan->H, tn_input_width(plan, input));

        status = check_input(&in, err);
    }
    return status == TARN_OK ? check_output(&y, err) : status;
}

static tarn_status check_gradients(const tarn_attention *plan,
                                   const tarn_attention_arrays *arrays, tarn_error *err)
{
    const struct array dy = array_in("dy", arrays->dy, plan->B, plan->N, plan->H, plan->M);
    tarn_status status = check_input(&dy, err);

    for (const tarn_attention_input *input = plan->kind->inputs;
         input->name && status == TARN_OK; input++) {
        struct array din =
            array_out(input->name, arrays->din[input - plan->kind->inputs],
                      tn_input_batch(input, plan->B), tn_input_length(plan, input), plan->H,
                      tn_input_width(plan, input));

        din.of = "gradient of ";
        status = check_output(&din, err);
    }
    return status;
}

static tarn_status check_lengths(const tarn_attention *plan, const size_t *lengths,
                                 tarn_error *err)
{
    for (size_t b = 0; lengths && b < plan->B; b++)
        if (lengths[b] > plan->Nk)
            return tn_fail(err, TARN_EINVAL, "key_lengths[%zu] is %zu; it must be at most %zu",
                           b, lengths[b], plan->Nk);
    return TARN_OK;
}

static tarn_status check_call(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                              const void *workspace, tarn_error *err)
{
    if (!plan)
        return tn_fail(err, TARN_EINVAL, "attention must not be NULL");
    if (!arrays)
        return tn_fail(err, TARN_EINVAL, "arrays must not be NULL");
    if (!workspace && tn_work_bytes(plan) > 0)
        return tn_fail(err, TARN_EINVAL, "workspace is NULL; it must have %zu bytes",
                       tn_work_bytes(plan));
    return TARN_OK;
}

/* ---- States of whole calls ---------------------------------------------- */

/* One that `more` positions follow. `what` it is called, with a number, is for messages. */
static tarn_status check_state(const tarn_attention *plan, const void *state, size_t more,
                               const char *what, size_t i, tarn_error *err)
{
    const size_t count = tn_state_count(state);

    if (!tn_state_fits(plan, state))
        return tn_fail(err, TARN_EINVAL,
                       "%s[%zu] is a state of another attention; it must be one of '%s' with "
                       "the same feature map and sizes",
                       what, i, plan->kind->about.name);
    if (plan->kind->caches && (count > plan->capacity || more > plan->capacity - count))
        return tn_fail(
            err, TARN_EINVAL,
            "%s[%zu] is full: it has %zu positions, and %zu more do not fit into the "
            "%zu keys of the plan",
            what, i, count, more, plan->capacity);
    return TARN_OK;
}

static tarn_status check_recurrence(const tarn_attention *plan, const char *what,
                                    tarn_error *err)
{
    if (!plan->kind->step)
        return tn_fail(err, TARN_EINVAL, "attention: '%s' has no recurrent form and cannot %s",
                       plan->kind->about.name, what);
    if (!plan->causal)
        return tn_fail(err, TARN_EINVAL, "attention: only a causal plan can %s", what);
    return TARN_OK;
}

/* Of B states in a row. */
static tarn_status check_block(const tarn_attention *plan, const void *block, const char *name,
                               tarn_error *err)
{
    if ((uintptr_t)block % _Alignof(float) != 0)
        return tn_fail(err, TARN_EINVAL,
                       "%s is misaligned; it must have %zu times %zu bytes, aligned as floats",
                       name, plan->B, tn_state_bytes(plan));
    return TARN_OK;
}

static tarn_status check_state0(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                                tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t b = 0; b < plan->B && status == TARN_OK; b++) {
        const size_t more = arrays->key_lengths ? arrays->key_lengths[b] : plan->N;

        status = check_state(plan, (const char *)arrays->state0 + b * tn_state_bytes(plan),
                             more, "state0", b, err);
    }
    return status;
}

static tarn_status check_call_states(const tarn_attention *plan,
                                     const tarn_attention_arrays *arrays, tarn_error *err)
{
    const struct {
        const void *at;
        const char *name;
    } blocks[] = {{arrays->state0, "state0"},
                  {arrays->state1, "state1"},
                  {arrays->dstate1, "dstate1"},
                  {arrays->dstate0, "dstate0"}};
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < 4 && status == TARN_OK; i++)
        if (blocks[i].at && (status = check_recurrence(plan, "take states", err)) == TARN_OK)
            status = check_block(plan, blocks[i].at, blocks[i].name, err);
    return status == TARN_OK && arrays->state0 ? check_state0(plan, arrays, err) : status;
}

/* ---- Calls -------------------------------------------------------------- */

static tarn_status check_whole(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                               const void *workspace, tarn_error *err)
{
    tarn_status status = check_call(plan, arrays, workspace, err);

    if (status == TARN_OK)
        status = check_lengths(plan, arrays->key_lengths, err);
    if (status == TARN_OK)
        status = check_call_states(plan, arrays, err);
    return status == TARN_OK ? check_forward_arrays(plan, arrays, plan->B, false, err) : status;
}

tarn_status tn_check_forward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                             const void *workspace, tarn_error *err)
{
    const tarn_status status = check_whole(plan, arrays, workspace, err);

    if (status == TARN_OK && plan->kind->caches && arrays->state0 && !arrays->state1)
        return tn_fail(err, TARN_EINVAL,
                       "state1 is NULL; '%s' attention with a state0 needs it for its keys and "
                       "values",
                       plan->kind->about.name);
    return status;
}

tarn_status tn_check_backward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                              const void *saved, const void *workspace, tarn_error *err)
{
    tarn_status status = check_call(plan, arrays, workspace, err);

    if (status != TARN_OK)
        return status;
    if (!saved && tn_saved_bytes(plan) > 0)
        return tn_fail(err, TARN_EINVAL,
                       "saved is NULL; it must be what the forward pass saved");

    /* Before forward's arrays: the dot product has no y and puts dv there. */
    status = check_gradients(plan, arrays, err);
    return status == TARN_OK ? check_whole(plan, arrays, workspace, err) : status;
}

static tarn_status check_states(const tarn_attention *plan, void *const *states, size_t n,
                                tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (!states && n > 0)
        return tn_fail(err, TARN_EINVAL, "states is NULL; it must have %zu states", n);
    for (size_t i = 0; i < n && status == TARN_OK; i++)
        status = !states[i] || (uintptr_t)states[i] % _Alignof(float) != 0
                     ? tn_fail(err, TARN_EINVAL,
                               "states[%zu] is %s; it must have %zu bytes, aligned as floats",
                               i, states[i] ? "misaligned" : "NULL", tn_state_bytes(plan))
                     : check_state(plan, states[i], 1, "states", i, err);
    return status;
}

tarn_status tn_check_step(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                          void *const *states, size_t n, const void *workspace, tarn_error *err)
{
    tarn_status status = check_call(plan, arrays, workspace, err);

    if (status != TARN_OK)
        return status;
    if ((status = check_recurrence(plan, "step", err)) != TARN_OK)
        return status;
    if (arrays->key_lengths)
        return tn_fail(err, TARN_EINVAL, "key_lengths must be NULL for a step");
    if ((status = check_states(plan, states, n, err)) != TARN_OK || n == 0)
        return status;
    return check_forward_arrays(plan, arrays, n, true, err);
}
