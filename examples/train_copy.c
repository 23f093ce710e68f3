/* SPDX-License-Identifier: MIT */
/* train_copy.c [FILE] - a small transformer learns to repeat: a b c 0 a b c 0. The loss must
 * fall; the model goes to FILE. */
#include <stdio.h>
#include <stdlib.h>

#include <tarn/tarn.h>

enum { B = 32, HALF = 6, N = 2 * HALF, SYMBOLS = 10, UPDATES = 300 };

/* Symbols 1 .. SYMBOLS, 0 behind each half; the loss counts what can be known. */
static void fill(int32_t *inputs, int32_t *targets, float *weights)
{
    for (int b = 0; b < B; b++)
        for (int i = 0; i < N; i++) {
            int32_t *const x = inputs + b * N, *const y = targets + b * N;

            x[i] = i % HALF == HALF - 1 ? 0 : i < HALF ? 1 + rand() % SYMBOLS : x[i - HALF];
            y[i > 0 ? i - 1 : N - 1] = i > 0 ? x[i] : 0;
            weights[b * N + i] = i >= HALF - 1 && i < N - 1 ? 1.0f : 0.0f;
        }
}

int main(int argc, char **argv)
{
    static int32_t inputs[B * N], targets[B * N];
    static float weights[B * N];
    const tarn_trainer_desc desc = {.batch = B, .length = N, .lr = 1e-2};
    const tarn_batch batch = {.inputs = inputs, .targets = targets, .weights = weights};
    tarn_config config;
    tarn_model *model = NULL;
    tarn_trainer *trainer = NULL;
    tarn_report report = {0};
    tarn_error err;
    double first = 0.0;

    tarn_status status = tarn_config_preset(&config, "tiny", &err);
    if (status == TARN_OK)
        status = tarn_config_set(&config, "task", "copy", &err);
    config.symbols = SYMBOLS + 1;
    config.heads = 2;
    config.width = 32;
    config.feed = 64;
    if (status == TARN_OK)
        status = tarn_model_create(&model, &config, NULL, &err);
    if (status == TARN_OK)
        status = tarn_trainer_create(&trainer, model, &desc, &err);
    for (int i = 0; i < UPDATES && status == TARN_OK; i++) {
        fill(inputs, targets, weights);
        status = tarn_trainer_update(trainer, &report, &batch, 1, &err);
        first = i == 0 ? report.loss : first;
        if (i % 100 == 99)
            printf("update %d: loss %.3f, accuracy %.3f\n", i + 1, report.loss,
                   report.accuracy);
    }
    if (status == TARN_OK && argc > 1)
        status = tarn_model_save(model, argv[1], &err);
    if (status != TARN_OK)
        fprintf(stderr, "train_copy: %s\n", err.text);
    tarn_trainer_free(trainer);
    tarn_model_free(model);
    return status == TARN_OK && report.loss < 0.25 * first ? 0 : 1;
}
