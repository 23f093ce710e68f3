/* SPDX-License-Identifier: MIT */
/* train_cosine.h - a cosine schedule that ends with the run. */
#ifndef TRAIN_COSINE_H
#define TRAIN_COSINE_H

#include "train_options.h"

/* Once it is known how many updates there are; tells what was done. */
void train_cosine_fit(const struct train_options *options, tarn_settings *settings);

#endif
