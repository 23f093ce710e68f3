/* SPDX-License-Identifier: MIT */
/* lesson.h - a run of training: what is trained and how. */
#ifndef LESSON_H
#define LESSON_H

#include "tarn/train.h"

struct lesson {
    tarn_config config;
    tarn_settings settings;
};

void lesson_set(struct lesson *lesson, const char *name, const char *value);

/* On one thread. */
tarn_status lesson_train(const struct lesson *lesson, const char *folder, bool resume,
                         tarn_error *err);

#endif
