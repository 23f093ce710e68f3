/* SPDX-License-Identifier: MIT */
#include "state_size.h"

static size_t stream_bytes(const tarn_model *model, size_t longest)
{
    const tarn_engine_desc desc = {.capacity = 1, .longest = longest, .host.threads = 1};
    tarn_engine *engine;

    if (tarn_engine_create(&engine, model, &desc, NULL) != TARN_OK)
        return 0;
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
