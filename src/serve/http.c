/* SPDX-License-Identifier: MIT */
/* http.c - requests as libmicrohttpd delivers them: head, body in pieces, end. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "serve/request.h"

enum {
    BLOCK = 4096,
    AT_ONCE_MOST = 16 << 10 /* bytes of a body that libmicrohttpd's thread itself reads */
};

/* ---- Sending ------------------------------------------------------------ */

/* What was sent makes room as soon as it is more than what was not: moving costs less than
 * sending, and a client that always lags a little holds no more than its backlog. */
static void forget_sent(struct tn_request *request)
{
    const size_t left = request->out.used - request->sent;

    if (request->sent < left)
        return;
    memmove(request->out.data, request->out.data + request->sent, left);
    request->out.used = left;
    request->sent = 0;
}

/* libmicrohttpd wants the next bytes; it sleeps if there are none yet. */
static ssize_t read_stream(void *own, uint64_t position, char *buffer, size_t most)
{
    struct tn_request *const request = own;
    ssize_t result = 0;

    (void)position;
    pthread_mutex_lock(&request->lock);
    const size_t n = tn_min(most, request->out.used - request->sent);

    if (request->out.failed) {
        result = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (n > 0) {
        memcpy(buffer, request->out.data + request->sent, n);
        request->sent += n;
        request->sent_bytes += n;
        result = (ssize_t)n;
        forget_sent(request);
        tn_request_measure(request);
    } else if (request->done) {
        result = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        request->asleep = true;
        MHD_suspend_connection(request->connection);
    }
    pthread_mutex_unlock(&request->lock);
    return result;
}

static void release_stream(void *own)
{
    tn_request_release(own);
}

static struct MHD_Response *still_response(const void *bytes, size_t n)
{
    return MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_PERSISTENT);
}

/* Takes `out` or the file over. */
static struct MHD_Response *response_of(struct tn_request *request)
{
    static const char no_memory[] =
        "{\"error\":{\"message\":\"not enough memory\",\"type\":\"server_error\","
        "\"param\":null,\"code\":\"unavailable\"}}\n";
    struct MHD_Response *response;

    if (request->streams) {
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream,
                                                     request, release_stream);
        if (response)
            tn_request_hold(request);
        return response;
    }
    if (request->failed) {
        request->type = "application/json";
        return still_response(no_memory, sizeof no_memory - 1);
    }
    if (request->file >= 0) {
        response = MHD_create_response_from_fd64(request->still_bytes, request->file);
        if (response)
            request->file = -1;
        request->sent_bytes = request->still_bytes;
        return response;
    }
    if (request->still) {
        request->sent_bytes = request->still_bytes;
        return still_response(request->still, request->still_bytes);
    }
    response = MHD_create_response_from_buffer(request->out.used, request->out.data,
                                               MHD_RESPMEM_MUST_FREE);
    request->sent_bytes = request->out.used;
    if (response)
        request->out = (struct tn_text){0};
    return response;
}

static bool add_headers(struct MHD_Response *response, const struct tn_request *request)
{
    const char *const cors = request->server->desc.cors;
    bool added = MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") &&
                 (!request->type || MHD_add_response_header(
                                        response, MHD_HTTP_HEADER_CONTENT_TYPE, request->type));

    if (request->streams)
        added = added && MHD_add_response_header(response, "Cache-Control", "no-store") &&
                MHD_add_response_header(response, "X-Accel-Buffering", "no");
    if (cors)
        added = added &&
                MHD_add_response_header(response, "Access-Control-Allow-Origin", cors) &&
                MHD_add_response_header(response, "Vary", "Origin");
    for (size_t i = 0; i < TN_HEADERS && request->headers[i].name; i++)
        added = added && MHD_add_response_header(response, request->headers[i].name,
                                                 request->headers[i].value);
    return added;
}

/* MHD_NO closes the connection: there is no memory to say why. */
static enum MHD_Result send_reply(struct tn_request *request)
{
    struct MHD_Response *const response = response_of(request);
    enum MHD_Result result = MHD_NO;

    request->queued = true;
    if (response && add_headers(response, request))
        result = MHD_queue_response(request->connection, request->status, response);
    if (response)
        MHD_destroy_response(response);
    return result;
}

/* ---- Access ------------------------------------------------------------- */

