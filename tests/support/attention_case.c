/* SPDX-License-Identifier: MIT */
#include "support/attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------ */

enum array run_gradient(size_t i)
{
    return (enum array)(DQ + i);
}

/* The input that an array is, or is the gradient of; NULL: y or dy, or none. */
static const tarn_attention_input *input_at(const struct attention_run *run, enum array array)
{
    const size_t i = array < DY ? (size_t)array : (size_t)array - DQ;

    return array != DY && array != Y && i < run->in_count ? &run->in[i] : NULL;
}

static struct tensor sizes_of(const struct attention_run *run, enum array array)
{
    const tarn_attention_desc *const desc = &run->is.desc;
    const tarn_attention_input *const in = input_at(run, array);
    struct tensor t = {
        .B = desc->batch, .n = desc->queries, .H = desc->heads, .width = desc->value_width};

    if (in) {
        t.B = in->parameter ? 1 : desc->batch;
        t.n = in->parameter ? 1 : in->at_keys && !desc->causal ? desc->keys : desc->queries;
        t.width = in->width == TARN_QUERY_WIDTH   ? desc->query_width
                  : in->width == TARN_VALUE_WIDTH ? desc->value_width
                                                  : 1;
    } else if (array != DY && array != Y) {
        t = (struct tensor){0};
    }
    return t;
}

static float draw_entry(const struct attention_run *run, enum array array,
                        struct tn_random *random)
{
    const tarn_attention_input *const in = input_at(run, array);
    const struct attention_case *const is = &run->is;
    const double x = tn_random_normal(random);

    if (in && in->activation == TARN_INPUT_SIGMOID)
        return (float)(1.0 / (1.0 + exp(-x)));
    if (!in || in->width != TARN_QUERY_WIDTH)
        return (float)x;
    if (is->inputs == SMALL)
        return (float)(0.15 * x / sqrt((double)is->desc.query_width));
    return (float)((x < 0.0 && is->inputs == NORMAL ? -0.1 : 0.1) +
                   (is->inputs == POSITIVE ? fabs(x) : x));
}

static void draw_tensor(struct attention_run *run, enum array array)
{
    const struct tensor *const t = &run->tensors[array];
    struct tn_random random;

    tn_random_seed(&random, run->is.seed * ARRAYS + (uint64_t)array);
    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; e < t->width; e++)
            tensor_row_at(t, r)[e] = draw_entry(run, array, &random);
}

void run_open(struct attention_run *run, const struct attention_case *is)
{
    tarn_error err = {0};

    *run = (struct attention_run){.is = *is, .in = tarn_attention_inputs(is->desc.kind)};
    check_ok(tarn_attention_create(&run->plan, &is->desc, &err), &err);
    while (run->in[run->in_count].name)
        run->in_count++;
    for (size_t a = 0; a < ARRAYS; a++)
        run->tensors[a] = sizes_of(run, (enum array)a);
    run->inputs = pool_open(&run->tensors[Q], Y - Q, is->layout);
    run->outputs = pool_open(&run->tensors[Y], ARRAYS - Y, is->layout_out);
    for (size_t a = Q; a <= DY; a++)
        draw_tensor(run, (enum array)a);
    run->saved = block_open(tarn_attention_saved_size(run->plan), 3, 0xff);
    run->work = block_open(tarn_attention_workspace_size(run->plan), 61, 0xff);
    const size_t state = tarn_attention_state_size(run->plan);

    run->state = block_open(is->desc.batch * state, sizeof(float), 0);
    run->states = take(is->desc.batch, sizeof *run->states);
    for (size_t b = 0; b < is->desc.batch; b++)
        run->states[b] = run->state.bytes + b * state;
}

void run_close(struct attention_run *run)
{
    tarn_attention_free(run->plan);
    pool_close(&run->inputs);
    pool_close(&run->outputs);
    block_close(&run->saved);
    block_close(&run->work);
    block_close(&run->state);
    free(run->states);
}

