/* SPDX-License-Identifier: MIT */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

static struct {
    tarn_comm comm;
    bool joined; /* with the others */
    bool lost;   /* one of them does not answer, or would wait for this one */
} ranks = {.comm = {.size = 1}};

/* ---- Launchers ---------------------------------------------------------- */

/* Open MPI; MPICH and Intel MPI; Slurm's srun. */
static const struct launcher {
    const char *size, *rank;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

static size_t number(const char *name)
{
    const char *const text = getenv(name);

    return text ? strtoul(text, NULL, 10) : 0;
}

static const struct launcher *launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        if (number(launchers[i].size) > 1)
            return &launchers[i];
    return NULL;
}

static const char *kind(void)
{
    const char *const asked = getenv("TARN_COMM");

    return asked && *asked ? asked : launcher() ? "mpi" : "self";
}

static size_t rank(void)
{
    if (ranks.joined)
        return ranks.comm.rank;
    return strcmp(kind(), "mpi") == 0 && launcher() ? number(launcher()->rank) : 0;
}

/* ---- Life --------------------------------------------------------------- */

static void part(void)
{
    if (ranks.lost)
        tarn_comm_abort(&ranks.comm);
    else
        tarn_comm_close(&ranks.comm);
}

static double timeout(void)
{
    const char *const text = getenv("TARN_COMM_TIMEOUT");
    char *end;
    const double seconds = text ? strtod(text, &end) : 0.0;

    if (text && (*end != '\0' || !(seconds > 0.0 && seconds < 1e9)))
        refuse("TARN_COMM_TIMEOUT is '%s'; it must be a number of seconds", text);
    return seconds;
}

const tarn_comm *ranks_open(tarn_host *host)
{
    const double seconds = timeout();

    must(tarn_comm_open(&ranks.comm, kind(), NULL, &failure));
    ranks.comm.timeout = seconds;
    ranks.joined = ranks.comm.size > 1;
    atexit(part);
    if (!ranks.joined)
        return NULL;
    if (host->threads == 0) {
        const size_t fair = tarn_threads_default() / ranks.comm.sharing;

        host->threads = fair > 0 ? fair : 1;
    }
    return &ranks.comm;
}

/* ---- Messages ----------------------------------------------------------- */

bool ranks_prints(void)
{
    return rank() == 0;
}

static void wait_for(size_t tenths)
{
    struct timespec left = {.tv_sec = (time_t)(tenths / 10),
                            .tv_nsec = (long)(tenths % 10) * 100000000};

    while (nanosleep(&left, &left) != 0)
        ;
}

/* What failed for all is told by one. A process that does not know whether the others fail,
 * too, leaves those before it the time to say so and to end all. */
bool ranks_complains(char name[32])
{
    const bool agreed = ranks.joined && !ranks.lost;

    *name = '\0';
    if (rank() == 0)
        return true;
    if (agreed)
        return false;
    wait_for(5 + 20 * (rank() < 4 ? rank() : 4)); /* mpirun takes a second or two to end them */
    snprintf(name, 32, "rank %zu: ", rank());
    return true;
}

void ranks_lost(void)
{
    ranks.lost = ranks.joined;
}

tarn_status ranks_found(tarn_status status)
{
    ranks.lost = ranks.joined && status == TARN_ERANK;
    return status;
}
