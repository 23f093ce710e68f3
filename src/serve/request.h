/* SPDX-License-Identifier: MIT */
/* request.h - one HTTP request and its reply.
 *
 * A handler answers at once, by tn_reply() and tn_reply_refusal(), or later: it takes a
 * reference for whoever works on it, and that one replies and gives the reference back. A reply
 * that streams begins with tn_stream_begin() and grows until tn_stream_end(). The connection
 * sleeps while there is nothing to send. */
#ifndef TN_REQUEST_H
#define TN_REQUEST_H

#include <microhttpd.h>

#include "serve/refusal.h"
#include "serve/server.h"

struct tn_request;

struct tn_route {
    const char *method, *pattern; /* "*" stands for one part of a path */
    void (*handle)(struct tn_request *request);
    bool open;         /* needs no key */
    enum tn_pool pool; /* TN_POOLS: at once */
};

enum {
    TN_REQUEST_TAIL = 96,
    TN_REQUEST_BACKLOG = 1 << 18,
    TN_HEADERS = 4,
    TN_METHODS = 32,
    TN_LEFT = 499 /* status of requests whose client left before the reply, as nginx's */
};

struct tn_request {
    tarn_server *server;
    struct MHD_Connection *connection;
    const struct tn_route *route;
    char method[8];
    char tail[TN_REQUEST_TAIL]; /* the part of the path that "*" is */
    struct tn_text body;
    size_t received;   /* of the body */
    size_t kept;       /* bytes of it, and for the reply, in the server's count */
    struct tn_job job; /* for a thread of its own */
    double begun;
    bool handled, queued; /* the handler was called; the reply is MHD's */
    bool deferred;        /* the handler runs on a worker */

    /* For the log. */
    const char *model;
    size_t prompt_tokens;
    atomic_size_t tokens; /* drawn */
    unsigned long long sent_bytes;

    atomic_bool gone; /* the client is */
    atomic_bool slow; /* it reads so slowly that nothing more should be made */

    pthread_mutex_t lock; /* of all below, and to set these two */
    unsigned references;
    bool asleep; /* the connection is suspended, and nobody has woken it up */
    struct tn_request *next_waking; /* the loop's */
    bool done, failed, streams;
    unsigned status;
    const char *type; /* of the content */
    struct {
        const char *name;
        char value[256];
    } headers[TN_HEADERS];
    struct tn_text out;
    size_t sent;       /* of `out` */
    int file;          /* that is the content; -1: `out` is */
    const void *still; /* content that stays; NULL: none */
    size_t still_bytes;
};

/* The table of all requests; `tail` becomes what "*" is. NULL: there is none, and `allowed` has
 * the methods that the path has, "GET, DELETE"; "": no such path. */
const struct tn_route *tn_route_find(const char *method, const char *path,
                                     char tail[TN_REQUEST_TAIL], char allowed[TN_METHODS]);

/* The model that a request names, if it does this; text is what all models of symbols do. NULL:
 * refused. */
struct tn_served *tn_request_model(struct tn_request *request, const char *name,
                                   enum tn_serves serves, struct tn_refusal *refusal);

/* ---- Replies ------------------------------------------------------------ */

void tn_reply(struct tn_request *request, unsigned status, const char *type,
              struct tn_text *text); /* takes the text over */
void tn_reply_refusal(struct tn_request *request, const struct tn_refusal *refusal);

/* Of the JSON writer, which is freed: status 200, or what went wrong. */
void tn_reply_json(struct tn_request *request, struct tn_json_writer *writer);

/* Before the reply. */
void tn_reply_header(struct tn_request *request, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names the content. True: the client has it already, and the reply is 304 without it. */
bool tn_reply_tag(struct tn_request *request, const char *tag);

/* Calls the handler again, on a worker. */
void tn_request_defer(struct tn_request *request, enum tn_pool pool);

/* Server-sent events. Once they have begun a refusal is one of them. */
void tn_stream_begin(struct tn_request *request);
void tn_stream_event(struct tn_request *request, struct tn_json_writer *writer); /* frees it */
void tn_stream_refusal(struct tn_request *request, const struct tn_refusal *refusal);
void tn_stream_end(struct tn_request *request);

/* After `out` or `sent` has changed; the lock is held. */
void tn_request_measure(struct tn_request *request);

/* Looks whether clients that sleep have hung up. */
void tn_request_watch(struct tn_request *request);

/* Counts bytes that the request keeps until its end; false: all of them together are too many.
 */
bool tn_request_keep(struct tn_request *request, size_t bytes, struct tn_refusal *refusal);

/* Frees its memory. */
void tn_request_drop_body(struct tn_request *request);

void tn_request_hold(struct tn_request *request);
void tn_request_release(struct tn_request *request);

/* ---- HTTP --------------------------------------------------------------- */

/* libmicrohttpd's callbacks; `server` is their first argument. */
enum MHD_Result tn_http_access(void *server, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **own);
/* A zero byte would end a path or a name early: it becomes "///", which none has. */
size_t tn_http_unescape(void *none, struct MHD_Connection *connection, char *text);

void tn_http_completed(void *server, struct MHD_Connection *connection, void **own,
                       enum MHD_RequestTerminationCode code);

/* False: it is not clear where the request ends, and the connection must not be used for
 * another. */
bool tn_framing_check(struct MHD_Connection *connection, struct tn_refusal *refusal);

/* ---- Handlers ----------------------------------------------------------- */

void tn_api_health(struct tn_request *request);
void tn_api_metrics(struct tn_request *request);
void tn_api_models(struct tn_request *request);
void tn_api_model(struct tn_request *request);
void tn_api_model_file(struct tn_request *request);
void tn_api_completions(struct tn_request *request);
void tn_api_image_generations(struct tn_request *request);
void tn_api_image_completions(struct tn_request *request);
void tn_api_transcriptions(struct tn_request *request);
void tn_api_live_begin(struct tn_request *request);
void tn_api_live_push(struct tn_request *request);
void tn_api_live_end(struct tn_request *request);
void tn_api_state(struct tn_request *request);
void tn_api_state_data(struct tn_request *request);
void tn_api_state_import(struct tn_request *request);
void tn_api_state_fork(struct tn_request *request);
void tn_api_state_delete(struct tn_request *request);
void tn_api_page(struct tn_request *request);

/* A line of the access log. */
void tn_access_log(struct tn_request *request);

struct tn_live *tn_live_create(void);
void tn_live_free(struct tn_live *live);

#endif
