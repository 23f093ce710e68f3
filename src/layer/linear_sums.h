/* SPDX-License-Identifier: MIT */
/* linear_sums.h - the running sums of a group of heads, between passes.
 *
 * While a pass runs, sums are in the thread's tiles, in the orientation that the pass advances.
 * Kept, from segment to segment or from forward to backward, a head's sum is its St or its Rt,
 * rows x C_ld without gaps, one head behind the other. */
#ifndef TN_LINEAR_SUMS_H
#define TN_LINEAR_SUMS_H

#include "layer/linear_tile.h"

/* St or Rt of the group, which `sums` is, from where it was kept (NULL: zero) and back. */
void tn_linear_sums_load(const struct tn_linear_group *a, float *sums, const float *kept);
void tn_linear_sums_keep(const struct tn_linear_group *a, const float *sums, float *kept);

/* S and z from St; St from S and z; R from Rt. */
void tn_linear_turn_St(const struct tn_linear_group *a);
void tn_linear_turn_S(const struct tn_linear_group *a);
void tn_linear_turn_Rt(const struct tn_linear_group *a);

/* Far sums: St += those, transposed; and near added to them, which then is zero. */
void tn_linear_turn_far(const struct tn_linear_group *a);
void tn_linear_fold(const struct tn_linear_group *a);

/* The `count` sums of one head, among those of all B x H: each becomes the sum of those up to
 * it, or with `backwards` of those from it on. */
void tn_linear_sums_scan(const tarn_attention *plan, float *kept, size_t head, size_t count,
                         bool backwards);

#endif
