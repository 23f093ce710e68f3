/* SPDX-License-Identifier: MIT */
/* train_cosine.h - a cosine schedule that ends with the run. */
#ifndef TRAIN_COSINE_H
#define TRAIN_COSINE_H

#include "train_options.h"

/* Once it is known how many updates there are. */
void train_cosine_fit(const struct train_options *options, tarn_settings *settings);

/* Once the run has started: what was done, or that a schedule has ended before it. */
void train_cosine_tell(const struct train_options *options, const tarn_settings *settings);

#endif
