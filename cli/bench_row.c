/* SPDX-License-Identifier: MIT */
#include "bench_row.h"

#include <math.h>
#include <stdlib.h>

#include "bench_memory.h"
#include "stopwatch.h"

static const double enough_seconds = 1.0; /* of runs, when --repeat leaves it open */
static const double long_run = 10.0;      /* seconds: two such runs are enough */

enum { RUNS_MIN = 3, LONG_RUNS_MIN = 2 };

/* Floats between arrays, an odd number of cache lines: lengths are powers of two, and without
 * this the same position of every array would fall into the same set of every cache. */
enum { GAP = 65 * 16, ARRAYS = 2 * (TARN_ATTENTION_INPUTS + 1) };

/* Arrays of one row, one after the other in one block. */
struct memory {
    float *block;
    void *saved, *work;
    tarn_attention_arrays arrays;
};

/* ---- sizes -------------------------------------------------------------- */

static size_t width_of(const tarn_attention_desc *desc, const tarn_attention_input *input)
{
    return input->width == TARN_QUERY_WIDTH   ? desc->query_width
           : input->width == TARN_VALUE_WIDTH ? desc->value_width
                                              : 1;
}

/* Inputs and y, and as much again for gradients. */
size_t bench_row_array_bytes(const struct bench_row *row)
{
    const tarn_attention_desc *const d = &row->desc;
    double width = (double)d->value_width;

    for (const tarn_attention_input *in = tarn_attention_inputs(d->kind); in && in->name; in++)
        width += (double)width_of(d, in);
    const double bytes = (row->forward_only ? 1.0 : 2.0) * (double)d->batch *
                         (double)d->queries * (double)d->heads * width * (double)sizeof(float);

    /* Below 2^53 a double counts exactly. */
    return bytes < 0x1p53 ? (size_t)bytes : SIZE_MAX;
}

tarn_status bench_row_measure_sizes(struct bench_row *row, tarn_error *err)
{
    tarn_attention *attention;
    const tarn_status status = tarn_attention_create(&attention, &row->desc, err);

    if (status != TARN_OK)
        return status;
    const size_t saved = row->forward_only ? 0 : tarn_attention_saved_size(attention);
    const size_t work = tarn_attention_workspace_size(attention);

    row->array_bytes = bench_row_array_bytes(row);
    row->extra_bytes = saved > SIZE_MAX - work ? SIZE_MAX : saved + work;
    row->flops = tarn_attention_forward_flops(attention) +
                 (row->forward_only ? 0.0 : tarn_attention_backward_flops(attention));
    tarn_attention_free(attention);
    return TARN_OK;
}

/* ---- memory ------------------------------------------------------------- */

/* The sum of four uniform 16-bit numbers, scaled to variance 1: normal enough, and fast. */
static float draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    const uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48);

    return ((float)sum / 65536.0f - 2.0f) * 1.7320508f;
}

static tarn_output lay_out(const struct bench_row *row, float **at, size_t width)
{
    const tarn_attention_desc *const d = &row->desc;
    const ptrdiff_t N = (ptrdiff_t)d->queries, H = (ptrdiff_t)d->heads, W = (ptrdiff_t)width;
    float *const data = *at;

    *at += d->batch * d->queries * d->heads * width + GAP;
    return row->heads_first ? (tarn_output){data, H * N * W, W, N * W}
                            : (tarn_output){data, N * H * W, H * W, W};
}

static tarn_input as_input(tarn_output a)
{
    return (tarn_input){a.data, a.batch, a.position, a.head};
}

/* Inputs first, so that one loop fills them; returns where the outputs start. */
static float *lay_out_arrays(const struct bench_row *row, struct memory *memory)
{
    const tarn_attention_input *const in = tarn_attention_inputs(row->desc.kind);
    const size_t M = row->desc.value_width;
    tarn_attention_arrays *const a = &memory->arrays;
    float *at = memory->block;

    for (size_t i = 0; in[i].name; i++)
        a->in[i] = as_input(lay_out(row, &at, width_of(&row->desc, &in[i])));
    if (!row->forward_only)
        a->dy = as_input(lay_out(row, &at, M));
    float *const outputs = at;

    a->y = lay_out(row, &at, M);
    for (size_t i = 0; in[i].name && !row->forward_only; i++)
        a->din[i] = lay_out(row, &at, width_of(&row->desc, &in[i]));
    return outputs;
}

