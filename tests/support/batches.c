/* SPDX-License-Identifier: MIT */
#include "support/batches.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct owned_batch batch_open(size_t B, size_t N)
{
    struct owned_batch owned = {0};
    struct tn_arena arena = tn_arena_over(NULL);

    tn_batch_lay_out(&owned.batch, B, N, &arena);
    owned.bytes = tn_arena_bytes(&arena);
    owned.memory = take(owned.bytes, 1);
    arena = tn_arena_over(owned.memory);
    tn_batch_lay_out(&owned.batch, B, N, &arena);
    batch_spoil(&owned);
    return owned;
}

struct owned_batch batch_of_task(const tarn_task *task, size_t B)
{
    struct owned_batch owned = {0};
    struct tn_arena arena = tn_arena_over(NULL);

    tn_task_lay_out(task, &owned.batch, B, &arena);
    owned.bytes = tn_arena_bytes(&arena);
    owned.memory = take(owned.bytes, 1);
    batch_spoil(&owned);
    arena = tn_arena_over(owned.memory);
    tn_task_lay_out(task, &owned.batch, B, &arena);
    return owned;
}

void batch_close(struct owned_batch *owned)
{
    free(owned->memory);
}

void batch_spoil(struct owned_batch *owned)
{
    memset(owned->memory, 0xa5, owned->bytes);
}

static size_t sum_of(const size_t *counts, size_t n)
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static bool frames_equal(const struct tn_batch *a, const struct tn_batch *b)
{
    return a->B == b->B && a->length == b->length &&
           memcmp(a->lengths, b->lengths, a->B * sizeof *a->lengths) == 0 &&
           memcmp(a->counts, b->counts, a->B * sizeof *a->counts) == 0 &&
           memcmp(a->weights, b->weights, a->B * sizeof *a->weights) == 0 &&
           memcmp(a->targets, b->targets, sum_of(a->counts, a->B) * sizeof *a->targets) == 0 &&
           memcmp(a->frames, b->frames, a->B * a->length * 40 * sizeof *a->frames) == 0;
}

bool batch_equal(const struct tn_batch *a, const struct tn_batch *b)
{
    const size_t cells = a->B * a->N;

    if (a->frames)
        return frames_equal(a, b);
    return a->B == b->B && a->N == b->N &&
           memcmp(a->inputs, b->inputs, cells * sizeof *a->inputs) == 0 &&
           memcmp(a->targets, b->targets, cells * sizeof *a->targets) == 0 &&
           memcmp(a->weights, b->weights, cells * sizeof *a->weights) == 0;
}

static size_t frames_check(const struct tn_batch *batch, size_t symbols)
{
    size_t counted = 0;

    assert_true(batch->length >= 1 && batch->length <= batch->N);
    for (size_t i = 0; i < batch->B * batch->length * 40; i++)
        assert_true(isfinite(batch->frames[i]));
    for (size_t i = 0; i < sum_of(batch->counts, batch->B); i++)
        assert_true(batch->targets[i] > 0 && (size_t)batch->targets[i] < symbols);
    for (size_t b = 0; b < batch->B; b++) {
        assert_true(batch->lengths[b] <= batch->length);
        assert_true(batch->weights[b] == (batch->lengths[b] > 0 ? 1.0f : 0.0f));
        counted += batch->lengths[b] > 0;
    }
    return counted;
}

size_t batch_check(const struct tn_batch *batch, size_t symbols)
{
    size_t counted = 0;

    if (batch->frames)
        return frames_check(batch, symbols);
    for (size_t i = 0; i < batch->B * batch->N; i++) {
        assert_true(batch->inputs[i] >= 0 && (size_t)batch->inputs[i] < symbols);
        assert_true(batch->targets[i] >= 0 && (size_t)batch->targets[i] < symbols);
        assert_true(batch->weights[i] == 0.0f || batch->weights[i] == 1.0f);
        counted += batch->weights[i] == 1.0f;
    }
    return counted;
}

void batch_fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                uint64_t index)
{
    tarn_error err;

    check_ok(tn_task_fill(task, batch, split, index, &err), &err);
}