/* ---- Calls -------------------------------------------------------------- */

static tarn_output output_of(const struct attention_run *run, enum array array)
{
    const struct tensor *const t = &run->tensors[array];

    return tensor_rows(t) > 0 ? (tarn_output){t->data, t->batch, t->position, t->head}
                              : (tarn_output){0};
}

static tarn_input input_of(const struct attention_run *run, enum array array)
{
    const tarn_output out = output_of(run, array);

    return (tarn_input){out.data, out.batch, out.position, out.head};
}

tarn_attention_arrays run_arrays(const struct attention_run *run)
{
    tarn_attention_arrays arrays = {
        .y = output_of(run, Y),
        .dy = input_of(run, DY),
        .key_lengths = run->is.has_lengths ? run->is.lengths : NULL,
    };

    for (size_t i = 0; i < run->in_count; i++) {
        arrays.in[i] = input_of(run, (enum array)i);
        arrays.din[i] = output_of(run, run_gradient(i));
    }
    return arrays;
}

static void check_guards(const struct attention_run *run)
{
    pool_check(&run->inputs, run_name(run));
    pool_check(&run->outputs, run_name(run));
    block_check(&run->saved, "saved");
    block_check(&run->work, "workspace");
    block_check(&run->state, "state");
}

void run_forward(struct attention_run *run)
{
    const tarn_attention_arrays arrays = run_arrays(run);
    tarn_error err = {0};

    check_ok(
        tarn_attention_forward(run->plan, &arrays, run->saved.bytes, run->work.bytes, &err),
        &err);
    check_guards(run);
}

void run_backward(struct attention_run *run)
{
    const tarn_attention_arrays arrays = run_arrays(run);
    tarn_error err = {0};

    check_ok(
        tarn_attention_backward(run->plan, &arrays, run->saved.bytes, run->work.bytes, &err),
        &err);
    check_guards(run);
}

void run_step(struct attention_run *run, size_t n)
{
    tarn_attention_arrays arrays = run_arrays(run);
    tarn_error err = {0};

    for (size_t i = 0; i < run->in_count; i++)
        arrays.in[i].data = tensor_row(&run->tensors[i], 0, run->in[i].parameter ? 0 : n, 0);
    arrays.y.data = tensor_row(&run->tensors[Y], 0, n, 0);
    check_ok(tarn_attention_step(run->plan, &arrays, run->states, run->is.desc.batch,
                                 run->work.bytes, &err),
             &err);
    check_guards(run);
}

/* ---- Comparisons -------------------------------------------------------- */

enum array run_input(const struct attention_run *run, const char *name)
{
    size_t i = 0;

    while (i < run->in_count && strcmp(run->in[i].name, name) != 0)
        i++;
    assert_true(i < run->in_count);
    return (enum array)i;
}

const char *run_array_name(const struct attention_run *run, enum array array)
{
    static char name[64];
    const tarn_attention_input *const in = input_at(run, array);

    if (!in)
        return array == DY ? "dy" : array == Y ? "y" : "none";
    snprintf(name, sizeof name, "%s%s", array < DY ? "" : "gradient of ", in->name);
    return name;
}

const char *run_name(const struct attention_run *run)
{
    static char name[256];
    const tarn_attention_desc *const desc = &run->is.desc;

    snprintf(
        name, sizeof name,
        "%s %s%s, B %zu H %zu N %zu Nk %zu D %zu M %zu%s, layouts %d %d, %zu threads, cpu %s",
        desc->kind, desc->feature_map ? desc->feature_map : "", desc->causal ? " causal" : "",
        desc->batch, desc->heads, desc->queries, desc->keys, desc->query_width,
        desc->value_width, run->is.has_lengths ? " padded" : "", (int)run->is.layout,
        (int)run->is.layout_out, desc->host.threads, desc->host.cpu ? desc->host.cpu : "best");
    return name;
}

