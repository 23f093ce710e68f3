/* SPDX-License-Identifier: MIT */
/* generation.c - what one request generates: its memory, the state it begins with, and the
 * states it ends with. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file/json_write.h"
#include "serve/scheduler.h"

struct tn_generation *tn_generation_new(struct tn_request *request, struct tn_served *model,
                                        const struct tn_sink *sink,
                                        const struct tn_asked *asked, size_t prompts,
                                        struct tn_refusal *refusal)
{
    struct tn_generation *const g = calloc(1, sizeof *g);
    tarn_error err = {0};

    if (!g || !(g->choices = calloc(prompts * asked->n, sizeof *g->choices)) ||
        !(g->prompts = calloc(prompts, sizeof *g->prompts))) {
        free(g ? g->choices : NULL);
        free(g);
        tn_refuse(refusal, 503, NULL, "not enough memory for a request");
        return NULL;
    }
    tn_request_hold(request);
    g->request = request;
    g->model = model;
    g->sink = sink;
    g->sampling = asked->sampling;
    g->has_seed = asked->has_seed;
    g->streams = asked->stream;
    g->n = asked->n;
    g->choice_count = prompts * g->n;
    g->prompt_count = g->waiting = prompts;
    g->deadline = request->begun + request->server->desc.max_seconds;
    atomic_init(&g->open, g->choice_count);
    for (size_t i = 0; i < g->choice_count; i++)
        g->choices[i] = (struct tn_choice){.of = g, .index = i};
    for (size_t i = 0; i < prompts; i++)
        g->prompts[i] = (struct tn_prompt){.of = g, .choices = g->choices + i * g->n};
    g->created = (long long)time(NULL);
    if (tn_random_id(g->id, &err) != TARN_OK) {
        tn_generation_free(g);
        tn_refuse(refusal, 500, NULL, "%s", err.text);
        return NULL;
    }
    if (!g->has_seed)
        g->sampling.seed = strtoull(g->id + 16, NULL, 16);
    return g;
}

void tn_generation_free(struct tn_generation *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->choice_count; i++) {
        free(g->choices[i].stream);
        free(g->choices[i].tokens);
        tn_bytes_free(&g->choices[i].state);
        tn_text_free(&g->choices[i].text);
    }
    for (size_t i = 0; i < g->prompt_count; i++)
        free(g->prompts[i].symbols);
    free(g->choices);
    free(g->prompts);
    free(g->from);
    free(g->own);
    tn_request_release(g->request);
    free(g);
}

tarn_stream *tn_stream_new(const tarn_engine *engine)
{
    const size_t size = tn_round_up(tarn_stream_size(engine), TN_ALIGN);
    tarn_stream *const stream = aligned_alloc(TN_ALIGN, size);

    if (stream)
        memset(stream, 0, size);
    return stream;
}

bool tn_generation_unpack(struct tn_generation *g, const void *bytes, size_t size,
                          struct tn_refusal *refusal)
{
    const tarn_engine *const engine = tn_scheduler_engine(g->model->scheduler);
    tarn_error err = {0};
    tarn_status status;

    if (!g->from && !(g->from = tn_stream_new(engine)))
        return tn_refuse(refusal, 503, NULL, "not enough memory for a state");
    status = tarn_streams_unpack(engine, &g->from, 1, bytes, size, &err);
    g->continues = true;
    return status == TARN_OK || tn_refuse_status(refusal, status, "state", &err);
}

const struct tn_refusal *tn_generation_refusal(const struct tn_generation *g)
{
    for (size_t i = 0; i < g->choice_count; i++)
        if (g->choices[i].refusal.status)
            return &g->choices[i].refusal;
    return NULL;
}

/* ---- The end of a choice ------------------------------------------------ */

static void close_choice(struct tn_choice *choice)
{
    struct tn_generation *const g = choice->of;

    atomic_fetch_add(&g->request->tokens, choice->drawn);
    g->sink->end(choice);
    if (atomic_fetch_sub(&g->open, 1) == 1) {
        g->sink->finish(g);
        tn_generation_free(g);
    }
}

static tarn_status pack(struct tn_choice *choice, tarn_error *err)
{
    const tarn_engine *const engine = tn_scheduler_engine(choice->of->model->scheduler);
    size_t size = 0;
    tarn_status status;

    if ((status = tarn_streams_pack(engine, NULL, &size, &choice->stream, 1, err)) != TARN_OK ||
        (status = tn_bytes_allocate(&choice->state, size, err)) != TARN_OK)
        return status;
    return tarn_streams_pack(engine, choice->state.data, &size, &choice->stream, 1, err);
}

static void save(struct tn_job *job)
{
    struct tn_choice *const choice =
        (struct tn_choice *)(void *)((char *)job - offsetof(struct tn_choice, saving));
    tarn_error err = {0};
    const tarn_status status =
        tn_store_put(choice->of->request->server->store, choice->state_id, choice->state.data,
                     choice->state.size, NULL, &err);

    if (status != TARN_OK)
        tn_refuse_status(&choice->refusal, status, "return_state", &err);
    close_choice(choice);
}

void tn_choice_end(struct tn_choice *choice)
{
    struct tn_generation *const g = choice->of;
    const bool wants = g->return_state != TN_STATE_NONE && !choice->refusal.status &&
                       choice->stream && !g->request->gone;
    tarn_error err = {0};
    tarn_status status = TARN_OK;

    choice->position = choice->stream ? tarn_stream_position(choice->stream) : 0;
    if (wants && (status = pack(choice, &err)) != TARN_OK)
        tn_refuse_status(&choice->refusal, status, "return_state", &err);
    free(choice->stream);
    choice->stream = NULL;
    if (!wants || status != TARN_OK || g->return_state != TN_STATE_BY_ID) {
        close_choice(choice);
        return;
    }
    choice->saving.run = save;
    tn_workers_submit(g->request->server->workers[TN_SAVERS], &choice->saving);
}

/* An event costs a core some 50 us, with all that system, client and browser do for it: all
 * users together get a few thousand a second, and symbols come in pairs or more where there are
 * many. */
bool tn_choice_is_due(struct tn_choice *choice)
{
    static const double least = 0.01, events_per_s = 4000.0;
    const size_t streams = tn_scheduler_streams(choice->of->model->scheduler);
    const double now = tn_scheduler_stepped(choice->of->model->scheduler);
    const double interval = fmax(least, (double)streams / events_per_s);
    const bool due = now - choice->emitted_at >= interval;

    if (due)
        choice->emitted_at = now;
    return due;
}

void tn_choice_put_state(const struct tn_choice *choice, struct tn_json_writer *w)
{
    if (choice->of->return_state == TN_STATE_NONE || !choice->state.data)
        return;
    tn_json_open(w, "state", '{');
    if (choice->of->return_state == TN_STATE_BY_ID)
        tn_json_put_text(w, "id", choice->state_id);
    else
        tn_json_put_base64(w, "data", choice->state.data, choice->state.size);
    tn_json_put_whole(w, "bytes", (int64_t)choice->state.size);
    tn_json_put_whole(w, "position", (int64_t)choice->position);
    tn_json_close(w, '}');
}
