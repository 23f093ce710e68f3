/* SPDX-License-Identifier: MIT */
/* scheduler.c - one thread per model: admit, read prompts, step, draw, again.
 *
 * The last symbol of a prompt is not read with the rest but stays the symbol that comes next,
 * so that a stream that begins and one that continues are the same thing: the step feeds all of
 * them. Prompts get as much time between two steps as a step takes, and at least one piece: the
 * time between symbols of the others at most doubles, and who comes meanwhile is admitted. */
#define _POSIX_C_SOURCE 200809L
#include "serve/scheduler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 128 };

static const double watch_every = 0.05, rate_every = 1.0, nap = 0.005;

struct tn_scheduler {
    struct tn_served *model;
    tarn_engine *engine;
    size_t end; /* positions that streams can have; SIZE_MAX: any */
    pthread_t thread;
    bool started;

    pthread_mutex_t lock; /* of the queue and the counts */
    pthread_cond_t changed;
    struct tn_generation *first, **last; /* the queue */
    size_t queued;                       /* streams of it */
    atomic_size_t seats;                 /* streams that have left it and not yet ended */
    atomic_bool drains;
    _Atomic double drain_until;
    struct tn_scheduler_counts counts;
    unsigned long long rate_tokens;
    double rate_since;

    /* The thread's own. */
    struct tn_generation *reading, **reading_last; /* prompts */
    struct tn_choice **active;
    size_t active_count;
    struct tn_choice **batch; /* those that are stepped, as in `streams` and `outputs` */
    tarn_stream **streams;
    float *outputs;
    double step_s, watched;

    /* For log-probabilities. */
    struct tn_rows one;
    float *logits;
    void *scratch;
};

const tarn_engine *tn_scheduler_engine(const struct tn_scheduler *s)
{
    return s->engine;
}

size_t tn_scheduler_streams(const struct tn_scheduler *s)
{
    return s->seats;
}

const float *tn_scheduler_logits(struct tn_scheduler *s, const float *outputs)
{
    const struct tn_head *const head = &s->engine->model->arch.head;

    if (!head->row->logits)
        return outputs;
    head->row->logits(head, &s->one, s->logits, outputs, s->scratch);
    return s->logits;
}

/* ---- Choices ------------------------------------------------------------ */

/* Its seat is free. */
static void end_choice(struct tn_scheduler *s, struct tn_choice *choice, const char *finish)
{
    if (!choice->finish)
        choice->finish = finish;
    s->seats--;
    tn_choice_end(choice);
}

/* Memory of the generation ends with its last choice. */
static void fail_all(struct tn_scheduler *s, struct tn_generation *g, unsigned status,
                     const char *why)
{
    const size_t n = g->n;
    struct tn_choice *const choices = g->choices;

    for (size_t i = 0; i < n; i++)
        if (status)
            tn_refuse(&choices[i].refusal, status, NULL, "%s", why);
    for (size_t i = 0; i < n; i++)
        end_choice(s, &choices[i], "error");
}

static const char *must_end(const struct tn_scheduler *s, const struct tn_generation *g,
                            double now)
{
    if (tn_request_gone(g->request))
        return "cancelled";
    if (now >= g->deadline)
        return "time";
    return s->drains && now >= s->drain_until ? "shutdown" : NULL;
}

/* ---- Queue -------------------------------------------------------------- */

bool tn_scheduler_submit(struct tn_scheduler *s, struct tn_generation *g,
                         struct tn_refusal *refusal)
{
    const tarn_server_desc *const desc = &g->request->server->desc;
    bool taken = true;