static enum array last_array(bool gradients)
{
    return gradients ? ARRAYS - 1 : Y;
}

void check_same(const struct attention_run *a, const struct attention_run *b, bool gradients)
{
    for (size_t i = Y; i <= last_array(gradients); i++) {
        const struct tensor *const x = &a->tensors[i], *const z = &b->tensors[i];

        assert_int_equal(tensor_count(x), tensor_count(z));
        for (size_t r = 0; r < tensor_rows(x); r++)
            if (memcmp(tensor_row_at(x, r), tensor_row_at(z, r), x->width * sizeof(float)) != 0)
                fail_msg("%s: %s differs in row %zu", run_name(a),
                         run_array_name(a, (enum array)i), r);
    }
}

static double rms(const double *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum / (double)n);
}

static double rms_of(const struct tensor *t)
{
    double sum = 0.0;

    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; e < t->width; e++)
            sum += (double)tensor_row_at(t, r)[e] * (double)tensor_row_at(t, r)[e];
    return sqrt(sum / (double)tensor_count(t));
}

/* Where a query sees little but one key, gradients of queries and keys are differences of large
 * numbers: sums of M products. */
static double cancelled(const struct attention_run *run, enum array array)
{
    const double root = 0.3 * sqrt((double)run->is.desc.value_width);
    const tarn_attention_input *const in = input_at(run, array);
    const enum array dv = run_gradient(run_input(run, "value"));

    if (!in || in->width != TARN_QUERY_WIDTH)
        return 0.0;
    return root * rms_of(&run->tensors[in->at_keys ? dv : DY]);
}

void check_array_close(const struct attention_run *a, enum array array, const double *want,
                       double tolerance)
{
    const struct tensor *const t = &a->tensors[array];
    const double scale = rms(want, tensor_count(t)) + cancelled(a, array);

    for (size_t r = 0; r < tensor_rows(t); r++)
        for (size_t e = 0; e < t->width; e++) {
            const double x = (double)tensor_row_at(t, r)[e], z = want[r * t->width + e];

            if (!(fabs(x - z) <= tolerance * (fabs(z) + scale)))
                fail_msg("%s: %s[%zu][%zu] is %.9g, not %.9g; typical %.3g", run_name(a),
                         run_array_name(a, array), r, e, x, z, scale);
        }
}

void check_close(const struct attention_run *a, const struct attention_run *b, bool gradients,
                 double tolerance)
{
    for (size_t i = Y; i <= last_array(gradients); i++) {
        const size_t count = tensor_count(&b->tensors[i]);

        if (count == 0)
            continue;
        float *const copy = tensor_copy(&b->tensors[i]);
        double *const want = take(count, sizeof *want);

        for (size_t e = 0; e < count; e++)
            want[e] = (double)copy[e];
        check_array_close(a, (enum array)i, want, tolerance);
        free(copy);
        free(want);
    }
}

void check_linear_equals_kernel(struct attention_case is)
{
    struct attention_run linear, kernel;

    run_open(&linear, &is);
    is.desc.kind = "kernel";
    run_open(&kernel, &is);
    run_forward(&linear);
    run_forward(&kernel);
    run_backward(&linear);
    run_backward(&kernel);
    check_close(&linear, &kernel, true, 1e-4);
    run_close(&linear);
    run_close(&kernel);
}

void check_finite(const struct attention_run *run, bool gradients)
{
    for (size_t i = Y; i <= last_array(gradients); i++) {
        const struct tensor *const t = &run->tensors[i];

        for (size_t r = 0; r < tensor_rows(t); r++)
            for (size_t e = 0; e < t->width; e++)
                if (!isfinite(tensor_row_at(t, r)[e]))
                    fail_msg("%s: %s[%zu][%zu] is %g", run_name(run),
                             run_array_name(run, (enum array)i), r, e,
                             (double)tensor_row_at(t, r)[e]);
    }
}
