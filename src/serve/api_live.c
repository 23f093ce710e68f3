/* SPDX-License-Identifier: MIT */
/* api_live.c - sound as it arrives: POST /v1/audio/live begins, pieces of raw samples follow,
 * and DELETE ends it. Each answer has the text so far. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "file/audio.h"
#include "file/json_write.h"
#include "serve/request.h"
#include "tarn/speech.h"

enum { SESSIONS_MOST = 256, PIECE = 4096 };

static const double idle_most = 300.0; /* seconds */

struct session {
    char id[TN_STATE_ID];
    const char *model;
    pthread_mutex_t lock; /* of what follows */
    tarn_recognizer *recognizer;
    struct tn_text text;
    size_t symbols;
    unsigned users; /* requests that have it, and the table; the table's lock */
    double used;
    struct session *next;
};

struct tn_live {
    pthread_mutex_t lock;
    struct session *first;
    size_t count;
};

/* ---- The table ---------------------------------------------------------- */

struct tn_live *tn_live_create(void)
{
    struct tn_live *const live = calloc(1, sizeof *live);

    if (live)
        pthread_mutex_init(&live->lock, NULL);
    return live;
}

static void session_free(struct session *session)
{
    tarn_recognizer_free(session->recognizer);
    tn_text_free(&session->text);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

void tn_live_free(struct tn_live *live)
{
    if (!live)
        return;
    while (live->first) {
        struct session *const session = live->first;

        live->first = session->next;
        session_free(session);
    }
    pthread_mutex_destroy(&live->lock);
    free(live);
}

static void drop(struct tn_live *live, struct session *session)
{
    pthread_mutex_lock(&live->lock);
    const bool last = --session->users == 0;

    session->used = tn_seconds();
    pthread_mutex_unlock(&live->lock);
    if (last)
        session_free(session);
}

/* Takes it out of the table; the lock is held. */
static struct session *take_out(struct tn_live *live, struct session **at)
{
    struct session *const session = *at;

    *at = session->next;
    live->count--;
    return --session->users == 0 ? session : NULL;
}

/* Those that nobody has used for a while. */
static void expire(struct tn_live *live)
{
    const double before = tn_seconds() - idle_most;

    pthread_mutex_lock(&live->lock);
    for (struct session **at = &live->first; *at;) {
        if ((*at)->users > 1 || (*at)->used > before) {
            at = &(*at)->next;
            continue;
        }
        session_free(take_out(live, at));
    }
    pthread_mutex_unlock(&live->lock);
}

/* For drop(). NULL: there is none. If `ends`, it is in the table no more. */
static struct session *find(struct tn_live *live, const char *id, bool ends)
{
    struct session **at, *found = NULL;

    pthread_mutex_lock(&live->lock);
    for (at = &live->first; *at && strcmp((*at)->id, id) != 0;)
        at = &(*at)->next;
    if ((found = *at)) {
        found->users++;
        if (ends)
            take_out(live, at);
    }
    pthread_mutex_unlock(&live->lock);
    return found;
}

static bool add(struct tn_live *live, struct session *session)
{
    pthread_mutex_lock(&live->lock);
    const bool fits = live->count < SESSIONS_MOST;

    if (fits) {
        session->next = live->first;
        live->first = session;
        live->count++;
    }
    pthread_mutex_unlock(&live->lock);
    return fits;
}

/* ---- Beginning ---------------------------------------------------------- */

static struct session *session_new(const struct tn_served *model, size_t rate,
                                   struct tn_refusal *refusal)
{
    const tarn_recognizer_desc desc = {.host = model->server->desc.host};
    struct session *const session = calloc(1, sizeof *session);
    tarn_error err = {0};
    tarn_status status;

    if (!session) {
        tn_refuse(refusal, 503, NULL, "not enough memory for an audio stream");
        return NULL;
    }
    pthread_mutex_init(&session->lock, NULL);
    session->model = model->name;
    session->users = 1;
    session->used = tn_seconds();
    if ((status = tn_random_id(session->id, &err)) == TARN_OK &&
        (status = tarn_recognizer_create(&session->recognizer, model->model, &desc, &err)) ==
            TARN_OK &&
        (status = tarn_recognizer_begin(session->recognizer, rate, &err)) == TARN_OK)
        return session;
    tn_refuse_status(refusal, status, NULL, &err);
    session_free(session);
    return NULL;
}

static void begin(struct tn_request *request, const struct tn_served *model, size_t rate,
                  struct tn_refusal *refusal)
{
    struct session *const session = session_new(model, rate, refusal);
    struct tn_json_writer w = {0};
    char id[TN_STATE_ID];

    if (!session)
        return;
    memcpy(id, session->id, sizeof id);
    expire(request->server->live);
    if (!add(request->server->live, session)) {
        session_free(session);
        tn_refuse(refusal, 429, NULL, "%d audio streams are open; try again later",
                  SESSIONS_MOST);
        return;
    }
    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "id", id);
    tn_json_put_text(&w, "model", model->name);
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

void tn_api_live_begin(struct tn_request *request)
{
    struct tn_refusal refusal = {0};
    struct tn_body body = {.refusal = &refusal};
    struct tn_json json = {0};
    const char *name = NULL;
    size_t rate = 16000;
    struct tn_served *model;

    if (tn_body_parse(&body, &json, request->body.data, request->body.used) &&
        tn_body_known(&body, "model sample_rate") && tn_body_text(&body, "model", &name) &&
        tn_body_count(&body, "sample_rate", &rate, TN_AUDIO_RATE_LEAST, TN_AUDIO_RATE_MOST) &&
        (model = tn_request_model(request, name, TN_SERVES_SPEECH, &refusal)))
        begin(request, model, rate, &refusal);
    tn_json_free(&json);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}

/* ---- Sound -------------------------------------------------------------- */

static void append(struct session *session, const tarn_heard *heard, size_t count)
{
    const char *const separator = tarn_recognizer_separator(session->recognizer);

    for (size_t i = 0; i < count; i++, session->symbols++)
        tn_text_print(&session->text, "%s%s", session->symbols > 0 ? separator : "",
                      heard[i].symbol);
}

static tarn_status push(struct session *session, const unsigned char *bytes, size_t n,
                        tarn_error *err)
{
    float samples[PIECE];
    const tarn_heard *heard;
    size_t count;
    tarn_status status = TARN_OK;

    for (size_t done = 0; done < n && status == TARN_OK;) {
        size_t i = 0;

        for (; i < PIECE && done < n; i++, done += 2)
            samples[i] =
                (float)(int16_t)(uint16_t)(bytes[done] | bytes[done + 1] << 8) / 32768.0f;
        status = tarn_recognizer_push(session->recognizer, &heard, &count, samples, i, err);
        if (status == TARN_OK)
            append(session, heard, count);
    }
    return status;
}

static tarn_status finish(struct session *session, tarn_error *err)
{
    const tarn_heard *heard;
    size_t count;
    const tarn_status status = tarn_recognizer_end(session->recognizer, &heard, &count, err);

    if (status == TARN_OK)
        append(session, heard, count);
    return status;
}

static void reply_text(struct tn_request *request, struct session *session, bool final)
{
    struct tn_json_writer w = {0};
    const char *const text = tn_text_end(&session->text);

    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "text", text);
    tn_json_put_bool(&w, "final", final);
    tn_json_close(&w, '}');
    w.out.failed |= !text;
    tn_reply_json(request, &w);
}