    if (g->n > desc->max_streams)
        return tn_refuse(refusal, 400, "n", "n is %zu; it must be at most %zu", g->n,
                         desc->max_streams);
    pthread_mutex_lock(&s->lock);
    if (s->drains)
        taken = tn_refuse(refusal, 503, NULL, "the server is shutting down");
    else if (s->seats + s->queued + g->n > desc->max_streams + desc->max_queue)
        taken = tn_refuse(refusal, 429, NULL, "the queue is full; try again later");
    if (taken) {
        g->next = NULL;
        *s->last = g;
        s->last = &g->next;
        s->queued += g->n;
        if (g->streams)
            tn_stream_begin(g->request);
        pthread_cond_signal(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return taken;
}

/* The first of the queue if there is room for it. */
static struct tn_generation *take_queued(struct tn_scheduler *s)
{
    pthread_mutex_lock(&s->lock);
    struct tn_generation *const g = s->first;
    const bool fits = g && s->seats + g->n <= g->request->server->desc.max_streams;

    if (fits) {
        if (!(s->first = g->next))
            s->last = &s->first;
        s->queued -= g->n;
        s->seats += g->n;
    }
    pthread_mutex_unlock(&s->lock);
    return fits ? g : NULL;
}

static bool make_streams(const struct tn_scheduler *s, struct tn_generation *g)
{
    for (size_t i = 0; i < g->n; i++) {
        g->choices[i].stream = i == 0 && g->from ? g->from : tn_stream_new(s->engine);
        if (i == 0)
            g->from = NULL;
        if (!g->choices[i].stream)
            return false;
    }
    return true;
}

static void admit(struct tn_scheduler *s)
{
    for (struct tn_generation *g; (g = take_queued(s));) {
        if (!make_streams(s, g)) {
            fail_all(s, g, 503, "not enough memory for another stream");
            continue;
        }
        g->next = NULL;
        *s->reading_last = g;
        s->reading_last = &g->next;
    }
}

/* ---- Prompts ------------------------------------------------------------ */

static tarn_status set_sampling(struct tn_generation *g, tarn_error *err)
{
    tarn_stream *const first = g->choices[0].stream;
    tarn_status status = TARN_OK;

    if (!g->has_seed && g->continues) {
        g->sampling.seed = first->head.seed;
        g->sampling.number = first->head.number;
    }
    for (size_t i = 0; i < g->n && status == TARN_OK; i++, g->sampling.number++)
        status = tarn_stream_sampling(g->choices[i].stream, &g->sampling, err);
    return status;
}

/* All choices go on from the first, whose next symbol is the last of the prompt. */
static void join(struct tn_scheduler *s, struct tn_generation *g)
{
    tarn_stream *const first = g->choices[0].stream;
    const size_t size = tarn_stream_size(s->engine);
    tarn_error err;

    if (g->prompt_count > 0)
        first->head.drawn = g->prompt[g->prompt_count - 1] + 1;
    for (size_t i = 1; i < g->n; i++)
        memcpy(g->choices[i].stream, first, size);
    if (set_sampling(g, &err) != TARN_OK) {
        fail_all(s, g, 400, err.text);
        return;
    }
    const size_t n = g->n, most = g->most;
    struct tn_choice *const choices = g->choices;

    for (size_t i = 0; i < n; i++)
        if (most == 0)
            end_choice(s, &choices[i], "length");
        else
            s->active[s->active_count++] = &choices[i];
}

/* A piece of the first prompt in the list, which then stands last. */
static void read_piece(struct tn_scheduler *s, double now)
{
    struct tn_generation *const g = s->reading;
    tarn_stream *const stream = g->choices[0].stream;
    const char *const why = must_end(s, g, now);
    tarn_error err;

    if (!(s->reading = g->next))
        s->reading_last = &s->reading;
    g->next = NULL;
    if (why) {
        fail_all(s, g, strcmp(why, "cancelled") == 0 ? 0 : 503,
                 "the prompt was not read in time");
        return;
    }
    tarn_status status = TARN_OK;

    if (g->prompt_count > 0 && stream->head.drawn > 0)
        status = tarn_engine_step(s->engine, &stream, NULL, NULL, 1, &err);
    const size_t left = g->prompt_count > 0 ? g->prompt_count - 1 - g->fed : 0;
    const size_t n = tn_min(left, PIECE);

    if (status == TARN_OK && n > 0)
        status = tarn_engine_prefill(s->engine, stream, NULL, g->prompt + g->fed, n, &err);
    g->fed += n;
    if (status != TARN_OK) {
        fail_all(s, g, status == TARN_EINVAL ? 400 : 500, err.text);
    } else if (left > n) {
        *s->reading_last = g;
        s->reading_last = &g->next;
    } else {
        join(s, g);
    }
}

static void read_prompts(struct tn_scheduler *s)
{
    const double start = tn_seconds();
    double now = start;

    for (; s->reading && (now == start || now - start < s->step_s); now = tn_seconds())
        read_piece(s, now);
}

/* ---- Steps -------------------------------------------------------------- */

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

static void deliver(struct tn_scheduler *s, size_t n)
{
    const size_t width = tarn_model_outputs(s->model->model);

    for (size_t i = 0; i < n; i++) {
        struct tn_choice *const choice = s->batch[i];

        choice->drawn++;
        choice->of->sink->put(choice, tarn_stream_next(choice->stream), s->outputs + i * width);
        if (!choice->finish && (choice->drawn == choice->of->most ||
                                tarn_stream_position(choice->stream) >= s->end))
            choice->finish = "length";
    }
}

/* Of all that are not waiting for their client to read. Returns how many. */
static size_t step(struct tn_scheduler *s)
{
    size_t n = 0;
    tarn_error err = {0};
    const double start = tn_seconds();

    for (size_t i = 0; i < s->active_count; i++)
        if (!s->active[i]->finish && !tn_request_is_slow(s->active[i]->of->request)) {
            s->batch[n] = s->active[i];
            s->streams[n++] = s->active[i]->stream;
        }
    if (n == 0)
        return 0;
    size_t kept = n;
    tarn_status status = tarn_engine_step(s->engine, s->streams, s->outputs, NULL, n, &err);

    if (status == TARN_ENUMBER) {
        kept = drop_infinite(s, n);
        status = TARN_OK;
    }
    if (status == TARN_OK && kept > 0)
        status = tarn_engine_draw(s->engine, s->streams, NULL, s->outputs, kept, &err);
    if (status == TARN_OK)
        deliver(s, kept);
    else
        fail_batch(s, kept, &err);
    s->step_s = tn_seconds() - start;
    return n;
}

/* Those that have ended, or must, leave. */
static void sweep(struct tn_scheduler *s)
{
    const double now = tn_seconds();
    const bool watches = now - s->watched >= watch_every;

    if (watches)
        s->watched = now;
    for (struct tn_generation *g = s->reading; g && watches; g = g->next)
        tn_request_watch(g->request);
    for (size_t i = 0; i < s->active_count;) {
        struct tn_choice *const choice = s->active[i];

        if (watches)
            tn_request_watch(choice->of->request);
        const char *const why = choice->finish ? choice->finish : must_end(s, choice->of, now);

        if (!why) {
            i++;
            continue;
        }
        s->active[i] = s->active[--s->active_count];
        end_choice(s, choice, why);
    }
}

/* Those that wait may leave as well. */
static void sweep_queue(struct tn_scheduler *s)
{
    struct tn_generation *left = NULL, **at;
    const double now = tn_seconds();

    pthread_mutex_lock(&s->lock);
    for (at = &s->first; *at;) {
        struct tn_generation *const g = *at;

        tn_request_watch(g->request);
        if (!must_end(s, g, now)) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        s->queued -= g->n;
        g->next = left;
        left = g;
    }
    s->last = at;
    pthread_mutex_unlock(&s->lock);
    while (left) {
        struct tn_generation *const g = left;

        left = g->next;
        s->seats += g->n;
        fail_all(s, g, tn_request_gone(g->request) ? 0 : 503,
                 "there was no room in the batch in time; try again later");
    }
}

/* ---- The thread --------------------------------------------------------- */

static void count(struct tn_scheduler *s, size_t stepped)
{
    const double now = tn_seconds();

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
    while (!s->first && s->seats == 0 && !s->drains)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool some = s->first || s->seats > 0;

    pthread_mutex_unlock(&s->lock);
    return some;
}

static void *run(void *arg)
{
    struct tn_scheduler *const s = arg;
    double swept = 0.0;

    while (wait_for_work(s)) {
        admit(s);
        read_prompts(s);
        const size_t stepped = step(s);

        count(s, stepped); /* before clients hear of it */
        sweep(s);
        if (tn_seconds() - swept >= watch_every) {
            swept = tn_seconds();
            sweep_queue(s);
        }
        if (stepped == 0 && !s->reading && s->seats > 0)
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
    s->last = &s->first;
    s->reading_last = &s->reading;
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
