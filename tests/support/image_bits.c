/* SPDX-License-Identifier: MIT */
#include "support/image_bits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/streams.h"

static double sigma(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* -log2 p(t) of K logistics by the formula of the head, in double precision. */
static double bits(const float *outputs, size_t K, int32_t t)
{
    const double x = -1.0 + 2.0 * t / 255.0, h = 1.0 / 255.0;
    double p = 0.0, all = 0.0;

    for (size_t k = 0; k < K; k++) {
        const double weight = exp((double)outputs[k]), mean = (double)outputs[K + k];
        const double scale = exp(fmax((double)outputs[2 * K + k], -7.0));
        const double above = t == 255 ? 1.0 : sigma((x + h - mean) / scale);
        const double below = t == 0 ? 0.0 : sigma((x - h - mean) / scale);

        p += weight * (above - below);
        all += weight;
    }
    return -log2(p / all);
}

double bits_by_steps(const tarn_model *model, const unsigned char *pixels, size_t images,
                     size_t bytes)
{
    const size_t K = tarn_model_outputs(model) / 3;
    struct streams s = streams_open(model, (tarn_engine_desc){.longest = bytes}, 1);
    double sum = 0.0;

    for (size_t i = 0; i < images; i++) {
        const unsigned char *const image = pixels + i * bytes;

        streams_restart(&s);
        for (size_t n = 0; n + 1 < bytes; n++) {
            const int32_t symbol = image[n];

            sum += bits(streams_step(&s, &symbol), K, image[n + 1]);
        }
    }
    streams_close(&s);
    return sum / (double)(images * (bytes - 1));
}
