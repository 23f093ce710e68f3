/* SPDX-License-Identifier: MIT */
/* comm.h - several processes that train or evaluate together.
 *
 *     tarn_comm comm;
 *     tarn_comm_open(&comm, "mpi", NULL, &err);            started by mpirun
 *     tarn_train(&config, &settings, &(tarn_train_desc){.out = "run", .comm = &comm}, &err);
 *     tarn_comm_close(&comm);
 *
 * Every process makes the same calls with the same arguments. Results are bit-identical for any
 * number of processes, as far as tarn_settings.micro_batches allows them. */
#ifndef TARN_COMM_H
#define TARN_COMM_H

#include <stdbool.h>

#include "tarn/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that go to another process, or come from it. */
typedef struct tarn_transfer {
    void *data; /* must stay, and stay unchanged, until the transfer is complete */
    size_t bytes;
    size_t peer;   /* rank of the other process */
    size_t tag;    /* below 32768; transfers of a tag between two processes keep their order */
    bool receives; /* false: sends */
} tarn_transfer;

/* A group of processes, as this one sees it. tarn_comm_open() fills it; a program with a
 * network of its own may fill it itself. The functions are called by one thread at a time. */
typedef struct tarn_comm {
    size_t rank, size; /* number of this process, from 0, and of all */
    size_t sharing;    /* number of processes that run on the same processors, including this
                          one, among which their cores should be divided */
    double timeout;    /* seconds without an answer after which another process counts as lost,
                          or more if this one has computed for long itself; 0: 20 */
    void *context;

    /* Starts a transfer and returns at once. */
    tarn_status (*start)(void *context, const tarn_transfer *transfer, tarn_error *err);
    /* Sets *complete to whether all transfers of a tag that were started are complete. If they
     * are not, *missing becomes the rank of a process whose transfer is not. Returns at once.
     */
    tarn_status (*test)(void *context, bool *complete, size_t *missing, size_t tag,
                        tarn_error *err);
    void (*abort)(void *context); /* ends all processes at once */
    void (*close)(void *context);
} tarn_comm;

/* Opens a communicator of tarn_comm_kind(): "self", one process alone, or "mpi". That one is in
 * a library of its own, libtarn-mpi, which is loaded now. TARN_EMACHINE: it is not installed.
 * `group` is the address of an MPI_Comm; NULL: all processes of the job. MPI is initialised if
 * it was not, and then finalised by tarn_comm_close(). */
TARN_API tarn_status tarn_comm_open(tarn_comm *comm, const char *kind, const void *group,
                                    tarn_error *err);
TARN_API void tarn_comm_close(tarn_comm *comm); /* accepts one that is closed */

/* Ends all processes at once, for when one cannot continue and others wait for it: after
 * TARN_ERANK, and instead of tarn_comm_close(). Returns only if there is a single process. */
TARN_API void tarn_comm_abort(tarn_comm *comm);

/* Table of communicators: rows 0, 1, ...; NULL past the last. */
TARN_API const tarn_table_row *tarn_comm_kind(size_t index);

#ifdef __cplusplus
}
#endif
#endif
