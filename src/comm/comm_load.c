/* SPDX-License-Identifier: MIT */
/* comm_load.c - the row "mpi", whose functions are in a library of their own: who does not use
 * MPI need not have it. */
#include <dlfcn.h>
#include <string.h>

#include "base/option.h"
#include "comm/transfer.h"
#include "comm/comm_mpi.h"

#ifndef TN_LIBRARY_DIR
#define TN_LIBRARY_DIR "."
#endif

/* Where the system looks for libraries, then where this one was to be installed. It stays
 * loaded: MPI does not take being unloaded well. */
static void *load(void)
{
    void *const found = dlopen(TN_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);

    return found ? found : dlopen(TN_LIBRARY_DIR "/" TN_MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

static tarn_status open_mpi(tarn_comm *comm, const void *group, tarn_error *err)
{
    void *const library = load();
    void *const symbol = library ? dlsym(library, "tarn_mpi_open") : NULL;
    tn_mpi_open *open;

    if (!symbol)
        return tn_fail(
            err, TARN_EMACHINE,
            "comm 'mpi' needs the library %s; install the package tarn-mpi, or build "
            "tarn with MPI: %.120s",
            TN_MPI_LIBRARY, library ? "it has no tarn_mpi_open()" : dlerror());
    memcpy(&open, &symbol, sizeof open); /* ISO C has no cast from an object to a function */
    return open(comm, group, err);
}

const struct tn_comm_row tn_comm_mpi = {
    .about = {"mpi", "the processes of an MPI job, started by mpirun or srun", tn_no_options},
    .open = open_mpi,
};
