/* SPDX-License-Identifier: MIT */
/* silent.c - who hangs, if a process that does not answer may itself wait for another: keys
 * pass from process to process, and sums wait for groups. Who has waited in vain tells all
 * others for whom. One that hangs tells nothing. */
#include <stdatomic.h>
#include <stdlib.h>

#include "comm/transfer.h"

/* Of each process, for whom it waits, when it was heard. */
struct notes {
    struct notes *next;
    bool *heard;
    size_t waits_for[];
};

/* A note may arrive as long as this process lives: its place is never freed. */
static _Atomic(struct notes *) kept;

static struct notes *take_notes(size_t size)
{
    struct notes *const n = calloc(1, sizeof *n + size * (sizeof(size_t) + sizeof(bool)));

    if (n) {
        n->heard = (bool *)(void *)(n->waits_for + size);
        n->next = atomic_exchange(&kept, n);
    }
    return n;
}

/* Each process has a tag, so that one note can be told from another that is missing. */
static size_t tag_of(size_t rank)
{
    return TN_TAGS - 1 - rank;
}

static bool is_there(const tarn_comm *comm, size_t rank)
{
    bool complete = false;
    size_t missing;

    return comm->test(comm->context, &complete, &missing, tag_of(rank), NULL) == TARN_OK &&
           complete;
}

static void exchange(const tarn_comm *comm, struct notes *n)
{
    for (size_t i = 1; i < comm->size; i++) {
        const size_t to = (comm->rank + i) % comm->size;
        const size_t from = (comm->rank + comm->size - i) % comm->size;

        tn_comm_receive(comm, &n->waits_for[from], sizeof(size_t), from, tag_of(from), NULL);
        tn_comm_send(comm, &n->waits_for[comm->rank], sizeof(size_t), to, tag_of(comm->rank),
                     NULL);
    }
}

/* How many processes have not been heard. */
static size_t listen(const tarn_comm *comm, struct notes *n)
{
    size_t silent = 0;

    for (size_t i = 0; i < comm->size; i++) {
        n->heard[i] = n->heard[i] || is_there(comm, i);
        silent += n->heard[i] ? 0 : 1;
    }
    return silent;
}

/* From process to process that was heard. */
static size_t follow(const tarn_comm *comm, const struct notes *n)
{
    size_t at = comm->rank;

    for (size_t i = 0; i < comm->size && n->heard[at]; i++)
        at = n->waits_for[at];
    return at;
}

size_t tn_comm_find_silent(const tarn_comm *comm, size_t missing, double seconds)
{
    const double begin = tn_seconds();
    const bool asks = comm->size > 2 && comm->size <= TN_TAGS / 2;
    struct notes *const n = asks ? take_notes(comm->size) : NULL;

    if (!n)
        return missing;
    n->waits_for[comm->rank] = missing;
    n->heard[comm->rank] = true;
    exchange(comm, n);
    for (double waited = 0.0; listen(comm, n) > 1 && waited < seconds;
         waited = tn_seconds() - begin)
        tn_comm_pause(waited);
    const size_t silent = follow(comm, n);

    return n->heard[silent] ? missing : silent;
}
