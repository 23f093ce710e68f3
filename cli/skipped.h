/* SPDX-License-Identifier: MIT */
/* skipped.h - reports a skipped part of the data on standard error. */
#ifndef SKIPPED_H
#define SKIPPED_H

#include "tarn/tarn.h"

void skipped_tell(const tarn_skipped *skipped);

#endif
