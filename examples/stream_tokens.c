/* SPDX-License-Identifier: MIT */
/* stream_tokens.c [MODEL] - a model as a recurrent network: symbol after symbol from a state
 * that does not grow. Without a file, a new model, which knows nothing. */
#include <stdio.h>
#include <stdlib.h>

#include <tarn/tarn.h>

int main(int argc, char **argv)
{
    tarn_config config;
    tarn_model *model = NULL;
    tarn_engine *engine = NULL;
    tarn_stream *stream = NULL;
    float *outputs = NULL;
    int32_t symbol = 0; /* what is read first */
    tarn_error err = {TARN_ENOMEM, "not enough memory"};
    const tarn_engine_desc desc = {.capacity = 1, .longest = 64};
    const tarn_sampling sampling = {.temperature = 0.8, .top_k = 5, .seed = 7};

    tarn_status status = argc > 1 ? tarn_model_load(&model, argv[1], NULL, &err)
                                  : tarn_config_preset(&config, "tiny", &err);
    if (status == TARN_OK && !model)
        status = tarn_model_create(&model, &config, NULL, &err);
    if (status == TARN_OK)
        status = tarn_engine_create(&engine, model, &desc, &err);
    if (status == TARN_OK)
        status = tarn_stream_create(&stream, engine, &err);
    if (status == TARN_OK)
        status = tarn_stream_sampling(stream, &sampling, &err);
    if (status == TARN_OK && !(outputs = malloc(tarn_model_outputs(model) * sizeof *outputs)))
        status = TARN_ENOMEM;
    for (int i = 0; i < 64 && status == TARN_OK; i++) {
        status = tarn_engine_step(engine, &stream, outputs, &symbol, 1, &err);
        if (status == TARN_OK)
            status = tarn_engine_draw(engine, &stream, &symbol, outputs, 1, &err);
        if (status == TARN_OK) {
            printf("%d ", (int)symbol);
            fflush(stdout);
        }
    }
    printf("\n");
    if (status != TARN_OK)
        fprintf(stderr, "stream_tokens: %s\n", err.text);
    free(outputs);
    tarn_stream_free(stream);
    tarn_engine_free(engine, NULL);
    tarn_model_free(model);
    return status == TARN_OK ? 0 : 1;
}
