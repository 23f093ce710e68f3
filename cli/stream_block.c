/* SPDX-License-Identifier: MIT */
#include "stream_block.h"

#include <stdlib.h>
#include <string.h>

#include "hardware.h"

struct stream_block stream_block_open(const tarn_model *model, const tarn_engine_desc *desc,
                                      size_t n)
{
    struct stream_block block = {.n = n, .width = tarn_model_outputs(model)};
    tarn_engine_desc how = *desc;

    how.capacity = how.capacity ? how.capacity : n;
    must(tarn_engine_create(&block.engine, model, &how, &failure));
    block.size = tarn_stream_size(block.engine);
    if (n <= hardware_memory() / block.size)
        block.memory = hardware_block(n * block.size);
    if (!block.memory)
        fail("not enough memory for %zu streams of %zu bytes", n, block.size);
    block.outputs = allocate(n * block.width, sizeof *block.outputs, "%zu outputs", n);
    block.at = allocate(n, sizeof(tarn_stream *), "%zu streams", n);
    for (size_t i = 0; i < n; i++)
        block.at[i] = (tarn_stream *)(void *)((char *)block.memory + i * block.size);
    return block;
}

void stream_block_close(struct stream_block *block)
{
    free(block->at);
    free(block->outputs);
    free(block->memory);
    tarn_engine_free(block->engine, NULL);
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

void stream_block_sampling(struct stream_block *block, tarn_sampling sampling)
{
    for (size_t i = 0; i < block->n; i++, sampling.number++)
        must(tarn_stream_sampling(block->at[i], &sampling, &failure));
}

void stream_block_prefill(struct stream_block *block, size_t stream, const int32_t *symbols,
                          size_t count)
{
    must(tarn_engine_prefill(block->engine, block->at[stream],
                             block->outputs + stream * block->width, symbols, count, &failure));
}

void stream_block_step(struct stream_block *block, const int32_t *symbols)
{
    must(tarn_engine_step(block->engine, block->at, block->outputs, symbols, block->n,
                          &failure));
}

void stream_block_draw(struct stream_block *block, int32_t *symbols)
{
    must(tarn_engine_draw(block->engine, block->at, symbols, block->outputs, block->n,
                          &failure));
}

tarn_sampling sampling_of(const struct sampling_options *o)
{
    if (o->top_p <= 0.0)
        refuse("--top-p is 0; it must be above 0 and at most 1");
    return (tarn_sampling){
        .temperature = o->temperature,
        .top_k = o->top_k,
        .top_p = o->top_p,
        .greedy = o->greedy || o->temperature <= 0.0,
        .seed = o->seed,
    };
}

/* ---- Size --------------------------------------------------------------- */

static size_t stream_bytes(const tarn_model *model, size_t longest)
{
    const tarn_engine_desc desc = {.capacity = 1, .longest = longest, .host.threads = 1};
    tarn_engine *engine;

    const tarn_status status = tarn_engine_create(&engine, model, &desc, &failure);

    if (status == TARN_EINVAL)
        return 0; /* it cannot generate */
    if (status != TARN_OK)
        fail("%s", failure.text);
    const size_t bytes = tarn_stream_size(engine);

    tarn_engine_free(engine, NULL);
    return bytes;
}

/* States grow by the same at every position, or not at all. Learned positions may end early, so
 * the lengths to compare are the first two. The size of one that does not grow is that of a
 * stream without end; a short stream may need half of it. */
struct state_size state_size(const tarn_model *model)
{
    const size_t one = stream_bytes(model, 1), two = stream_bytes(model, 2);
    const size_t each = tarn_model_config(model)->positions == 1 ? 0 : two - one;

    return each > 0 || one == 0 ? (struct state_size){one > 0, one - each, each}
                                : (struct state_size){true, stream_bytes(model, 0), 0};
}
