/* SPDX-License-Identifier: MIT */
#include "support/attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ------------------------------------------------------------ */

static struct tensor sizes_of(const tarn_attention_desc *desc, enum array array)
{
    const bool of_keys = array == K || array == V || array == DK || array == DV;
    const bool of_queries = array == Q || array == K || array == DQ || array == DK;

    return (struct tensor){.B = desc->batch,
                           .n = of_keys ? desc->keys : desc->queries,
                           .H = desc->heads,
                           .width = of_queries ? desc->query_width : desc->value_width};
}

static float draw_entry(const struct attention_case *is, enum array array,
                        struct tn_random *random)
{
    const double x = tn_random_normal(random);

    if (array != Q && array != K)
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
            tensor_row_at(t, r)[e] = draw_entry(&run->is, array, &random);
}

void run_open(struct attention_run *run, const struct attention_case *is)
{
    tarn_error err = {0};

    *run = (struct attention_run){.is = *is};
    check_ok(tarn_attention_create(&run->plan, &is->desc, &err), &err);
    for (size_t a = 0; a < ARRAYS; a++)
        run->tensors[a] = sizes_of(&is->desc, (enum array)a);
    run->inputs = pool_open(&run->tensors[Q], 4, is->layout);
    run->outputs = pool_open(&run->tensors[Y], 4, is->layout_out);
    for (size_t a = Q; a <= DY; a++)
        draw_tensor(run, (enum array)a);
    run->saved = block_open(tarn_attention_saved_size(run->plan), 3, 0xff);
    run->work = block_open(tarn_attention_workspace_size(run->plan), 61, 0xff);
    run->state = block_open(tarn_attention_state_size(run->plan), sizeof(float), 0);
}

void run_close(struct attention_run *run)
{
    tarn_attention_free(run->plan);
    pool_close(&run->inputs);
    pool_close(&run->outputs);
    block_close(&run->saved);
    block_close(&run->work);
    block_close(&run->state);
}

/* ---- Calls -------------------------------------------------------------- */

bool run_uses(const struct attention_run *run, enum array array)
{
    return !run->is.shares_keys || (array != K && array != DK);
}

static tarn_output output_of(const struct attention_run *run, enum array array)
{
    const struct tensor *const t = &run->tensors[array];

    return run_uses(run, array) ? (tarn_output){t->data, t->batch, t->position, t->head}
                                : (tarn_output){0};
}

static tarn_input input_of(const struct attention_run *run, enum array array)
{
    const tarn_output out = output_of(run, array);

    return (tarn_input){out.data, out.batch, out.position, out.head};
}

tarn_attention_arrays run_arrays(const struct attention_run *run)
{
    return (tarn_attention_arrays){
        .q = input_of(run, Q),
        .k = input_of(run, K),
        .v = input_of(run, V),
        .y = output_of(run, Y),
        .dy = input_of(run, DY),
        .dq = output_of(run, DQ),
        .dk = output_of(run, DK),
        .dv = output_of(run, DV),
        .key_lengths = run->is.has_lengths ? run->is.lengths : NULL,
    };
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

    arrays.q.data = tensor_row(&run->tensors[Q], 0, n, 0);
    arrays.k.data = tensor_row(&run->tensors[K], 0, n, 0);
    arrays.v.data = tensor_row(&run->tensors[V], 0, n, 0);
    arrays.y.data = tensor_row(&run->tensors[Y], 0, n, 0);
    check_ok(tarn_attention_step(run->plan, &arrays, run->state.bytes, run->work.bytes, &err),
             &err);
    check_guards(run);
}

/* ---- Comparisons -------------------------------------------------------- */

static const char *const array_names[ARRAYS] = {"q", "k", "v", "dy", "y", "dq", "dk", "dv"};

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
        (int)run->is.layout_out, desc->threads, desc->cpu ? desc->cpu : "best");
    return name;
}

static enum array last_array(bool gradients)
{
    return gradients ? DV : Y;
}

void check_same(const struct attention_run *a, const struct attention_run *b, bool gradients)
{
    for (size_t i = Y; i <= last_array(gradients); i++) {
        const struct tensor *const x = &a->tensors[i], *const z = &b->tensors[i];

        if (!run_uses(a, (enum array)i))
            continue;
        assert_int_equal(tensor_count(x), tensor_count(z));
        for (size_t r = 0; r < tensor_rows(x); r++)
            if (memcmp(tensor_row_at(x, r), tensor_row_at(z, r), x->width * sizeof(float)) != 0)
                fail_msg("%s: %s differs in row %zu", run_name(a), array_names[i], r);
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

/* Where a query sees little but one key, dq and dk are differences of large numbers: sums of M
 * products. */
static double cancelled(const struct attention_run *run, enum array array)
{
    const double root = 0.3 * sqrt((double)run->is.desc.value_width);

    return array == DQ   ? root * rms_of(&run->tensors[DY])
           : array == DK ? root * rms_of(&run->tensors[DV])
                         : 0.0;
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
                         array_names[array], r, e, x, z, scale);
        }
}

void check_close(const struct attention_run *a, const struct attention_run *b, bool gradients,
                 double tolerance)
{
    for (size_t i = Y; i <= last_array(gradients); i++) {
        const size_t count = tensor_count(&b->tensors[i]);

        if (!run_uses(a, (enum array)i))
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

        if (!run_uses(run, (enum array)i))
            continue;
        for (size_t r = 0; r < tensor_rows(t); r++)
            for (size_t e = 0; e < t->width; e++)
                if (!isfinite(tensor_row_at(t, r)[e]))
                    fail_msg("%s: %s[%zu][%zu] is %g", run_name(run), array_names[i], r, e,
                             (double)tensor_row_at(t, r)[e]);
    }
}
