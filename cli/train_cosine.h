/* SPDX-License-Identifier: MIT */
/* train_cosine.h - a cosine schedule that ends with the run. */
#ifndef TRAIN_COSINE_H
#define TRAIN_COSINE_H

#include "train_options.h"

/* Called when the number of updates is known. */
void train_cosine_fit(const struct train_options *options, tarn_settings *settings);

/* Called when the run has started: reports a fitted schedule, or one that has already ended. */
void train_cosine_tell(const struct train_options *options, const tarn_settings *settings);

#endif
