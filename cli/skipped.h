/* SPDX-License-Identifier: MIT */
/* skipped.h - a part of the data that was left out, told on standard error. */
#ifndef SKIPPED_H
#define SKIPPED_H

#include "tarn/tarn.h"

void skipped_tell(const tarn_skipped *skipped);

#endif
