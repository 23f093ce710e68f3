/* SPDX-License-Identifier: MIT */
/* request.c - replies: made by any thread, sent by libmicrohttpd's. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "serve/request.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http_loop.h"

enum { BODIES_MOST = 16 }; /* bodies of the largest size that are kept at a time */

/* ---- Life --------------------------------------------------------------- */

void tn_request_hold(struct tn_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->references++;
    pthread_mutex_unlock(&request->lock);
}

void tn_request_release(struct tn_request *request)
{
    pthread_mutex_lock(&request->lock);
    const bool last = --request->references == 0;

    pthread_mutex_unlock(&request->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&request->lock);
    tn_request_drop_body(request);
    tn_text_free(&request->out);
    free(request);
}

/* Those of all clients together are bounded. */
bool tn_request_keep(struct tn_request *request, size_t bytes, struct tn_refusal *refusal)
{
    tarn_server *const server = request->server;
    const size_t all = atomic_fetch_add(&server->counts.body_bytes, bytes) + bytes;

    request->kept += bytes;
    return all / BODIES_MOST <= server->desc.max_body ||
           tn_refuse(refusal, 429, NULL,
                     "the server is busy with large requests; try again later");
}

void tn_request_drop_body(struct tn_request *request)
{
    tn_text_free(&request->body);
    atomic_fetch_sub(&request->server->counts.body_bytes, request->kept);
    request->kept = 0;
}

/* The lock is held. */
static void wake(struct tn_request *request)
{
    if (!request->asleep)
        return;
    request->asleep = false;
    tn_http_loop_wake(request->server->loop, request);
}

void tn_request_measure(struct tn_request *request)
{
    request->slow = request->out.used - request->sent > TN_REQUEST_BACKLOG;
}

/* A suspended connection is not polled by libmicrohttpd. Its descriptor is open until the
 * request is gone. */
void tn_request_watch(struct tn_request *request)
{
    pthread_mutex_lock(&request->lock);
    if (!request->gone && request->asleep) {
        const union MHD_ConnectionInfo *const info =
            MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct pollfd about = {.fd = info ? info->connect_fd : -1, .events = POLLRDHUP};

        if (about.fd >= 0 && poll(&about, 1, 0) > 0 &&
            about.revents & (POLLRDHUP | POLLHUP | POLLERR))
            request->gone = true;
    }
    pthread_mutex_unlock(&request->lock);
}

struct tn_served *tn_request_model(struct tn_request *request, const char *name,
                                   enum tn_serves serves, struct tn_refusal *refusal)
{
    static const char *const needed[] = {"a model of text or images", "an image model",
                                         "a speech model"};
    struct tn_served *const model =
        name ? tn_server_model(request->server, name, refusal) : NULL;

    if (!name)
        tn_refuse(refusal, 400, "model", "model must be given");
    if (!model)
        return NULL;
    if (serves != model->serves &&
        !(serves == TN_SERVES_TEXT && model->serves == TN_SERVES_IMAGE)) {
        tn_refuse(refusal, 400, "model", "model is '%s'; it must be %s", name, needed[serves]);
        return NULL;
    }
    request->model = model->name;
    return model;
}

/* ---- Whole replies ------------------------------------------------------ */

void tn_reply(struct tn_request *request, unsigned status, const char *type,
              struct tn_text *text)
{
    pthread_mutex_lock(&request->lock);
    if (!request->done) {
        request->status = request->gone ? TN_LEFT : text->failed ? 503 : status;
        request->type = type;
        request->streams = false;
        tn_text_free(&request->out);
        request->out = *text;
        request->failed = text->failed;
        request->done = true;
        *text = (struct tn_text){0};
        wake(request);
    }
    pthread_mutex_unlock(&request->lock);
    tn_text_free(text);
}

static void reply_json(struct tn_request *request, unsigned status, struct tn_json_writer *w)
{
    tn_text_put(&w->out, "\n", 1);
    tn_reply(request, status, "application/json", &w->out);
}

void tn_reply_refusal(struct tn_request *request, const struct tn_refusal *refusal)
{
    struct tn_json_writer w = {0};

    tn_refusal_write(refusal, &w);
    if (refusal->status == 429)
        tn_reply_header(request, "Retry-After", "1");
    if (refusal->status == 401)
        tn_reply_header(request, "WWW-Authenticate", "Bearer");
    reply_json(request, refusal->status, &w);
}

void tn_reply_json(struct tn_request *request, struct tn_json_writer *writer)
{
    reply_json(request, 200, writer);
}

void tn_reply_header(struct tn_request *request, const char *name, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (size_t i = 0; i < TN_HEADERS; i++)
        if (!request->headers[i].name) {
            request->headers[i].name = name;
            vsnprintf(request->headers[i].value, sizeof request->headers[i].value, format,
                      args);
            break;
        }
    va_end(args);
}

bool tn_reply_tag(struct tn_request *request, const char *tag)
{
    const char *const known = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
                                                          MHD_HTTP_HEADER_IF_NONE_MATCH);

    tn_reply_header(request, "ETag", "%s", tag);
    return known && strstr(known, tag) != NULL;
}

/* ---- Streams ------------------------------------------------------------ */

void tn_stream_begin(struct tn_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->status = 200;
    request->type = "text/event-stream";
    request->streams = true;
    wake(request);
    pthread_mutex_unlock(&request->lock);
}

/* Without memory for it, the stream is cut off: it must not seem whole. */
void tn_stream_event(struct tn_request *request, struct tn_json_writer *writer)
{
    pthread_mutex_lock(&request->lock);
    request->out.failed |= writer->out.failed;
    if (!request->gone) {
        tn_text_put(&request->out, "data: ", 6);
        tn_text_put(&request->out, writer->out.data, writer->out.used);
        tn_text_put(&request->out, "\n\n", 2);
    }
    tn_request_measure(request);
    wake(request);
    pthread_mutex_unlock(&request->lock);
    tn_text_free(&writer->out);
}

void tn_stream_refusal(struct tn_request *request, const struct tn_refusal *refusal)
{
    struct tn_json_writer w = {0};

    tn_refusal_write(refusal, &w);
    tn_stream_event(request, &w);
}

void tn_stream_end(struct tn_request *request)
{
    static const char done[] = "data: [DONE]\n\n";

    pthread_mutex_lock(&request->lock);
    if (!request->gone)
        tn_text_put(&request->out, done, sizeof done - 1);
    tn_request_measure(request);
    request->done = true;
    wake(request);
    pthread_mutex_unlock(&request->lock);
}
