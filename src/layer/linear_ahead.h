/* SPDX-License-Identifier: MIT */
/* linear_ahead.h - asking memory for the next tile while this one is worked on.
 *
 * A pass moves rows and then computes on them for a while. Hardware looks ahead only while rows
 * move, within a page and along one row after another; so a pass asks for the rows of its next
 * tile itself, a few positions at a time between pieces of arithmetic. */
#ifndef TN_LINEAR_AHEAD_H
#define TN_LINEAR_AHEAD_H

#include "layer/linear_tile.h"

enum { TN_LINEAR_PART = 12 }; /* positions between two requests */

struct tn_linear_ahead {
    struct {
        const float *data; /* of the group's first head, position 0 */
        ptrdiff_t head, position;
        size_t bytes; /* of a row */
    } arrays[6];
    size_t count;
    size_t from, to; /* positions of the next tile */
};

/* Arrays that the pass will read or write; rows are `width` floats. */
void tn_linear_ahead_add(struct tn_linear_ahead *ahead, const struct tn_linear_group *a,
                         tarn_input x, size_t width);
void tn_linear_ahead_add_output(struct tn_linear_ahead *ahead, const struct tn_linear_group *a,
                                tarn_output x, size_t width);

/* Requests a head's positions i .. i+n of the next tile. */
void tn_linear_ahead_fetch(const struct tn_linear_ahead *ahead, size_t head, size_t i,
                           size_t n);

#endif
