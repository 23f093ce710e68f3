/* SPDX-License-Identifier: MIT */
/* comm_part.h - some processes of a communicator as one of their own: those of rank
 * first, first + stride, ... */
#ifndef TN_COMM_PART_H
#define TN_COMM_PART_H

#include "comm/transfer.h"

struct tn_comm_part {
    tarn_comm comm; /* its context is this structure, which must stay where it is */
    const tarn_comm *whole;
    size_t first, stride;
};

/* This process is one of the `size`. Who does not answer is named by its rank in the whole. */
void tn_comm_part_open(struct tn_comm_part *part, const tarn_comm *whole, size_t first,
                       size_t stride, size_t size);

/* What a communicator is a part of; itself, if it is none. */
const tarn_comm *tn_comm_whole(const tarn_comm *comm);

#endif
