/* SPDX-License-Identifier: MIT */
/* position_none.c - rows do not know where they stand, but for what is before them. */
#include "layer/position.h"

static size_t whole(size_t F)
{
    return F;
}

static size_t nothing(size_t F)
{
    (void)F;
    return 0;
}

extern const struct tn_position_row tn_pos_none;
const struct tn_position_row tn_pos_none = {
    .about = {"none", "no position encoding", (const tarn_option_info[]){{0}}},
    .divisor = 1,
    .embedding = whole,
    .table = nothing,
};
