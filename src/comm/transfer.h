/* SPDX-License-Identifier: MIT */
/* transfer.h - what processes that train together say to each other.
 *
 * Everything is built from transfers between two processes, so that a communicator is a few
 * functions and every wait can name the process that it waits for. A communicator that is NULL
 * is one process alone. */
#ifndef TN_TRANSFER_H
#define TN_TRANSFER_H

#include "base/base.h"
#include "tarn/comm.h"

/* A communicator is one file that defines one row, listed here and in comm.c. */
struct tn_comm_row {
    tarn_table_row about;
    tarn_status (*open)(tarn_comm *comm, const void *group, tarn_error *err); /* NULL: alone */
};

extern const struct tn_comm_row tn_comm_self, tn_comm_mpi;

/* Of tags: for messages of which one at a time is under way, for gradients that come back from
 * another process, for sums, and from the end for who waits for whom (silent.c). */
enum { TN_TAG_RECORDS, TN_TAG_HOME, TN_TAG_SUMS, TN_TAGS = 32768 };

/* How long to wait: for processes that do the same work, or for one that may have more. Both
 * are in proportion to the communicator's timeout; the first is longer where this process has
 * worked for long since it last had an answer. */
enum tn_patience { TN_SHORT, TN_LONG };

static inline size_t tn_comm_rank(const tarn_comm *comm)
{
    return comm ? comm->rank : 0;
}

static inline size_t tn_comm_size(const tarn_comm *comm)
{
    return comm ? comm->size : 1;
}

/* Refuses a caller's communicator that is incomplete. */
tarn_status tn_comm_check(const tarn_comm *comm, tarn_error *err);

tarn_status tn_comm_send(const tarn_comm *comm, const void *data, size_t bytes, size_t peer,
                         size_t tag, tarn_error *err);
tarn_status tn_comm_receive(const tarn_comm *comm, void *data, size_t bytes, size_t peer,
                            size_t tag, tarn_error *err);

/* Until all transfers of a tag are complete; the second, for so many seconds if the
 * communicator's timeout is less. */
tarn_status tn_comm_wait(const tarn_comm *comm, size_t tag, enum tn_patience patience,
                         tarn_error *err);
tarn_status tn_comm_wait_for(const tarn_comm *comm, size_t tag, double seconds,
                             tarn_error *err);

/* Between two looks at what has arrived, after so many seconds of waiting. */
void tn_comm_pause(double waited);

/* ---- silent.c ----------------------------------------------------------- */

/* After waiting for `missing` in vain, once: the process that all wait for, which may be
 * another. Takes so many seconds at most. */
size_t tn_comm_find_silent(const tarn_comm *comm, size_t missing, double seconds);

/* ---- exchange.c --------------------------------------------------------- */

/* Every process has its own record, of `bytes`, in its place of `all`; afterwards all have all.
 * The first only starts it. */
tarn_status tn_comm_gather_start(const tarn_comm *comm, void *all, size_t bytes,
                                 tarn_error *err);
tarn_status tn_comm_gather(const tarn_comm *comm, void *all, size_t bytes,
                           enum tn_patience patience, tarn_error *err);

/* From process 0 to all. */
tarn_status tn_comm_broadcast(const tarn_comm *comm, void *data, size_t bytes, tarn_error *err);

/* ---- agreement.c -------------------------------------------------------- */

/* How something ended for a process; part of a record. */
struct tn_outcome {
    int32_t status;
    char text[sizeof((tarn_error *)0)->text];
};

void tn_outcome_of(struct tn_outcome *outcome, tarn_status status, const tarn_error *err);

/* The outcome for all: that of the first process which failed, after its rank unless that is
 * 0. Outcomes are the first members of `size` records of `bytes`. */
tarn_status tn_outcomes_agree(const tarn_comm *comm, const void *all, size_t bytes,
                              tarn_error *err);

/* All of that: every process brings a status, and its error, and leaves with the same one. */
tarn_status tn_comm_agree(const tarn_comm *comm, tarn_status status, enum tn_patience patience,
                          tarn_error *err);

#endif