static void memory_clear(struct memory *memory)
{
    free(memory->block);
    free(memory->saved);
    free(memory->work);
}

static tarn_status memory_init(struct memory *memory, const struct bench_row *row,
                               const tarn_attention *attention, tarn_error *err)
{
    uint64_t state = row->desc.seed;

    *memory = (struct memory){
        .block = bench_block_new(row->array_bytes + ARRAYS * GAP * sizeof(float)),
        .saved =
            row->forward_only ? NULL : bench_block_new(tarn_attention_saved_size(attention)),
        .work = bench_block_new(tarn_attention_workspace_size(attention)),
    };
    if (!memory->block || !memory->work || (!memory->saved && !row->forward_only))
        return bench_no_memory(err, "the %zu bytes of %s at length %zu",
                               bench_row_peak_bytes(row), row->label, row->desc.queries);
    const float *const outputs = lay_out_arrays(row, memory);
    for (float *x = memory->block; x < outputs; x++)
        *x = draw(&state);
    return TARN_OK;
}

/* ---- time --------------------------------------------------------------- */

static tarn_status run_once(struct bench_row *row, const tarn_attention *attention,
                            const struct memory *memory, double *seconds, tarn_error *err)
{
    const double start = stopwatch_seconds();
    tarn_status status =
        tarn_attention_forward(attention, &memory->arrays, memory->saved, memory->work, err);
    const double middle = stopwatch_seconds();

    if (status == TARN_OK && !row->forward_only)
        status = tarn_attention_backward(attention, &memory->arrays, memory->saved,
                                         memory->work, err);
    const double end = stopwatch_seconds();

    row->forward_s = fmin(row->forward_s, middle - start); /* of NAN and a number, the number */
    if (!row->forward_only)
        row->backward_s = fmin(row->backward_s, end - middle);
    *seconds = end - start;
    return status;
}

/* The fastest of several runs: noise only ever slows one down. */
static tarn_status run_often(struct bench_row *row, const tarn_attention *attention,
                             const struct memory *memory, tarn_error *err)
{
    double total = 0.0, seconds = 0.0;
    tarn_status status = TARN_OK;
    bool enough = false;

    for (size_t runs = 1; status == TARN_OK && !enough; runs++) {
        status = run_once(row, attention, memory, &seconds, err);
        total += seconds;
        if (row->repeat > 0)
            enough = runs >= row->repeat;
        else
            enough = total >= enough_seconds &&
                     runs >= (seconds > long_run ? LONG_RUNS_MIN : RUNS_MIN);
    }
    return status;
}

tarn_status bench_row_run(struct bench_row *row, tarn_error *err)
{
    tarn_attention *attention;
    struct memory memory = {0};
    tarn_status status = tarn_attention_create(&attention, &row->desc, err);

    if (status == TARN_OK)
        status = memory_init(&memory, row, attention, err);
    if (status == TARN_OK)
        status = run_often(row, attention, &memory, err);
    memory_clear(&memory);
    tarn_attention_free(attention);
    return status;
}

/* ---- derived ------------------------------------------------------------ */

double bench_row_seconds(const struct bench_row *row)
{
    return row->forward_s + (row->forward_only ? 0.0 : row->backward_s);
}

double bench_row_gflops(const struct bench_row *row)
{
    return row->flops > 0.0 ? 1e-9 * row->flops / bench_row_seconds(row) : (double)NAN;
}

double bench_row_us_per_token(const struct bench_row *row)
{
    return 1e6 * bench_row_seconds_per_sample(row) / (double)row->desc.queries;
}

double bench_row_seconds_per_sample(const struct bench_row *row)
{
    return bench_row_seconds(row) / (double)row->desc.batch;
}

size_t bench_row_peak_bytes(const struct bench_row *row)
{
    return row->extra_bytes > SIZE_MAX - row->array_bytes ? SIZE_MAX
                                                          : row->array_bytes + row->extra_bytes;
}

double bench_row_bytes_per_sample(const struct bench_row *row)
{
    return (double)bench_row_peak_bytes(row) / (double)row->desc.batch;
}
