/* SPDX-License-Identifier: MIT */
/* stream_batch.h - the parts of a scheduler: its queue, the prompts that it reads, the streams
 * that it steps. Only its thread calls what is declared here. */
#ifndef TN_STREAM_BATCH_H
#define TN_STREAM_BATCH_H

#include "serve/scheduler.h"

/* First in, first out. */
struct tn_prompts {
    struct tn_prompt *first, *last;
};

struct tn_scheduler {
    struct tn_served *model;
    tarn_engine *engine;
    size_t end; /* positions that streams can have; SIZE_MAX: any */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* of the queue and the counts */
    pthread_cond_t changed;
    struct tn_prompts queue;
    size_t queued;       /* streams of it */
    atomic_size_t seats; /* streams that have left it and not yet ended */
    atomic_bool drains;
    _Atomic double drain_until;
    struct tn_scheduler_counts counts;
    unsigned long long rate_tokens;
    double rate_since;

    /* The thread's own. */
    struct tn_prompts reading;
    struct tn_choice **active;
    size_t active_count;
    struct tn_choice **batch; /* those that are stepped, as in `streams` and `outputs` */
    tarn_stream **streams;
    float *outputs;
    double step_s;  /* that the last step took */
    double stepped; /* when it ended */

    /* For log-probabilities. */
    struct tn_rows one;
    float *logits;
    void *scratch;
};

/* ---- batch_queue.c ------------------------------------------------------ */

void tn_prompts_add(struct tn_prompts *prompts, struct tn_prompt *prompt);
struct tn_prompt *tn_prompts_take(struct tn_prompts *prompts); /* NULL: there is none */

/* Prompts for which there is room get their streams, and are read from now on. */
void tn_batch_admit(struct tn_scheduler *scheduler);

/* Those that wait and must end leave. */
void tn_batch_sweep_queue(struct tn_scheduler *scheduler, double now);

/* ---- batch_prompts.c ---------------------------------------------------- */

/* For about the time of a step. */
void tn_batch_read(struct tn_scheduler *scheduler);

/* ---- batch_step.c ------------------------------------------------------- */

/* All that are not waiting for their client to read. Returns how many. */
size_t tn_batch_step(struct tn_scheduler *scheduler);

/* Those that have ended, or must, leave; `watches`: also those whose client hung up. */
void tn_batch_sweep(struct tn_scheduler *scheduler, double now, bool watches);

/* ---- The end of streams ------------------------------------------------- */

/* Why a generation cannot go on; NULL: it can. */
const char *tn_batch_must_end(const struct tn_scheduler *scheduler,
                              const struct tn_generation *generation, double now);

/* Its seat is free. Memory of the generation ends with its last choice. */
void tn_batch_end(struct tn_scheduler *scheduler, struct tn_choice *choice, const char *finish);

/* All choices of a prompt; status 0: nobody is there to hear why. */
void tn_batch_fail(struct tn_scheduler *scheduler, struct tn_prompt *prompt, unsigned status,
                   const char *why);

#endif
