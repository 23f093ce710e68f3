/* SPDX-License-Identifier: MIT */
#include "comm/comm_part.h"

static tarn_status start(void *context, const tarn_transfer *transfer, tarn_error *err)
{
    const struct tn_comm_part *const part = context;
    tarn_transfer moved = *transfer;

    moved.peer = part->first + transfer->peer * part->stride;
    return part->whole->start(part->whole->context, &moved, err);
}

static tarn_status test(void *context, bool *complete, size_t *missing, size_t tag,
                        tarn_error *err)
{
    const struct tn_comm_part *const part = context;

    return part->whole->test(part->whole->context, complete, missing, tag, err);
}

void tn_comm_part_open(struct tn_comm_part *part, const tarn_comm *whole, size_t first,
                       size_t stride, size_t size)
{
    *part = (struct tn_comm_part){
        .comm = {.rank = (tn_comm_rank(whole) - first) / stride,
                 .size = size,
                 .sharing = whole ? whole->sharing : 1,
                 .timeout = whole ? whole->timeout : 0.0,
                 .context = part,
                 .start = start,
                 .test = test},
        .whole = whole,
        .first = first,
        .stride = stride,
    };
}

const tarn_comm *tn_comm_whole(const tarn_comm *comm)
{
    return comm->start == start ? ((const struct tn_comm_part *)comm->context)->whole : comm;
}
