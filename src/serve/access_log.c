/* SPDX-License-Identifier: MIT */
/* access_log.c - a JSON object per request, without what is secret: keys, and names of states.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include "file/json_write.h"
#include "serve/request.h"

static void put_time(struct tn_json_writer *w)
{
    struct timespec now;
    struct tm parts;
    char text[64], whole[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(whole, sizeof whole, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s.%03ldZ", whole, now.tv_nsec / 1000000);
    tn_json_put_text(w, "time", text);
}

static void put_client(struct tn_json_writer *w, const struct tn_request *request)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *const address = info ? info->client_addr : NULL;
    char text[INET6_ADDRSTRLEN] = "";

    if (address && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, text,
                  sizeof text);
    if (address && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                  text, sizeof text);
    tn_json_put_text(w, "client", text);
}

static void put_rest(struct tn_json_writer *w, const struct tn_request *request)
{
    tn_json_put_text(w, "method", request->method);
    tn_json_put_text(w, "path", request->route ? request->route->pattern : NULL);
    tn_json_put_whole(w, "status", request->status);
    tn_json_put_whole(w, "bytes", (int64_t)request->sent_bytes);
    tn_json_put_number(w, "seconds", tn_seconds() - request->begun, 6);
    if (request->model) {
        tn_json_put_text(w, "model", request->model);
        tn_json_put_whole(w, "prompt_tokens", (int64_t)request->prompt_tokens);
        tn_json_put_whole(w, "tokens", (int64_t)atomic_load(&request->tokens));
    }
}

/* A line is written as a whole, or not if there is no memory for it. */
void tn_access_log(struct tn_request *request)
{
    tarn_server *const server = request->server;
    struct tn_json_writer w = {0};

    if (!server->log)
        return;
    tn_json_open(&w, NULL, '{');
    put_time(&w);
    put_client(&w, request);
    put_rest(&w, request);
    tn_json_close(&w, '}');
    if (!w.out.failed) {
        pthread_mutex_lock(&server->log_lock);
        fprintf(server->log, "%.*s\n", (int)w.out.used, w.out.data);
        fflush(server->log);
        pthread_mutex_unlock(&server->log_lock);
    }
    tn_text_free(&w.out);
}
