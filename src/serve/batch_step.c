/* SPDX-License-Identifier: MIT */
/* batch_step.c - a step of all streams: feed, draw, deliver. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>

#include "serve/stream_batch.h"

static bool row_is_finite(const float *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(row[i]))
            return false;
    return true;
}

/* Streams whose outputs are not finite have failed, nobody else. */
static size_t drop_infinite(struct tn_scheduler *s, size_t n)
{
    const size_t width = tarn_model_outputs(s->model->model);
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const float *const row = s->outputs + i * width;

        if (!row_is_finite(row, width)) {
            s->batch[i]->finish = "error";
            tn_refuse(&s->batch[i]->refusal, 500, NULL,
                      "the outputs of the model are not finite: its state or its weights are "
                      "too large");
            continue;
        }
        memmove(s->outputs + kept * width, row, width * sizeof *row);
        s->batch[kept] = s->batch[i];
        s->streams[kept++] = s->streams[i];
    }
    return kept;
}

static void fail_batch(struct tn_scheduler *s, size_t n, const tarn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        s->batch[i]->finish = "error";
        tn_refuse(&s->batch[i]->refusal, 500, NULL, "%s", err->text);
    }
}

/* The step is not counted yet. */
static void count_first(struct tn_scheduler *s, const struct tn_generation *g)
{
    pthread_mutex_lock(&s->lock);
    s->counts.firsts++;
    s->counts.first_steps += s->counts.steps + 1 - g->came_at;
    pthread_mutex_unlock(&s->lock);
}

static void deliver(struct tn_scheduler *s, size_t n)
{
    const size_t width = tarn_model_outputs(s->model->model);

    for (size_t i = 0; i < n; i++) {
        struct tn_choice *const choice = s->batch[i];

        if (choice->drawn++ == 0)
            count_first(s, choice->of);
        choice->of->sink->put(choice, tarn_stream_next(choice->stream), s->outputs + i * width);
        if (!choice->finish && (choice->drawn == choice->of->most ||
                                tarn_stream_position(choice->stream) >= s->end))
            choice->finish = "length";
    }
}

static size_t gather(struct tn_scheduler *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->active_count; i++)
        if (!s->active[i]->of->request->slow) {
            s->batch[n] = s->active[i];
            s->streams[n++] = s->active[i]->stream;
        }
    return n;
}

size_t tn_batch_step(struct tn_scheduler *s)
{
    const double start = tn_seconds();
    const size_t n = gather(s);
    size_t kept = n;
    tarn_error err = {0};

    if (n == 0)
        return 0;
    tarn_status status = tarn_engine_step(s->engine, s->streams, s->outputs, NULL, n, &err);

    if (status == TARN_ENUMBER) {
        kept = drop_infinite(s, n);
        status = TARN_OK;
    }
    if (status == TARN_OK && kept > 0)
        status = tarn_engine_draw(s->engine, s->streams, NULL, s->outputs, kept, &err);
    s->stepped = tn_seconds();
    if (status == TARN_OK)
        deliver(s, kept);
    else
        fail_batch(s, kept, &err);
    s->step_s = tn_seconds() - start;
    return n;
}

void tn_batch_sweep(struct tn_scheduler *s, double now, bool watches)
{
    for (struct tn_prompt *p = s->reading.first; p && watches; p = p->next)
        tn_request_watch(p->of->request);
    for (size_t i = 0; i < s->active_count;) {
        struct tn_choice *const choice = s->active[i];

        if (watches)
            tn_request_watch(choice->of->request);
        const char *const why =
            choice->finish ? choice->finish : tn_batch_must_end(s, choice->of, now);

        if (!why) {
            i++;
            continue;
        }
        s->active[i] = s->active[--s->active_count];
        tn_batch_end(s, choice, why);
    }
}
