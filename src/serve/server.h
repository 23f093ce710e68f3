/* SPDX-License-Identifier: MIT */
/* server.h - `tarn_server` is this: models with their schedulers, saved states, limits, and
 * what was counted. */
#ifndef TN_SERVER_H
#define TN_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/texts.h"
#include "generate/engine.h"
#include "serve/state_store.h"
#include "serve/workers.h"
#include "tarn/image.h"
#include "tarn/serve.h"
#include "tarn/train.h"

enum tn_serves { TN_SERVES_TEXT, TN_SERVES_IMAGE, TN_SERVES_SPEECH };

/* Who does what takes time. Reading does not wait for saving, which waits for the disk. */
enum tn_pool { TN_READERS, TN_SAVERS, TN_LISTENERS, TN_POOLS };

/* A model that is served. */
struct tn_served {
    tarn_server *server;
    const char *name, *path; /* path NULL: its file is not offered */
    const tarn_model *model;
    enum tn_serves serves;
    tarn_task *task;
    tarn_image_size size;           /* of images */
    struct tn_scheduler *scheduler; /* NULL: speech */
    uint64_t fingerprint;
};

enum { TN_STATUS_CLASSES = 6 };

/* Counted since the start. */
struct tn_counts {
    atomic_ullong requests[TN_STATUS_CLASSES]; /* by the first digit of their status */
    atomic_ullong prompt_tokens, tokens;
    atomic_ullong left;       /* clients that did not wait for the end */
    atomic_size_t open;       /* requests now */
    atomic_size_t body_bytes; /* of their bodies */
};

struct tarn_server {
    tarn_server_desc desc; /* with its defaults filled in; texts are copies */
    struct tn_served *models;
    size_t model_count;
    struct tn_http_loop *loop;
    size_t port;
    bool is_local; /* only this machine can connect */
    struct tn_store *store;
    struct tn_workers *workers[TN_POOLS];
    struct tn_live *live; /* sounds that are under way */
    FILE *log;
    pthread_mutex_t log_lock;
    sem_t stop;
    atomic_bool draining;
    double begun;          /* tn_seconds() */
    struct tn_texts texts; /* of the desc and its models */
    const char **keys;
    struct tn_counts counts;
};

struct tn_refusal;

/* NULL: refused, there is no such model. */
struct tn_served *tn_server_model(tarn_server *server, const char *name,
                                  struct tn_refusal *refusal);

#endif