static const char *header(const struct tn_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

/* Takes as long wherever two texts differ. */
static bool is_key(const char *key, const char *given)
{
    const size_t length = strlen(key), n = strlen(given);
    unsigned different = length != n;

    for (size_t i = 0; i < n; i++)
        different |= (unsigned)(unsigned char)given[i] ^
                     (unsigned)(unsigned char)key[length > 0 ? i % length : 0];
    return different == 0;
}

static bool has_key(const struct tn_request *request)
{
    static const char bearer[] = "Bearer ";
    const tarn_server_desc *const desc = &request->server->desc;
    const char *const given = header(request, MHD_HTTP_HEADER_AUTHORIZATION);
    bool found = false;

    if (desc->key_count == 0)
        return true;
    if (!given || strncasecmp(given, bearer, sizeof bearer - 1) != 0)
        return false;
    for (size_t i = 0; i < desc->key_count; i++)
        found |= is_key(desc->keys[i], given + sizeof bearer - 1);
    return found;
}

/* Whether both have the same name or number, of any port. */
static bool is_same_host(const char *a, const char *b)
{
    const size_t length = strcspn(a, ":");

    return length == strcspn(b, ":") && strncasecmp(a, b, length) == 0;
}

/* Whoever owns a name can let it lead to the loopback, and a page of that name then has the
 * server's own origin, which its browser does not even mention when it gets something. Numbers
 * and localhost are nobody's. */
static bool is_safe_host(const tarn_server *server, const char *host)
{
    const char *const cors = server->desc.cors;
    const char *const slashes = cors ? strstr(cors, "://") : NULL;

    return server->desc.key_count > 0 || !server->is_local || !host || *host == '[' ||
           strspn(host, "0123456789.") == strcspn(host, ":") ||
           is_same_host(host, "localhost") || (cors && strcmp(cors, "*") == 0) ||
           (slashes && is_same_host(host, slashes + 3));
}

/* Browsers say whose page asks. A page of somebody else's must not use the server of the one
 * who looks at it. */
static bool is_own_origin(const struct tn_request *request)
{
    const char *const cors = request->server->desc.cors;
    const char *const origin = header(request, "Origin");
    const char *const host = header(request, MHD_HTTP_HEADER_HOST);
    const char *const slashes = origin ? strstr(origin, "://") : NULL;

    if (!origin || (cors && (strcmp(cors, "*") == 0 || strcmp(cors, origin) == 0)))
        return true;
    return slashes && host && strcmp(slashes + 3, host) == 0;
}

static bool check_length(const struct tn_request *request, struct tn_refusal *refusal)
{
    const char *const length = header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const size_t most = request->server->desc.max_body;

    return !length || strtoull(length, NULL, 10) <= most ||
           tn_refuse(refusal, 413, NULL, "the body has more than %zu bytes", most);
}

static bool check_access(struct tn_request *request, const char *url, const char *method,
                         struct tn_refusal *refusal)
{
    const char *const host = header(request, MHD_HTTP_HEADER_HOST);
    char allowed[TN_METHODS];

    request->route = tn_route_find(method, url, request->tail, allowed);
    if (!is_safe_host(request->server, host))
        return tn_refuse(refusal, 403, NULL,
                         "Host is '%.80s'; without keys it must be localhost, a numeric "
                         "address, or that of --cors ORIGIN",
                         host);
    if (!is_own_origin(request))
        return tn_refuse(refusal, 403, NULL,
                         "pages of another origin are not allowed; start the server with "
                         "--cors ORIGIN to allow one");
    if (!request->route && *allowed) {
        tn_reply_header(request, "Allow", "%s", allowed);
        return tn_refuse(refusal, 405, NULL, "method %.10s is not allowed here; use %s", method,
                         allowed);
    }
    if (!request->route)
        return tn_refuse(refusal, 404, NULL, "there is no such path");
    if (!request->route->open && !has_key(request))
        return tn_refuse(refusal, 401, NULL,
                         "a valid key is required: Authorization: Bearer KEY");
    if (atomic_load(&request->server->draining) && strcmp(method, "GET") != 0)
        return tn_refuse(refusal, 503, NULL, "the server is shutting down");
    return check_length(request, refusal);
}

/* ---- Steps -------------------------------------------------------------- */

/* Browsers ask before they send anything to another origin. */
static void allow_origin(struct tn_request *request)
{
    tn_reply_header(request, "Access-Control-Allow-Methods", "GET, POST, DELETE");
    tn_reply_header(request, "Access-Control-Allow-Headers", "Authorization, *");
    tn_reply_header(request, "Access-Control-Max-Age", "600");
    tn_reply(request, 204, NULL, &(struct tn_text){0});
}

static enum MHD_Result begin(tarn_server *server, struct MHD_Connection *connection,
                             const char *url, const char *method, void **own)
{
    struct tn_request *const request = calloc(1, sizeof *request);
    struct tn_refusal refusal = {0};

    if (!request)
        return MHD_NO;
    request->server = server;
    request->connection = connection;
    request->file = -1;
    request->begun = tn_seconds();
    request->references = 1;
    tarn_printable(request->method, sizeof request->method, method);
    pthread_mutex_init(&request->lock, NULL);
    atomic_fetch_add(&server->counts.open, 1);
    *own = request;
    if (!tn_framing_check(connection, &refusal)) {
        tn_reply_header(request, MHD_HTTP_HEADER_CONNECTION, "close");
        tn_reply_refusal(request, &refusal);
    } else if (strcmp(method, "OPTIONS") == 0 && server->desc.cors) {
        allow_origin(request);
    } else if (!check_access(request, url, method, &refusal)) {
        tn_reply_refusal(request, &refusal);
    }
    return request->done ? send_reply(request) : MHD_YES;
}

static bool keep_body(struct tn_request *request, const char *data, size_t size,
                      struct tn_refusal *refusal)
{
    const size_t most = request->server->desc.max_body;

    if (request->received > most)
        return tn_refuse(refusal, 413, NULL, "the body has more than %zu bytes", most);
    if (!tn_request_keep(request, size, refusal))
        return false;
    tn_text_put(&request->body, data, size);
    return !request->body.failed ||
           tn_refuse(refusal, 503, NULL, "not enough memory for the body");
}

/* A body that is refused is read for a while, so that the client listens to why, and then cut
 * off; so is one that takes too long, since nothing can be said before its end. */
static enum MHD_Result take_body(struct tn_request *request, const char *data, size_t *size)
{
    const tarn_server_desc *const desc = &request->server->desc;
    struct tn_refusal refusal;

    request->received += *size;
    if (!request->done && !keep_body(request, data, *size, &refusal)) {
        tn_request_drop_body(request);
        tn_reply_refusal(request, &refusal);
    }
    *size = 0;
    if (tn_seconds() - request->begun > desc->max_seconds) {
        request->status = 408;
        return MHD_NO;
    }
    return request->received / 2 > desc->max_body ? MHD_NO : MHD_YES;
}

static void run_job(struct tn_job *job)
{
    struct tn_request *const request =
        (struct tn_request *)(void *)((char *)job - offsetof(struct tn_request, job));

    request->route->handle(request);
    tn_request_release(request);
}

void tn_request_defer(struct tn_request *request, enum tn_pool pool)
{
    tn_request_hold(request);
    request->deferred = true;
    request->job.run = run_job;
    tn_workers_submit(request->server->workers[pool], &request->job);
}

/* All clients wait for libmicrohttpd's thread: it parses short bodies only. */
static void handle(struct tn_request *request)
{
    const struct tn_route *const route = request->route;

    request->handled = true;
    if (route->pool < TN_POOLS)
        tn_request_defer(request, route->pool);
    else if (request->body.used > AT_ONCE_MOST)
        tn_request_defer(request, TN_READERS);
    else
        route->handle(request);
}

/* The body is complete, or something has woken the connection. */
static enum MHD_Result advance(struct tn_request *request)
{
    if (!request->handled && !request->done)
        handle(request);
    pthread_mutex_lock(&request->lock);
    const bool ready = request->done || request->streams;

    if (!ready) {
        request->asleep = true;
        MHD_suspend_connection(request->connection);
    }
    pthread_mutex_unlock(&request->lock);
    return ready ? send_reply(request) : MHD_YES;
}

enum MHD_Result tn_http_access(void *server, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **own)
{
    struct tn_request *const request = *own;

    (void)version;
    if (!request)
        return begin(server, connection, url, method, own);
    if (request->queued)
        return MHD_YES;
    return *size > 0 ? take_body(request, data, size) : advance(request);
}

size_t tn_http_unescape(void *none, struct MHD_Connection *connection, char *text)
{
    (void)none;
    (void)connection;
    for (char *zero = text; (zero = strstr(zero, "%00"));)
        memcpy(zero, "///", 3);
    return MHD_http_unescape(text);
}

void tn_http_completed(void *server, struct MHD_Connection *connection, void **own,
                       enum MHD_RequestTerminationCode code)
{
    struct tn_request *const request = *own;
    tarn_server *const of = server;

    (void)connection;
    if (!request)
        return;
    pthread_mutex_lock(&request->lock);
    const bool left = request->gone || code != MHD_REQUEST_TERMINATED_COMPLETED_OK;

    request->gone = true;
    request->asleep = false;
    if (request->status == 0)
        request->status = TN_LEFT;
    const unsigned status = request->status / 100;

    pthread_mutex_unlock(&request->lock);
    atomic_fetch_add(&of->counts.left, left);
    atomic_fetch_add(&of->counts.requests[status < TN_STATUS_CLASSES ? status : 0], 1);
    atomic_fetch_sub(&of->counts.open, 1);
    tn_access_log(request);
    if (request->file >= 0)
        close(request->file);
    tn_request_release(request);
    *own = NULL;
}
