/* SPDX-License-Identifier: MIT */
/* comm_mpi.c - transfers by MPI; the whole of libtarn-mpi, and all that knows MPI. It is loaded
 * by a program that may not export tarn's functions, so it uses none of them. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity() */
#endif
#include "comm/comm_mpi.h"

#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A transfer that is not complete. */
struct pending {
    MPI_Request request;
    size_t tag, peer;
};

struct mpi {
    MPI_Comm comm; /* a copy: nobody else's messages are in it */
    bool finalizes;
    struct pending *pending;
    size_t count, room;
};

__attribute__((format(printf, 3, 4))) static tarn_status
fail(tarn_error *err, tarn_status status, const char *format, ...)
{
    va_list args;

    if (err) {
        va_start(args, format);
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

static tarn_status failed(tarn_error *err, int code, size_t peer)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length;

    MPI_Error_string(code, text, &length);
    return fail(err, TARN_ERANK, "rank %zu cannot be reached: MPI: %.180s", peer, text);
}

/* ---- Transfers ---------------------------------------------------------- */

static bool make_room(struct mpi *mpi)
{
    if (mpi->count < mpi->room)
        return true;
    const size_t room = 2 * mpi->room + 64;
    struct pending *const more = realloc(mpi->pending, room * sizeof *more);

    if (more) {
        mpi->pending = more;
        mpi->room = room;
    }
    return more != NULL;
}

enum { PIECE = 1 << 30 }; /* bytes; MPI counts in ints */

static tarn_status start_piece(struct mpi *mpi, const tarn_transfer *t, char *data, int bytes,
                               tarn_error *err)
{
    if (!make_room(mpi))
        return fail(err, TARN_ERANK, "not enough memory for %zu transfers", mpi->count);
    struct pending *const next = &mpi->pending[mpi->count];
    const int peer = (int)t->peer, tag = (int)t->tag;
    const int code =
        t->receives ? MPI_Irecv(data, bytes, MPI_BYTE, peer, tag, mpi->comm, &next->request)
                    : MPI_Isend(data, bytes, MPI_BYTE, peer, tag, mpi->comm, &next->request);

    if (code != MPI_SUCCESS)
        return failed(err, code, t->peer);
    next->tag = t->tag;
    next->peer = t->peer;
    mpi->count++;
    return TARN_OK;
}

static tarn_status start(void *context, const tarn_transfer *t, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t at = 0; at < t->bytes && status == TARN_OK; at += PIECE) {
        const size_t left = t->bytes - at;

        status = start_piece(context, t, (char *)t->data + at, left < PIECE ? (int)left : PIECE,
                             err);
    }
    return status;
}

/* Every call lets MPI work on all transfers. Those that are complete leave the list. */
static tarn_status test(void *context, bool *complete, size_t *missing, size_t tag,
                        tarn_error *err)
{
    struct mpi *const mpi = context;
    size_t left = 0;

    *complete = true;
    for (size_t i = 0; i < mpi->count; i++) {
        struct pending *const one = &mpi->pending[i];
        int done = 0;
        const int code = MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);

        if (code != MPI_SUCCESS)
            return failed(err, code, one->peer);
        if (done)
            continue;
        if (one->tag == tag) {
            *complete = false;
            *missing = one->peer;
        }
        mpi->pending[left++] = *one;
    }
    mpi->count = left;
    return TARN_OK;
}

/* ---- Processors --------------------------------------------------------- */

/* mpirun may give every process processors of its own, or all processes all of them: a colour
 * for each set of processors. Where the set is not known, it is taken for one that all share.
 */
static int colour_of_processors(void)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
#ifdef __linux__
    cpu_set_t own;

    if (sched_getaffinity(0, sizeof own, &own) != 0)
        CPU_ZERO(&own);
    for (size_t i = 0; i < sizeof own; i++)
        hash = (hash ^ ((const unsigned char *)&own)[i]) * 16777619u;
#endif
    return (int)(hash >> 1);
}

/* All processes make the same calls, whatever each finds: MPI waits for all of them. */
static size_t count_sharing(MPI_Comm comm)
{
    MPI_Comm machine, alike;
    int size = 1;

    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) !=
        MPI_SUCCESS)
        return 1;
    if (MPI_Comm_split(machine, colour_of_processors(), 0, &alike) == MPI_SUCCESS) {
        MPI_Comm_size(alike, &size);
        MPI_Comm_free(&alike);
    }
    MPI_Comm_free(&machine);
    return (size_t)size;
}

/* ---- Life --------------------------------------------------------------- */

enum { ABORT_SECONDS = 5 };

/* MPICH waits here for a process that hangs. A signal then ends this one, and the launcher the
 * others. */
static void abort_all(void *context)
{
    struct mpi *const mpi = context;

    signal(SIGALRM, SIG_DFL);
    alarm(ABORT_SECONDS);
    MPI_Abort(mpi->comm, EXIT_FAILURE);
}

static void close_mpi(void *context)
{
    struct mpi *const mpi = context;

    if (mpi->comm != MPI_COMM_NULL)
        MPI_Comm_free(&mpi->comm);
    if (mpi->finalizes)
        MPI_Finalize();
    free(mpi->pending);
    free(mpi);
}

static tarn_status initialize(bool *finalizes, tarn_error *err)
{
    int before = 0, after = 0, level;

    MPI_Initialized(&before);
    MPI_Finalized(&after);
    if (after)
        return fail(err, TARN_EINVAL, "MPI was finalized before; it can be used only once");
    if (!before && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return fail(err, TARN_EMACHINE, "MPI cannot be initialised");
    *finalizes = !before;
    return TARN_OK;
}

tarn_status tarn_mpi_open(tarn_comm *comm, const void *group, tarn_error *err)
{
    struct mpi *const mpi = calloc(1, sizeof *mpi);
    int rank, size;
    tarn_status status;

    if (!mpi)
        return fail(err, TARN_ENOMEM, "not enough memory for a communicator");
    mpi->comm = MPI_COMM_NULL;
    if ((status = initialize(&mpi->finalizes, err)) != TARN_OK) {
        free(mpi);
        return status;
    }
    if (MPI_Comm_dup(group ? *(const MPI_Comm *)group : MPI_COMM_WORLD, &mpi->comm) !=
        MPI_SUCCESS) {
        close_mpi(mpi);
        return fail(err, TARN_EMACHINE, "MPI cannot copy the communicator");
    }
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &rank);
    MPI_Comm_size(mpi->comm, &size);
    *comm = (tarn_comm){
        .rank = (size_t)rank,
        .size = (size_t)size,
        .sharing = count_sharing(mpi->comm),
        .context = mpi,
        .start = start,
        .test = test,
        .abort = abort_all,
        .close = close_mpi,
    };
    return TARN_OK;
}
