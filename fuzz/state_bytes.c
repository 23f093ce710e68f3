/* SPDX-License-Identifier: MIT */
/* state_bytes.c - whatever stands in saved streams must end in streams that step on to finite
 * outputs, and are packed to the same again, or in a sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzzing.h"
#include "tarn/tarn.h"

enum { STREAMS = 2, LONGEST = 24 };

static tarn_model *model;
static tarn_engine *engine;
static tarn_stream *streams[STREAMS];
static float *outputs;
static struct base base;

static void make_model(void)
{
    static const char *const small[] = {"layers", "1", "heads",   "1",  "width", "4",
                                        "feed",   "4", "symbols", "11", NULL};
    tarn_config config;

    need(tarn_config_preset(&config, "tiny", NULL) == TARN_OK);
    for (size_t i = 0; small[i]; i += 2)
        need(tarn_config_set(&config, small[i], small[i + 1], NULL) == TARN_OK);
    need(tarn_model_create(&model, &config, NULL, NULL) == TARN_OK);
}

static void make(void)
{
    const tarn_engine_desc desc = {.longest = LONGEST, .capacity = STREAMS, .host.threads = 1};
    const int32_t symbols[STREAMS] = {3, 4};

    make_model();
    need(tarn_engine_create(&engine, model, &desc, NULL) == TARN_OK);
    outputs = calloc(STREAMS * tarn_model_outputs(model), sizeof *outputs);
    need(outputs != NULL);
    for (size_t i = 0; i < STREAMS; i++)
        need(tarn_stream_create(&streams[i], engine, NULL) == TARN_OK);
    need(tarn_engine_step(engine, streams, outputs, symbols, STREAMS, NULL) == TARN_OK);
    need(tarn_engine_draw(engine, streams, NULL, outputs, STREAMS, NULL) == TARN_OK);
    need(tarn_streams_pack(engine, NULL, &base.size, streams, STREAMS, NULL) == TARN_OK);
    base.data = malloc(base.size);
    need(base.data &&
         tarn_streams_pack(engine, base.data, &base.size, streams, STREAMS, NULL) == TARN_OK);
}

/* States that were edited may be huge; then a step says so. */
static void step(void)
{
    const int32_t symbols[STREAMS] = {1, 2};
    tarn_error err = {TARN_OK, ""};

    if (tarn_engine_step(engine, streams, outputs, symbols, STREAMS, &err) != TARN_OK)
        need_text(&err);
}

static void pack_again(void)
{
    size_t size = 0;

    need(tarn_streams_pack(engine, NULL, &size, streams, STREAMS, NULL) == TARN_OK);
    uint8_t *const bytes = malloc(size);

    need(bytes && tarn_streams_pack(engine, bytes, &size, streams, STREAMS, NULL) == TARN_OK);
    need(tarn_streams_unpack(engine, streams, STREAMS, bytes, size, NULL) == TARN_OK);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tarn_error err = {TARN_OK, ""};
    uint8_t *const copy = malloc(size + 1);

    if (!engine)
        make();
    need(copy != NULL);
    memcpy(copy, data, size);
    if (tarn_streams_unpack(engine, streams, STREAMS, copy, size, &err) == TARN_OK) {
        pack_again();
        step();
    } else {
        need_text(&err);
    }
    free(copy);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return mutate_safetensors(data, size, most, seed, &base);
}
