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
    tarn_generator *generator = NULL;
    tarn_sampler *sampler = NULL;
    void *state = NULL;
    int32_t symbol = 0; /* what is read first */
    const float *outputs;
    tarn_error err = {TARN_ENOMEM, "not enough memory"};
    const tarn_generator_desc desc = {.batch = 1, .longest = 64};
    const tarn_sampling sampling = {.temperature = 0.8, .top_k = 5, .seed = 7};

    tarn_status status = argc > 1 ? tarn_model_load(&model, argv[1], NULL, &err)
                                  : tarn_config_preset(&config, "tiny", &err);
    if (status == TARN_OK && !model)
        status = tarn_model_create(&model, &config, NULL, &err);
    if (status == TARN_OK)
        status = tarn_generator_create(&generator, model, &desc, &err);
    if (status == TARN_OK)
        status = tarn_sampler_create(&sampler, model, &sampling, NULL, &err);
    if (status == TARN_OK && !(state = calloc(1, tarn_generator_state_size(generator))))
        status = TARN_ENOMEM;
    for (int i = 0; i < 64 && status == TARN_OK; i++) {
        status = tarn_generator_step(generator, state, &outputs, &symbol, &err);
        if (status == TARN_OK) {
            tarn_sampler_draw(sampler, &symbol, outputs, 1, tarn_state_position(state));
            printf("%d ", (int)symbol);
            fflush(stdout);
        }
    }
    printf("\n");
    if (status != TARN_OK)
        fprintf(stderr, "stream_tokens: %s\n", err.text);
    free(state);
    tarn_sampler_free(sampler);
    tarn_generator_free(generator);
    tarn_model_free(model);
    return status == TARN_OK ? 0 : 1;
}
