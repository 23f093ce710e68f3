/* SPDX-License-Identifier: MIT */
/* workers.h - threads that do what must not delay other requests: files and recordings. */
#ifndef TN_WORKERS_H
#define TN_WORKERS_H

#include "base/base.h"

struct tn_workers;

/* Part of whatever is to be done; nothing is allocated to submit it. */
struct tn_job {
    void (*run)(struct tn_job *job);
    struct tn_job *next;
};

tarn_status tn_workers_create(struct tn_workers **workers, size_t threads, tarn_error *err);

/* Returns when all jobs are done; what is submitted after that is done by whoever does. */
void tn_workers_stop(struct tn_workers *workers);

/* Stopped. Accepts NULL. */
void tn_workers_free(struct tn_workers *workers);

void tn_workers_submit(struct tn_workers *workers, struct tn_job *job);

#endif
