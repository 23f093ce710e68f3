/* SPDX-License-Identifier: MIT */
/* position_add.c - a sinusoid added to the embedding.           Vaswani et al. 2017, 3.5 */
#include "layer/position.h"

static size_t whole(size_t F)
{
    return F;
}

extern const struct tn_position_row tn_pos_add;
const struct tn_position_row tn_pos_add = {
    .about = {"add", "sinusoidal encoding added to the embedding",
              (const tarn_option_info[]){{0}}},
    .divisor = 2,
    .embedding = whole,
    .table = whole,
    .fill = tn_position_sinusoid,
    .apply = tn_position_add,
};
