/* SPDX-License-Identifier: MIT */
/* scheduler.c - one thread per model: admit, read prompts, step, draw, again. */
#define _POSIX_C_SOURCE 200809L
#include "serve/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/http_loop.h"
#include "serve/stream_batch.h"

static const double watch_every = 0.05, rate_every = 1.0, nap = 0.005;

const tarn_engine *tn_scheduler_engine(const struct tn_scheduler *s)
{
    return s->engine;
}

size_t tn_scheduler_streams(const struct tn_scheduler *s)
{
    return s->seats;
}

double tn_scheduler_stepped(const struct tn_scheduler *s)
{
    return s->stepped;
}

const float *tn_scheduler_logits(struct tn_scheduler *s, const float *outputs)
{
    const struct tn_head *const head = &s->engine->model->arch.head;

    if (!head->row->logits)
        return outputs;
    head->row->logits(head, &s->one, s->logits, outputs, s->scratch);
    return s->logits;
}

/* ---- The end of streams ------------------------------------------------- */

void tn_batch_end(struct tn_scheduler *s, struct tn_choice *choice, const char *finish)
{
    if (!choice->finish)
        choice->finish = finish;
    s->seats--;
    tn_choice_end(choice);
}

void tn_batch_fail(struct tn_scheduler *s, struct tn_prompt *prompt, unsigned status,
                   const char *why)
{
    const size_t n = prompt->of->n;
    struct tn_choice *const choices = prompt->choices;

    for (size_t i = 0; i < n; i++)
        if (status)
            tn_refuse(&choices[i].refusal, status, NULL, "%s", why);
    for (size_t i = 0; i < n; i++)
        tn_batch_end(s, &choices[i], "error");
}

const char *tn_batch_must_end(const struct tn_scheduler *s, const struct tn_generation *g,
                              double now)
{
    if (g->request->gone)
        return "cancelled";
    if (now >= g->deadline)
        return "time";
    return s->drains && now >= s->drain_until ? "shutdown" : NULL;
}

/* ---- The thread --------------------------------------------------------- */

static void count(struct tn_scheduler *s, size_t stepped, double now)
{
    pthread_mutex_lock(&s->lock);
    struct tn_scheduler_counts *const counts = &s->counts;

    counts->steps += stepped > 0;
    counts->tokens += stepped;
    counts->step_seconds += stepped > 0 ? s->step_s : 0.0;
    if (now - s->rate_since >= rate_every) {
        counts->tokens_per_s =
            (double)(counts->tokens - s->rate_tokens) / (now - s->rate_since);
        s->rate_tokens = counts->tokens;
        s->rate_since = now;
    }
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add(&s->model->server->counts.tokens, stepped);
}

struct tn_scheduler_counts tn_scheduler_count(struct tn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    struct tn_scheduler_counts counts = s->counts;

    counts.queued = s->queued;
    counts.streams = s->seats;
    if (tn_seconds() - s->rate_since > 2.0 * rate_every)
        counts.tokens_per_s = 0.0;
    pthread_mutex_unlock(&s->lock);
    return counts;
}

static void sleep_for(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * seconds)}, NULL);
}

/* False: there is nothing to do, and will not be. */
static bool wait_for_work(struct tn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->queue.first && s->seats == 0 && !s->drains)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool some = s->queue.first || s->seats > 0;

    pthread_mutex_unlock(&s->lock);
    return some;
}

static void *run(void *arg)
{
    struct tn_scheduler *const s = arg;
    double watched = 0.0;

    tn_http_loop_hold();
    while (wait_for_work(s)) {
        tn_batch_admit(s);
        tn_batch_read(s);
        const size_t stepped = tn_batch_step(s);
        const double now = tn_seconds();
        const bool watches = now - watched >= watch_every;

        count(s, stepped, now); /* before clients hear of it */
        tn_batch_sweep(s, now, watches);
        if (watches) {
            watched = now;
            tn_batch_sweep_queue(s, now);
        }
        tn_http_loop_send(s->model->server->loop);
        if (stepped == 0 && !s->reading.first && s->seats > 0)
            sleep_for(nap); /* all clients are slow */
    }
    return NULL;
}

/* ---- Life --------------------------------------------------------------- */

/* States that grow need a limit. */
static tarn_status make_engine(struct tn_scheduler *s, tarn_error *err)
{
    const tarn_server_desc *const desc = &s->model->server->desc;
    const tarn_image_size size = s->model->size;
    const size_t pixels = size.height * size.width * size.channels;
    tarn_engine_desc how = {
        .longest = s->model->serves == TN_SERVES_IMAGE ? pixels - 1 : 0,
        .precision = desc->precision,
        .host = desc->host,
    };
    const tarn_status status = tarn_engine_create(&s->engine, s->model->model, &how, err);

    if (status != TARN_EINVAL || how.longest > 0)
        return status;
    how.longest = desc->max_context;
    return tarn_engine_create(&s->engine, s->model->model, &how, err);
}

static bool make_room(struct tn_scheduler *s)
{
    const size_t most = s->model->server->desc.max_streams;
    const struct tn_head *const head = &s->model->model->arch.head;

    s->one = (struct tn_rows){s->engine->host.kernels, 1, 1, head->outputs};
    s->active = calloc(most, sizeof *s->active);
    s->batch = calloc(most, sizeof *s->batch);
    s->streams = calloc(most, sizeof *s->streams);
    s->outputs = calloc(most, head->outputs * sizeof *s->outputs);
    s->logits = calloc(head->symbols, sizeof *s->logits);
    s->scratch = malloc(tn_head_scratch_size(head, &s->one, 1) + 1);
    return s->active && s->batch && s->streams && s->outputs && s->logits && s->scratch;
}

tarn_status tn_scheduler_create(struct tn_scheduler **out, struct tn_served *model,
                                tarn_error *err)
{
    struct tn_scheduler *const s = calloc(1, sizeof *s);
    tarn_status status;

    *out = NULL;
    if (!s)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a scheduler");
    s->model = model;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if ((status = make_engine(s, err)) == TARN_OK && !make_room(s))
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for %zu streams",
                         model->server->desc.max_streams);
    if (status == TARN_OK) {
        s->end = tn_engine_end(s->engine);
        s->started = pthread_create(&s->thread, NULL, run, s) == 0;
        if (!s->started)
            status = tn_fail(err, TARN_ENOMEM, "cannot start a thread");
    }
    if (status == TARN_OK)
        *out = s;
    else
        tn_scheduler_free(s);
    return status;
}

void tn_scheduler_drain(struct tn_scheduler *s, double deadline)
{
    pthread_mutex_lock(&s->lock);
    s->drain_until = deadline;
    s->drains = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void tn_scheduler_stop(struct tn_scheduler *s)
{
    if (!s || !s->started)
        return;
    tn_scheduler_drain(s, 0.0);
    pthread_join(s->thread, NULL);
    s->started = false;
}

void tn_scheduler_free(struct tn_scheduler *s)
{
    if (!s)
        return;
    tn_scheduler_stop(s);
    tarn_engine_free(s->engine, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->active);
    free(s->batch);
    free(s->streams);
    free(s->outputs);
    free(s->logits);
    free(s->scratch);
    free(s);
}
