/* SPDX-License-Identifier: MIT */
/* ranks.h - the program as one of several processes, started by mpirun or the like. Each does
 * the same; that of rank 0 prints. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>

#include "tarn/tarn.h"

/* Joins the other processes, if there are any: by what the launcher left in the environment, or
 * by TARN_COMM=self|mpi. A default number of threads becomes this one's share. NULL: alone. */
const tarn_comm *ranks_open(tarn_host *host);

/* Whether this process prints results and progress. */
bool ranks_prints(void);

/* Before a message of failure, which the others have too or not: false if it is theirs to
 * print. */
bool ranks_complains(char name[32]);

/* From ranks_lost() on, a process that ends ends all: before a call in which they wait for each
 * other, and where one does not answer. Until ranks_found(), by what that call returned, unless
 * it is TARN_ERANK. */
void ranks_lost(void);
tarn_status ranks_found(tarn_status status);

#define RANKS_NOTE                                                                             \
    "Processes started by mpirun share the work (docs/scale.md); TARN_COMM=self makes each "   \
    "work alone. "

#endif