static void advance(struct tn_request *request, bool final)
{
    struct tn_live *const live = request->server->live;
    struct session *const session = find(live, request->tail, final);
    struct tn_refusal refusal = {0};
    tarn_error err = {0};
    tarn_status status;

    if (!session) {
        tn_refuse(&refusal, 404, "id", "there is no such audio stream; it may have expired");
        tn_reply_refusal(request, &refusal);
        return;
    }
    request->model = session->model;
    pthread_mutex_lock(&session->lock);
    status = final ? finish(session, &err)
                   : push(session, (const unsigned char *)request->body.data,
                          request->body.used, &err);
    if (status == TARN_OK)
        reply_text(request, session, final);
    pthread_mutex_unlock(&session->lock);
    if (status != TARN_OK) {
        tn_refuse_status(&refusal, status, NULL, &err);
        tn_reply_refusal(request, &refusal);
    }
    drop(live, session);
}

void tn_api_live_push(struct tn_request *request)
{
    struct tn_refusal refusal;

    if (request->body.used % 2 == 0) {
        advance(request, false);
        return;
    }
    tn_refuse(&refusal, 400, NULL,
              "the body has %zu bytes; it must be samples of 2 bytes, signed and little-endian",
              request->body.used);
    tn_reply_refusal(request, &refusal);
}

void tn_api_live_end(struct tn_request *request)
{
    advance(request, true);
}
