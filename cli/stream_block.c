/* SPDX-License-Identifier: MIT */
#include "stream_block.h"

#include <stdlib.h>
#include <string.h>

#include "bench_memory.h"
#include "hardware.h"

static void *block_new(size_t n, size_t size)
{
    return n <= hardware_memory() / size ? bench_block_new(n * size) : NULL;
}

tarn_status stream_block_open(struct stream_block *block, const tarn_model *model,
                              const tarn_engine_desc *desc, size_t n, tarn_error *err)
{
    tarn_engine_desc how = *desc;

    *block = (struct stream_block){.n = n, .width = tarn_model_outputs(model)};
    how.capacity = how.capacity ? how.capacity : n;
    const tarn_status status = tarn_engine_create(&block->engine, model, &how, err);

    if (status != TARN_OK)
        return status;
    block->size = tarn_stream_size(block->engine);
    block->memory = block_new(n, block->size);
    block->outputs = calloc(n * block->width, sizeof *block->outputs);
    block->at = calloc(n, sizeof(tarn_stream *));
    if (!block->memory || !block->outputs || !block->at)
        return bench_no_memory(err, "%zu streams of %zu bytes", n, block->size);
    for (size_t i = 0; i < n; i++)
        block->at[i] = (tarn_stream *)(void *)((char *)block->memory + i * block->size);
    return TARN_OK;
}

void stream_block_close(struct stream_block *block)
{
    free(block->at);
    free(block->outputs);
    free(block->memory);
    tarn_engine_free(block->engine, NULL);
    *block = (struct stream_block){0};
}

void stream_block_restart(struct stream_block *block)
{
    memset(block->memory, 0, block->n * block->size);
}

void stream_block_fork(struct stream_block *block, size_t to, size_t from)
{
    memcpy(block->at[to], block->at[from], block->size);
    memcpy(block->outputs + to * block->width, block->outputs + from * block->width,
           block->width * sizeof *block->outputs);
}

tarn_status stream_block_sampling(struct stream_block *block, const tarn_sampling *sampling,
                                  tarn_error *err)
{
    tarn_sampling numbered = *sampling;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < block->n && status == TARN_OK; i++, numbered.number++)
        status = tarn_stream_sampling(block->at[i], &numbered, err);
    return status;
}

tarn_status stream_block_step(struct stream_block *block, const int32_t *symbols,
                              tarn_error *err)
{
    return tarn_engine_step(block->engine, block->at, block->outputs, symbols, block->n, err);
}

tarn_status stream_block_draw(struct stream_block *block, int32_t *symbols, tarn_error *err)
{
    return tarn_engine_draw(block->engine, block->at, symbols, block->outputs, block->n, err);
}
