/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "serve/workers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 8 };

struct tn_workers {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[THREADS_MOST];
    size_t count;
    bool ends;
    struct tn_job *first, **last;
};

static struct tn_job *next_job(struct tn_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    while (!workers->first && !workers->ends)
        pthread_cond_wait(&workers->changed, &workers->lock);
    struct tn_job *const job = workers->first;

    if (job && !(workers->first = job->next))
        workers->last = &workers->first;
    pthread_mutex_unlock(&workers->lock);
    return job;
}

static void *work(void *arg)
{
    for (struct tn_job *job; (job = next_job(arg));)
        job->run(job);
    return NULL;
}

tarn_status tn_workers_create(struct tn_workers **out, size_t threads, tarn_error *err)
{
    struct tn_workers *const workers = calloc(1, sizeof *workers);

    *out = NULL;
    if (!workers)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for threads");
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    workers->last = &workers->first;
    for (; workers->count < tn_min(threads, THREADS_MOST); workers->count++) {
        const int number =
            pthread_create(&workers->threads[workers->count], NULL, work, workers);

        if (number != 0) {
            tn_workers_free(workers);
            return tn_fail(err, TARN_ENOMEM, "cannot start a thread: %s", strerror(number));
        }
    }
    *out = workers;
    return TARN_OK;
}

void tn_workers_stop(struct tn_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    workers->ends = true;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    for (; workers->count > 0; workers->count--)
        pthread_join(workers->threads[workers->count - 1], NULL);
}

void tn_workers_free(struct tn_workers *workers)
{
    if (!workers)
        return;
    tn_workers_stop(workers);
    pthread_cond_destroy(&workers->changed);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

void tn_workers_submit(struct tn_workers *workers, struct tn_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&workers->lock);
    const bool ends = workers->ends;

    if (!ends) {
        *workers->last = job;
        workers->last = &job->next;
        pthread_cond_signal(&workers->changed);
    }
    pthread_mutex_unlock(&workers->lock);
    if (ends)
        job->run(job);
}
