/* SPDX-License-Identifier: MIT */
/* state_size.h - the memory of a stream that a model generates. */
#ifndef STATE_SIZE_H
#define STATE_SIZE_H

#include <stdbool.h>

#include "tarn/tarn.h"

/* Bytes of a stream's state: those it always has, and those that each position adds. */
struct state_size {
    bool generates; /* false: the model has no recurrent form, and the sizes are 0 */
    size_t bytes, per_position;
};

struct state_size state_size(const tarn_model *model);

#endif
