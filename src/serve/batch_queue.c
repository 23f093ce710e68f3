/* SPDX-License-Identifier: MIT */
/* batch_queue.c - prompts that wait until there is room in the batch. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "serve/stream_batch.h"

void tn_prompts_add(struct tn_prompts *prompts, struct tn_prompt *prompt)
{
    prompt->next = NULL;
    *(prompts->first ? &prompts->last->next : &prompts->first) = prompt;
    prompts->last = prompt;
}

struct tn_prompt *tn_prompts_take(struct tn_prompts *prompts)
{
    struct tn_prompt *const prompt = prompts->first;

    if (prompt)
        prompts->first = prompt->next;
    return prompt;
}

/* ---- In ----------------------------------------------------------------- */

/* The lock is held. */
static bool has_room(const struct tn_scheduler *s, const struct tn_generation *g,
                     struct tn_refusal *refusal)
{
    const tarn_server_desc *const desc = &g->request->server->desc;

    if (s->drains)
        return tn_refuse(refusal, 503, NULL, "the server is shutting down");
    return s->seats + s->queued + g->choice_count <= desc->max_streams + desc->max_queue ||
           tn_refuse(refusal, 429, NULL, "the queue is full; try again later");
}

bool tn_scheduler_submit(struct tn_scheduler *s, struct tn_generation *g,
                         struct tn_refusal *refusal)
{
    const size_t most = g->request->server->desc.max_streams;

    if (g->n > most)
        return tn_refuse(refusal, 400, "n", "n is %zu; it must be at most %zu", g->n, most);
    pthread_mutex_lock(&s->lock);
    const bool taken = has_room(s, g, refusal);

    if (taken) {
        for (size_t i = 0; i < g->prompt_count; i++)
            tn_prompts_add(&s->queue, &g->prompts[i]);
        s->queued += g->choice_count;
        g->came_at = s->counts.steps;
        if (g->streams)
            tn_stream_begin(g->request);
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

/* ---- Out ---------------------------------------------------------------- */

/* The first if there is room for it. */
static struct tn_prompt *take_queued(struct tn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    struct tn_prompt *prompt = s->queue.first;

    if (prompt && s->seats + prompt->of->n > s->model->server->desc.max_streams)
        prompt = NULL;
    if (prompt) {
        tn_prompts_take(&s->queue);
        s->queued -= prompt->of->n;
        s->seats += prompt->of->n;
    }
    pthread_mutex_unlock(&s->lock);
    return prompt;
}

/* The last prompt of a generation gets the state itself that all begin with. */
static bool make_streams(const struct tn_scheduler *s, const struct tn_prompt *prompt)
{
    struct tn_generation *const g = prompt->of;
    tarn_stream *const from = g->from;

    if (--g->waiting == 0)
        g->from = NULL;
    for (size_t i = 0; i < g->n; i++) {
        const bool takes = i == 0 && from && g->waiting == 0;

        prompt->choices[i].stream = takes ? from : tn_stream_new(s->engine);
        if (!prompt->choices[i].stream)
            return false;
    }
    if (g->from)
        memcpy(prompt->choices[0].stream, from, tarn_stream_size(s->engine));
    return true;
}

void tn_batch_admit(struct tn_scheduler *s)
{
    for (struct tn_prompt *prompt; (prompt = take_queued(s));)
        if (make_streams(s, prompt))
            tn_prompts_add(&s->reading, prompt);
        else
            tn_batch_fail(s, prompt, 503, "not enough memory for another stream");
}

void tn_batch_sweep_queue(struct tn_scheduler *s, double now)
{
    struct tn_prompts all, kept = {0}, left = {0};

    pthread_mutex_lock(&s->lock);
    all = s->queue;
    for (struct tn_prompt *prompt; (prompt = tn_prompts_take(&all));) {
        tn_request_watch(prompt->of->request);
        const bool leaves = tn_batch_must_end(s, prompt->of, now) != NULL;

        tn_prompts_add(leaves ? &left : &kept, prompt);
        s->queued -= leaves ? prompt->of->n : 0;
    }
    s->queue = kept;
    pthread_mutex_unlock(&s->lock);
    for (struct tn_prompt *prompt; (prompt = tn_prompts_take(&left));) {
        s->seats += prompt->of->n;
        tn_batch_fail(s, prompt, prompt->of->request->gone ? 0 : 503,
                      "there was no room in the batch in time; try again later");
    }
}
