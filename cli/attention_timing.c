/* SPDX-License-Identifier: MIT */
#include "attention_timing.h"

#include <math.h>
#include <stdlib.h>

static const double enough_seconds = 1.0; /* of runs, when --repeat leaves it open */
static const double long_run = 10.0;      /* seconds: two such runs are enough */

enum { RUNS_MIN = 3, LONG_RUNS_MIN = 2 };

/* Floats between arrays, an odd number of cache lines: lengths are powers of two, and without
 * this the same position of every array would fall into the same set of every cache. */
enum { GAP = 65 * 16, ARRAYS = 2 * (TARN_ATTENTION_INPUTS + 1) };

/* Arrays, one after the other in one block. */
struct memory {
    float *block;
    void *saved, *work;
    tarn_attention_arrays arrays;
};

/* ---- Sizes -------------------------------------------------------------- */

static size_t width_of(const tarn_attention_desc *desc, const tarn_attention_input *input)
{
    return input->width == TARN_QUERY_WIDTH   ? desc->query_width
           : input->width == TARN_VALUE_WIDTH ? desc->value_width
                                              : 1;
}

/* Inputs and y, and as much again for gradients. */
size_t attention_timing_array_bytes(const struct attention_timing *t)
{
    const tarn_attention_desc *const d = &t->desc;
    double width = (double)d->value_width;

    for (const tarn_attention_input *in = tarn_attention_inputs(d->kind); in && in->name; in++)
        width += (double)width_of(d, in);
    const double bytes = (t->forward_only ? 1.0 : 2.0) * (double)d->batch * (double)d->queries *
                         (double)d->heads * width * (double)sizeof(float);

    /* Below 2^53 a double counts exactly. */
    return bytes < 0x1p53 ? (size_t)bytes : SIZE_MAX;
}

tarn_status attention_timing_plan(struct attention_timing *t, tarn_error *err)
{
    tarn_attention *attention;
    const tarn_status status = tarn_attention_create(&attention, &t->desc, err);

    if (status != TARN_OK)
        return status;
    const size_t saved = t->forward_only ? 0 : tarn_attention_saved_size(attention);
    const size_t work = tarn_attention_workspace_size(attention);

    t->array_bytes = attention_timing_array_bytes(t);
    t->extra_bytes = saved > SIZE_MAX - work ? SIZE_MAX : saved + work;
    t->flops = tarn_attention_forward_flops(attention) +
               (t->forward_only ? 0.0 : tarn_attention_backward_flops(attention));
    tarn_attention_free(attention);
    return TARN_OK;
}

/* ---- Memory ------------------------------------------------------------- */

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

static tarn_output lay_out(const struct attention_timing *t, float **at, size_t width)
{
    const tarn_attention_desc *const d = &t->desc;
    const ptrdiff_t N = (ptrdiff_t)d->queries, H = (ptrdiff_t)d->heads, W = (ptrdiff_t)width;
    float *const data = *at;

    *at += d->batch * d->queries * d->heads * width + GAP;
    return t->heads_first ? (tarn_output){data, H * N * W, W, N * W}
                          : (tarn_output){data, N * H * W, H * W, W};
}

static tarn_input as_input(tarn_output a)
{
    return (tarn_input){a.data, a.batch, a.position, a.head};
}

/* Inputs first, so that one loop fills them; returns where the outputs start. */
static float *lay_out_arrays(const struct attention_timing *t, struct memory *memory)
{
    const tarn_attention_input *const in = tarn_attention_inputs(t->desc.kind);
    const size_t M = t->desc.value_width;
    tarn_attention_arrays *const a = &memory->arrays;
    float *at = memory->block;

    for (size_t i = 0; in[i].name; i++)
        a->in[i] = as_input(lay_out(t, &at, width_of(&t->desc, &in[i])));
    if (!t->forward_only)
        a->dy = as_input(lay_out(t, &at, M));
    float *const outputs = at;

    a->y = lay_out(t, &at, M);
    for (size_t i = 0; in[i].name && !t->forward_only; i++)
        a->din[i] = lay_out(t, &at, width_of(&t->desc, &in[i]));
    return outputs;
}

/* Inputs with an activation have numbers such as it gives. */
static void activate(const struct attention_timing *t, struct memory *memory)
{
    const tarn_attention_desc *const d = &t->desc;
    const tarn_attention_input *const in = tarn_attention_inputs(d->kind);

    for (size_t i = 0; in[i].name; i++)
        for (size_t e = 0; in[i].activation == TARN_INPUT_SIGMOID &&
                           e < d->batch * d->queries * d->heads * width_of(d, &in[i]);
             e++) {
            float *const x = memory->block + (memory->arrays.in[i].data - memory->block) + e;

            *x = 1.0f / (1.0f + expf(-*x));
        }
}

