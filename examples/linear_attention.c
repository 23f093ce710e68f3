/* SPDX-License-Identifier: MIT */
/* linear_attention.c - causal linear attention on a program's own arrays, twice: a whole
 * sequence at once, and position by position from a state that does not grow. Both give the
 * same outputs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tarn/tarn.h>

/* Queries, keys and values lie in one matrix (B, N, 3, H, D). */
enum { B = 2, N = 1000, H = 4, D = 32, ROW = 3 * H * D };

static int fail(const tarn_error *err)
{
    fprintf(stderr, "linear_attention: %s\n", err->text);
    return 1;
}

/* Queries, keys or values of all positions from `first` on, within the one matrix. */
static tarn_input part(const float *qkv, int which, int first)
{
    return (tarn_input){qkv + first * ROW + which * H * D, N * ROW, ROW, D};
}

static tarn_output outputs(float *y, int first)
{
    return (tarn_output){y + first * H * D, N * H * D, H * D, D};
}

static tarn_attention_arrays arrays_from(const float *qkv, float *y, int first)
{
    return (tarn_attention_arrays){
        .in = {part(qkv, 0, first), part(qkv, 1, first), part(qkv, 2, first)},
        .y = outputs(y, first)};
}

int main(void)
{
    static float qkv[B * N * ROW], parallel[B * N * H * D], recurrent[B * N * H * D];
    const tarn_attention_desc desc = {.kind = "linear",
                                      .causal = true,
                                      .batch = B,
                                      .heads = H,
                                      .queries = N,
                                      .keys = N,
                                      .query_width = D,
                                      .value_width = D};
    tarn_attention *attention;
    tarn_error err = {TARN_ENOMEM, "not enough memory"};
    float largest = 0.0f;
    bool same = true;

    for (int i = 0; i < B * N * ROW; i++)
        qkv[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    if (tarn_attention_create(&attention, &desc, &err) != TARN_OK)
        return fail(&err);
    const size_t state_size = tarn_attention_state_size(attention);
    void *const work = malloc(tarn_attention_workspace_size(attention));
    char *const state = calloc(B, state_size); /* zeros are the start */
    void *const states[B] = {state, state + state_size};

    const tarn_attention_arrays all = arrays_from(qkv, parallel, 0);
    if (!work || !state || tarn_attention_forward(attention, &all, NULL, work, &err) != TARN_OK)
        return fail(&err);
    for (int n = 0; n < N; n++) {
        const tarn_attention_arrays one = arrays_from(qkv, recurrent, n);
        if (tarn_attention_step(attention, &one, states, B, work, &err) != TARN_OK)
            return fail(&err);
    }
    for (int i = 0; i < B * N * H * D; i++) {
        const float difference = fabsf(parallel[i] - recurrent[i]);
        largest = fmaxf(largest, difference);
        same = same && difference < 1e-5f; /* which NaN is not */
    }
    printf(
        "%d positions at once and one by one differ by %.1e at most; a state has %zu bytes\n",
        N, (double)largest, state_size);
    free(work);
    free(state);
    tarn_attention_free(attention);
    return same ? 0 : 1;
}
