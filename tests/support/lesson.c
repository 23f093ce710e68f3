/* SPDX-License-Identifier: MIT */
#include "support/lesson.h"

#include "support/testing.h"

void lesson_set(struct lesson *lesson, const char *name, const char *value)
{
    tarn_error err;

    check_ok(tarn_settings_set(&lesson->settings, name, value, &err), &err);
}

tarn_status lesson_train(const struct lesson *lesson, const char *folder, bool resume,
                         tarn_error *err)
{
    const tarn_train_desc desc = {
        .out = folder, .resume = resume, .host = {.threads = 1, .cpu = forced_cpu()}};

    return tarn_train(&lesson->config, &lesson->settings, &desc, err);
}
