/* SPDX-License-Identifier: MIT */
#include "support/thread_comm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

struct message {
    struct message *next;
    size_t from, to, tag, bytes;
    char data[];
};

enum { WAITING_MOST = 4096 };

/* What is on its way, in the order in which it was sent; and who waits for what. */
struct network {
    pthread_mutex_t mutex;
    struct message *first, **last;
};

struct endpoint {
    struct network *network;
    size_t rank;
    tarn_transfer waiting[WAITING_MOST];
    size_t count;

    tarn_comm comm;
    process *run;
    void *arg;
};

static tarn_status start(void *context, const tarn_transfer *t, tarn_error *err)
{
    struct endpoint *const end = context;

    (void)err;
    assert_true(t->tag < TN_TAGS);
    if (t->receives) {
        assert_true(end->count < WAITING_MOST);
        end->waiting[end->count++] = *t;
        return TARN_OK;
    }
    struct message *const m = take(1, sizeof *m + t->bytes);

    *m = (struct message){.from = end->rank, .to = t->peer, .tag = t->tag, .bytes = t->bytes};
    memcpy(m->data, t->data, t->bytes);
    pthread_mutex_lock(&end->network->mutex);
    *end->network->last = m;
    end->network->last = &m->next;
    pthread_mutex_unlock(&end->network->mutex);
    return TARN_OK;
}

/* The first message that fits, out of the network. */
static struct message *find(const struct endpoint *end, const tarn_transfer *t)
{
    struct message **at = &end->network->first;

    while (*at && !((*at)->from == t->peer && (*at)->to == end->rank && (*at)->tag == t->tag))
        at = &(*at)->next;
    struct message *const found = *at;

    if (found) {
        *at = found->next;
        if (!found->next)
            end->network->last = at;
    }
    return found;
}

/* Nothing may be sent meanwhile: a later one of two transfers from the same process would get
 * what the earlier one is for. */
static tarn_status test(void *context, bool *complete, size_t *missing, size_t tag,
                        tarn_error *err)
{
    struct endpoint *const end = context;
    size_t left = 0;

    (void)err;
    *complete = true;
    pthread_mutex_lock(&end->network->mutex);
    for (size_t i = 0; i < end->count; i++) {
        const tarn_transfer t = end->waiting[i];
        struct message *const m = find(end, &t);

        if (m) {
            assert_int_equal(m->bytes, t.bytes);
            memcpy(t.data, m->data, t.bytes);
            free(m);
            continue;
        }
        if (t.tag == tag) {
            *complete = false;
            *missing = t.peer;
        }
        end->waiting[left++] = t;
    }
    pthread_mutex_unlock(&end->network->mutex);
    end->count = left;
    return TARN_OK;
}

static void *run_one(void *arg)
{
    struct endpoint *const end = arg;

    end->run(end->arg, &end->comm);
    return NULL;
}

void run_processes(size_t size, double timeout, process *run, void *arg)
{
    struct network network = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct endpoint *const ends = take(size, sizeof *ends);
    pthread_t threads[PROCESSES_MOST];

    network.last = &network.first;
    for (size_t i = 0; i < size; i++) {
        ends[i].network = &network;
        ends[i].rank = i;
        ends[i].run = run;
        ends[i].arg = arg;
        ends[i].comm = (tarn_comm){
            .rank = i,
            .size = size,
            .sharing = size,
            .timeout = timeout,
            .context = &ends[i],
            .start = start,
            .test = test,
        };
        assert_int_equal(pthread_create(&threads[i], NULL, run_one, &ends[i]), 0);
    }
    for (size_t i = 0; i < size; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (struct message *m = network.first, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(ends);
}
