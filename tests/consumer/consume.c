/* SPDX-License-Identifier: MIT */
/* consume.c - the installed library at work: a small model runs. */
#include <stdio.h>

#include "tarn/tarn.h"

int main(void)
{
    const tarn_run_desc desc = {.batch = 1, .length = 3, .host.threads = 1};
    const int32_t symbols[] = {1, 2, 3};
    const float *outputs;
    tarn_config config;
    tarn_model *model = NULL;
    tarn_run *run = NULL;
    tarn_error err;

    if (tarn_config_preset(&config, "tiny", &err) != TARN_OK ||
        tarn_model_create(&model, &config, NULL, &err) != TARN_OK ||
        tarn_run_create(&run, model, &desc, &err) != TARN_OK ||
        tarn_run_forward(run, &outputs, symbols, NULL, &err) != TARN_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%d.%d.%d %s %.6f\n", TARN_VERSION_MAJOR, TARN_VERSION_MINOR, TARN_VERSION_PATCH,
           tarn_version(), (double)outputs[0]);
    tarn_run_free(run);
    tarn_model_free(model);
    return 0;
}
