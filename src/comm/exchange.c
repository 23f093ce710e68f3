/* SPDX-License-Identifier: MIT */
/* exchange.c - records of all processes to all, and one process's to all. */
#include "comm/transfer.h"

/* Directly between any two, so that who waits knows for whom. */
tarn_status tn_comm_gather_start(const tarn_comm *comm, void *all, size_t bytes,
                                 tarn_error *err)
{
    char *const records = all;
    tarn_status status = TARN_OK;

    for (size_t i = 1; i < tn_comm_size(comm) && status == TARN_OK; i++) {
        const size_t to = (comm->rank + i) % comm->size;
        const size_t from = (comm->rank + comm->size - i) % comm->size;

        status =
            tn_comm_receive(comm, records + from * bytes, bytes, from, TN_TAG_RECORDS, err);
        if (status == TARN_OK)
            status = tn_comm_send(comm, records + comm->rank * bytes, bytes, to, TN_TAG_RECORDS,
                                  err);
    }
    return status;
}

tarn_status tn_comm_gather(const tarn_comm *comm, void *all, size_t bytes,
                           enum tn_patience patience, tarn_error *err)
{
    const tarn_status status = tn_comm_gather_start(comm, all, bytes, err);

    if (status != TARN_OK || tn_comm_size(comm) == 1)
        return status;
    return tn_comm_wait(comm, TN_TAG_RECORDS, patience, err);
}

/* A binomial tree: process r has the data from r without its highest bit, and sends it to those
 * that have one more, higher bit. */
tarn_status tn_comm_broadcast(const tarn_comm *comm, void *data, size_t bytes, tarn_error *err)
{
    const size_t rank = tn_comm_rank(comm), size = tn_comm_size(comm);
    size_t bit = 1;
    tarn_status status = TARN_OK;

    if (size == 1)
        return TARN_OK;
    while (bit <= rank)
        bit *= 2;
    if (rank > 0) {
        status = tn_comm_receive(comm, data, bytes, rank - bit / 2, TN_TAG_RECORDS, err);
        if (status == TARN_OK)
            status = tn_comm_wait(comm, TN_TAG_RECORDS, TN_LONG, err);
    }
    for (; rank + bit < size && status == TARN_OK; bit *= 2)
        status = tn_comm_send(comm, data, bytes, rank + bit, TN_TAG_RECORDS, err);
    return status == TARN_OK ? tn_comm_wait(comm, TN_TAG_RECORDS, TN_LONG, err) : status;
}