static struct memory memory_new(const struct attention_timing *t,
                                const tarn_attention *attention)
{
    uint64_t state = t->desc.seed;
    struct memory memory = {
        .block = hardware_block(t->array_bytes + ARRAYS * GAP * sizeof(float)),
        .saved = t->forward_only ? NULL : hardware_block(tarn_attention_saved_size(attention)),
        .work = hardware_block(tarn_attention_workspace_size(attention)),
    };

    if (!memory.block || !memory.work || (!memory.saved && !t->forward_only))
        fail("not enough memory for the %zu bytes of %s at length %zu",
             attention_timing_peak_bytes(t), t->label, t->desc.queries);
    const float *const outputs = lay_out_arrays(t, &memory);

    for (float *x = memory.block; x < outputs; x++)
        *x = draw(&state);
    activate(t, &memory);
    return memory;
}

/* ---- Time --------------------------------------------------------------- */

/* Returns the seconds. */
static double run_once(struct attention_timing *t, const tarn_attention *attention,
                       const struct memory *memory)
{
    const tarn_attention_arrays *const arrays = &memory->arrays;
    const double start = seconds_now();

    must(tarn_attention_forward(attention, arrays, memory->saved, memory->work, &failure));
    const double middle = seconds_now();

    t->forward_s = fmin(t->forward_s, middle - start); /* of NAN and a number, the number */
    if (t->forward_only)
        return middle - start;
    must(tarn_attention_backward(attention, arrays, memory->saved, memory->work, &failure));
    const double end = seconds_now();

    t->backward_s = fmin(t->backward_s, end - middle);
    return end - start;
}

/* The fastest of several runs: noise only ever slows one down. */
void attention_timing_run(struct attention_timing *t)
{
    tarn_attention *attention;
    double total = 0.0;
    bool enough = false;

    must(tarn_attention_create(&attention, &t->desc, &failure));
    struct memory memory = memory_new(t, attention);

    for (size_t runs = 1; !enough; runs++) {
        const double seconds = run_once(t, attention, &memory);

        total += seconds;
        if (t->repeat > 0)
            enough = runs >= t->repeat;
        else
            enough = total >= enough_seconds &&
                     runs >= (seconds > long_run ? LONG_RUNS_MIN : RUNS_MIN);
    }
    free(memory.block);
    free(memory.saved);
    free(memory.work);
    tarn_attention_free(attention);
}

/* ---- Derived ------------------------------------------------------------ */

double attention_timing_seconds(const struct attention_timing *t)
{
    return t->forward_s + (t->forward_only ? 0.0 : t->backward_s);
}

size_t attention_timing_peak_bytes(const struct attention_timing *t)
{
    return t->extra_bytes > SIZE_MAX - t->array_bytes ? SIZE_MAX
                                                      : t->array_bytes + t->extra_bytes;
}

/* ---- The demonstration -------------------------------------------------- */

const char demo_methods[] = "softmax;softmax-stored;linear";

enum { TILED, STORED, LINEAR, METHODS };

static void print_head(const struct bench_run *run)
{
    printf("%s:\none sequence on %zu thread%s of %s.\n\n", run->title, run->threads,
           plural(run->threads), run->processor);
    printf("%8s | %21s | %21s | %21s | %s\n", "", "softmax, stored  ", "softmax, tiled   ",
           "linear        ", "   linear is");
    printf("%8s | %10s %10s | %10s %10s | %10s %10s | %9s %9s\n", "length", "time", "memory",
           "time", "memory", "time", "memory", "faster", "smaller");
    printf("---------+-----------------------+-----------------------+-----------------------+"
           "--------------------\n");
}

static void print_method(const struct attention_timing *t)
{
    char memory[32];

    words_bytes(memory, sizeof memory, (double)attention_timing_peak_bytes(t));
    if (t->skipped)
        printf(" %10s %10s |", "-", memory);
    else
        printf(" %7.1f ms %10s |", 1e3 * attention_timing_seconds(t), memory);
}

/* Faster than the faster softmax, smaller than the one that stores its matrix. */
void demo_put(const struct bench_run *run, const struct attention_timing *t)
{
    const size_t index = bench_case_index(run, t);
    const struct attention_timing *const methods = t - LINEAR;

    if (index == 0)
        print_head(run);
    if (index % METHODS != LINEAR)
        return;
    printf("%8zu |", t->desc.queries);
    print_method(&methods[STORED]);
    print_method(&methods[TILED]);
    print_method(t);
    printf(" %8.1fx %8.1fx\n",
           attention_timing_seconds(&methods[TILED]) / attention_timing_seconds(t),
           (double)attention_timing_peak_bytes(&methods[STORED]) /
               (double)attention_timing_peak_bytes(t));
    fflush(stdout);
}
