/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* nanosleep() */

#include "comm/comm_part.h"

#include <math.h>
#include <sched.h>
#include <time.h>

#include "base/option.h"

static const struct tn_comm_row *const rows[] = {&tn_comm_self, &tn_comm_mpi};

static const struct tn_table kinds = {"comm", tarn_comm_kind};

const tarn_table_row *tarn_comm_kind(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

/* ---- One process alone -------------------------------------------------- */

const struct tn_comm_row tn_comm_self = {
    .about = {"self", "one process alone", tn_no_options},
};

static const tarn_comm alone = {.size = 1, .sharing = 1};

/* ---- Life --------------------------------------------------------------- */

tarn_status tarn_comm_open(tarn_comm *comm, const char *kind, const void *group,
                           tarn_error *err)
{
    tarn_status status;

    if (!comm || !kind)
        return tn_fail(err, TARN_EINVAL, "comm and kind must not be NULL");
    *comm = alone;
    const struct tn_comm_row *const row = tn_table_find(&kinds, NULL, kind, &status, err);

    return row && row->open ? row->open(comm, group, err) : status;
}

void tarn_comm_close(tarn_comm *comm)
{
    if (comm && comm->close)
        comm->close(comm->context);
    if (comm)
        *comm = alone;
}

void tarn_comm_abort(tarn_comm *comm)
{
    if (comm && comm->abort)
        comm->abort(comm->context);
}

tarn_status tn_comm_check(const tarn_comm *comm, tarn_error *err)
{
    if (!comm || comm->size == 1)
        return TARN_OK;
    if (comm->rank >= comm->size)
        return tn_fail(err, TARN_EINVAL, "comm: rank is %zu; it must be less than %zu",
                       comm->rank, comm->size);
    if (!comm->start || !comm->test)
        return tn_fail(err, TARN_EINVAL, "comm: start and test must not be NULL");
    if (!(comm->timeout >= 0.0))
        return tn_fail(err, TARN_EINVAL, "comm: timeout is %g; it must not be negative",
                       comm->timeout);
    return TARN_OK;
}

/* ---- Transfers ---------------------------------------------------------- */

tarn_status tn_comm_send(const tarn_comm *comm, const void *data, size_t bytes, size_t peer,
                         size_t tag, tarn_error *err)
{
    return comm->start(comm->context,
                       &(tarn_transfer){(void *)(uintptr_t)data, bytes, peer, tag, false}, err);
}

tarn_status tn_comm_receive(const tarn_comm *comm, void *data, size_t bytes, size_t peer,
                            size_t tag, tarn_error *err)
{
    return comm->start(comm->context, &(tarn_transfer){data, bytes, peer, tag, true}, err);
}

/* Answers are often there at once. Who waits for longer leaves its core to others, which may be
 * the process that it waits for. */
void tn_comm_pause(double waited)
{
    if (waited < 2e-3)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* ---- Waiting ------------------------------------------------------------ */

enum { USUAL_TIMEOUT = 20, EQUAL_WORK = 4, LONGEST = 10 };

/* When this thread last had all that it waited for: it has worked since. */
static _Thread_local double answered;

static double least(const tarn_comm *comm)
{
    return comm->timeout > 0.0 ? comm->timeout : USUAL_TIMEOUT;
}

/* A process on a slower machine is late in proportion to what there is to do. */
static double limit_of(const tarn_comm *comm, enum tn_patience patience, double now)
{
    const double longest = LONGEST * least(comm);
    const double worked = answered > 0.0 ? now - answered : 0.0;

    return patience == TN_LONG ? longest
                               : fmin(fmax(least(comm), EQUAL_WORK * worked), longest);
}

/* Since the look before. A process that was stopped itself does not take that for waiting. */
static double waited_since(double *look)
{
    const double now = tn_seconds(), since = now - *look;

    *look = now;
    return fmin(since, 0.1);
}

static tarn_status wait_until(const tarn_comm *comm, size_t tag, double limit, tarn_error *err)
{
    double look = tn_seconds(), waited = 0.0;
    bool complete = false;

    while (!complete) {
        size_t missing = 0;
        const tarn_status status = comm->test(comm->context, &complete, &missing, tag, err);

        if (status != TARN_OK)
            return status;
        waited += waited_since(&look);
        if (!complete && waited > limit)
            return tn_fail(err, TARN_ERANK,
                           "rank %zu has not answered for %.3g s: it hangs, has died or cannot "
                           "be reached",
                           tn_comm_find_silent(tn_comm_whole(comm), missing, least(comm)),
                           limit);
        if (!complete)
            tn_comm_pause(waited);
    }
    answered = look;
    return TARN_OK;
}

tarn_status tn_comm_wait(const tarn_comm *comm, size_t tag, enum tn_patience patience,
                         tarn_error *err)
{
    return wait_until(comm, tag, limit_of(comm, patience, tn_seconds()), err);
}

tarn_status tn_comm_wait_for(const tarn_comm *comm, size_t tag, double seconds, tarn_error *err)
{
    return wait_until(comm, tag, fmax(least(comm), seconds), err);
}
