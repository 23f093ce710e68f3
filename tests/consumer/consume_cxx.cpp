// SPDX-License-Identifier: MIT
// consume_cxx.cpp - the same from C++11.
#include <cstdio>

#include "tarn/tarn.h"

int main()
{
    tarn_run_desc desc = tarn_run_desc();
    const int32_t symbols[] = {1, 2, 3};
    const float *outputs = nullptr;
    tarn_config config;
    tarn_model *model = nullptr;
    tarn_run *run = nullptr;
    tarn_error err;

    desc.batch = 1;
    desc.length = 3;
    desc.host.threads = 1;
    if (tarn_config_preset(&config, "tiny", &err) != TARN_OK ||
        tarn_model_create(&model, &config, nullptr, &err) != TARN_OK ||
        tarn_run_create(&run, model, &desc, &err) != TARN_OK ||
        tarn_run_forward(run, &outputs, symbols, nullptr, &err) != TARN_OK) {
        std::fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    std::printf("%d.%d.%d %s %.6f\n", TARN_VERSION_MAJOR, TARN_VERSION_MINOR,
                TARN_VERSION_PATCH, tarn_version(), static_cast<double>(outputs[0]));
    tarn_run_free(run);
    tarn_model_free(model);
    return 0;
}
