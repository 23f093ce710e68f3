/* SPDX-License-Identifier: MIT */
#include "support/training_case.h"

#include "support/testing.h"

void training_set(struct training_case *training, const char *name, const char *value)
{
    tarn_error err;

    check_ok(tarn_settings_set(&training->settings, name, value, &err), &err);
}

struct training_case training_copy(size_t steps)
{
    struct training_case training;
    tarn_error err;

    check_ok(tarn_settings_start(&training.settings, "copy", &err), &err);
    check_ok(tarn_config_preset(&training.config, "tiny", &err), &err);
    training.config.symbols = 11;
    training.config.layers = 1;
    training.config.width = 16;
    training.config.feed = 16;
    training_set(&training, "length", "9");
    training_set(&training, "batch", "2");
    training_set(&training, "eval_batches", "1");
    training.settings.steps = steps;
    return training;
}

tarn_status training_run(const struct training_case *training, const char *folder, bool resume,
                         tarn_error *err)
{
    const tarn_train_desc desc = {
        .out = folder, .resume = resume, .host = {.threads = 1, .cpu = forced_cpu()}};

    return tarn_train(&training->config, &training->settings, &desc, err);
}
