/* SPDX-License-Identifier: MIT */
/* comm_mpi.h - what libtarn-mpi exports, for the library that loads it. */
#ifndef TN_COMM_MPI_H
#define TN_COMM_MPI_H

#include "tarn/comm.h"

#ifndef TN_MPI_LIBRARY
#define TN_MPI_LIBRARY "libtarn-mpi.so"
#endif

typedef tarn_status tn_mpi_open(tarn_comm *comm, const void *group, tarn_error *err);

TARN_API tn_mpi_open tarn_mpi_open;

#endif
