/* SPDX-License-Identifier: MIT */
/* training_case.h - a run of training: what is trained and how. */
#ifndef TRAINING_CASE_H
#define TRAINING_CASE_H

#include "tarn/train.h"

struct training_case {
    tarn_config config;
    tarn_settings settings;
};

/* A copy task of a few milliseconds. */
struct training_case training_copy(size_t steps);

void training_set(struct training_case *training, const char *name, const char *value);

/* On one thread. */
tarn_status training_run(const struct training_case *training, const char *folder, bool resume,
                         tarn_error *err);

#endif
