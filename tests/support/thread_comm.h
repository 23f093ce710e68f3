/* SPDX-License-Identifier: MIT */
/* thread_comm.h - processes that are threads: a communicator in memory, so that what several
 * processes compute is tested where there is no MPI. */
#ifndef THREAD_COMM_H
#define THREAD_COMM_H

#include "comm/transfer.h"

enum { PROCESSES_MOST = 8 };

/* One of them, with its communicator. */
typedef void process(void *arg, const tarn_comm *comm);

/* Runs all to their ends. Their transfers time out after so many seconds; 0: the default. */
void run_processes(size_t size, double timeout, process *run, void *arg);

#endif
