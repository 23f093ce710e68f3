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
    return tn_arena_bytes(&arena);
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
    if (desc->causal && desc->queries != desc->keys)
        return tn_fail(err, TARN_EINVAL,
                       "keys is %zu and queries is %zu; causal attention needs them equal",
                       desc->keys, desc->queries);
    if (desc->allocator && (!desc->allocator->allocate || !desc->allocator->release))
        return tn_fail(err, TARN_EINVAL, "allocator: allocate and release must not be NULL");
    return tn_threads_check(desc->threads, err);
}

tarn_status tn_check_plan(const tarn_attention *plan, tarn_error *err)
{
    const struct tn_attention_kind *const kind = plan->kind;

    if (kind->shares_keys && plan->N != plan->Nk)
        return tn_fail(err, TARN_EINVAL,
                       "keys is %zu and queries is %zu; '%s' needs them equal", plan->Nk,
                       plan->N, kind->about.name);
    if (kind->check) {
        const tarn_status status = kind->check(plan, err);

        if (status != TARN_OK)
            return status;
    }
    if (tn_saved_bytes(plan) == SIZE_MAX || tn_work_bytes(plan) == SIZE_MAX ||
        (kind->step && plan->causal && kind->state(plan) == SIZE_MAX))
        return tn_fail(err, TARN_EINVAL,
                       "sizes: the buffers of '%s' attention do not fit in memory",
                       kind->about.name);
    return TARN_OK;
}

/* ---- Arrays ------------------------------------------------------------- */

/* The shape and place of one array of a call. */
struct array {
    const char *name;
    const float *data;
    ptrdiff_t strides[3]; /* batch, position, head */
    size_t counts[3];     /* B, N, H */
    size_t width;
};

static struct array array_in(const char *name, tarn_input in, const tarn_attention *plan,
                             size_t n, size_t width)
{
    return (struct array){
        name, in.data, {in.batch, in.position, in.head}, {plan->B, n, plan->H}, width};
}

static struct array array_out(const char *name, tarn_output out, const tarn_attention *plan,
                              size_t n, size_t width)
{
    return (struct array){
        name, out.data, {out.batch, out.position, out.head}, {plan->B, n, plan->H}, width};
}

static tarn_status check_input(const struct array *a, tarn_error *err)
{
    size_t reach = a->width;

    if (!a->data)
        return tn_fail(err, TARN_EINVAL, "%s: data must not be NULL", a->name);
    if ((uintptr_t)a->data % _Alignof(float) != 0)
        return tn_fail(err, TARN_EINVAL, "%s: data is not aligned to %zu bytes", a->name,
                       _Alignof(float));
    for (size_t i = 0; i < 3; i++) {
        size_t span;

        if (!tn_size_product(&span, (size_t[]){tn_magnitude(a->strides[i]), a->counts[i] - 1},
                             2) ||
            span > elements_max - reach)
            return tn_fail(err, TARN_EINVAL,
                           "%s: a stride of %td for %zu elements does not fit in memory",
                           a->name, a->strides[i], a->counts[i]);
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
                "%s: a stride of %td makes elements overlap; it must be at least %zu", a->name,
                a->strides[next], extent);
        extent += tn_magnitude(a->strides[next]) * (a->counts[next] - 1);
        walked[next] = true;
    }
}

static tarn_status check_arrays(const struct array *inputs, size_t input_count,
                                const struct array *outputs, size_t output_count,
                                tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < input_count && status == TARN_OK; i++)
        status = check_input(&inputs[i], err);
    for (size_t i = 0; i < output_count && status == TARN_OK; i++)
        status = check_output(&outputs[i], err);
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

/* Kinds that share queries and keys do not look at k. */
static bool reads_keys(const tarn_attention *plan)
{
    return !plan->kind->shares_keys;
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

tarn_status tn_check_forward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                             const void *workspace, tarn_error *err)
{
    tarn_status status = check_call(plan, arrays, workspace, err);

    if (status != TARN_OK ||
        (status = check_lengths(plan, arrays->key_lengths, err)) != TARN_OK)
        return status;
    const struct array inputs[] = {
        array_in("q", arrays->q, plan, plan->N, plan->D),
        array_in("v", arrays->v, plan, plan->Nk, plan->M),
        array_in("k", arrays->k, plan, plan->Nk, plan->D),
    };
    const struct array output = array_out("y", arrays->y, plan, plan->N, plan->M);

    return check_arrays(inputs, reads_keys(plan) ? 3 : 2, &output, 1, err);
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
    const struct array input = array_in("dy", arrays->dy, plan, plan->N, plan->M);
    const struct array outputs[] = {
        array_out("dq", arrays->dq, plan, plan->N, plan->D),
        array_out("dv", arrays->dv, plan, plan->Nk, plan->M),
        array_out("dk", arrays->dk, plan, plan->Nk, plan->D),
    };

    /* Before forward's arrays: the dot product has no y and puts dv there. */
    status = check_arrays(&input, 1, outputs, reads_keys(plan) ? 3 : 2, err);
    return status == TARN_OK ? tn_check_forward(plan, arrays, workspace, err) : status;
}

tarn_status tn_check_step(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                          void *state, const void *workspace, tarn_error *err)
{
    const tarn_status status = check_call(plan, arrays, workspace, err);

    if (status != TARN_OK)
        return status;
    if (!plan->kind->step)
        return tn_fail(err, TARN_EINVAL,
                       "attention: '%s' has no recurrent form and cannot step",
                       plan->kind->about.name);
    if (!plan->causal)
        return tn_fail(err, TARN_EINVAL, "attention: only a causal plan can step");
    if (arrays->key_lengths)
        return tn_fail(err, TARN_EINVAL, "key_lengths must be NULL for a step");
    if (!state || (uintptr_t)state % _Alignof(float) != 0)
        return tn_fail(err, TARN_EINVAL,
                       "state is %s; it must have %zu bytes, aligned as floats",
                       state ? "misaligned" : "NULL", plan->kind->state(plan));
    const struct tn_attention_call call = {.plan = plan, .arrays = arrays, .state = state};

    if (plan->kind->cached && plan->kind->cached(&call) >= plan->Nk)
        return tn_fail(err, TARN_EINVAL,
                       "state is full: it has %zu positions, as many as the plan has keys",
                       plan->Nk);
    const struct array inputs[] = {
        array_in("q", arrays->q, plan, 1, plan->D),
        array_in("k", arrays->k, plan, 1, plan->D),
        array_in("v", arrays->v, plan, 1, plan->M),
    };
    const struct array output = array_out("y", arrays->y, plan, 1, plan->M);

    return check_arrays(inputs, 3, &output, 1, err);
}
