/* SPDX-License-Identifier: MIT */
/* position_learned.c - a row of a trained table added to the embedding. */
#include "layer/position.h"

static size_t whole(size_t F)
{
    return F;
}

extern const struct tn_position_row tn_pos_learned;
const struct tn_position_row tn_pos_learned = {
    .about = {"learned", "learned encoding, one vector per position, added to the embedding",
              (const tarn_option_info[]){{0}}},
    .learned = true,
    .divisor = 1,
    .embedding = whole,
    .table = whole,
    .apply = tn_position_add,
};
