/* SPDX-License-Identifier: MIT */
/* server.c - the server as a whole: checked, started, stopped. */
#define _POSIX_C_SOURCE 200809L
#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/http_loop.h"
#include "serve/request.h"
#include "serve/scheduler.h"

enum {
    READERS = 2,
    SAVERS = 4,
    LISTENERS = 2,
    CONNECTION_MEMORY = 12 << 10, /* the head of a request must fit in it */
    CONNECTION_STEP = 2 << 10,
    IDLE_SECONDS = 60,
    BACKLOG = 4096
};

/* Seconds that threads of files and connections want to run at a time: they then run as soon as
 * they wake up, and not when threads that compute have used up theirs. */
static const double short_slice = 1e-4;

struct tn_served *tn_server_model(tarn_server *server, const char *name,
                                  struct tn_refusal *refusal)
{
    for (size_t i = 0; i < server->model_count; i++)
        if (strcmp(server->models[i].name, name) == 0)
            return &server->models[i];
    tn_refuse(refusal, 404, "model", "there is no model '%.60s'", name);
    refusal->code = "model_not_found";
    return NULL;
}

bool tarn_server_available(void)
{
    return true;
}

/* ---- Settings ----------------------------------------------------------- */

static void fill_in(tarn_server_desc *desc)
{
    const size_t states = desc->state_folder ? 1000000 : 1000;

    desc->address = desc->address ? desc->address : "127.0.0.1";
    desc->max_streams = desc->max_streams ? desc->max_streams : 1024;
    desc->max_queue = desc->max_queue ? desc->max_queue : 1024;
    desc->max_tokens = desc->max_tokens ? desc->max_tokens : 65536;
    desc->max_context = desc->max_context ? desc->max_context : 4096;
    desc->max_body = desc->max_body ? desc->max_body : (size_t)32 << 20;
    desc->max_connections = desc->max_connections ? desc->max_connections : 16384;
    desc->max_seconds = desc->max_seconds > 0.0 ? desc->max_seconds : 600.0;
    desc->drain_seconds = desc->drain_seconds > 0.0 ? desc->drain_seconds : 10.0;
    desc->max_states = desc->max_states ? desc->max_states : states;
}

static tarn_status check_name(const char *name, const tarn_server_desc *desc, size_t index,
                              tarn_error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";

    if (!name || !*name || strlen(name) > 64 || strspn(name, allowed) != strlen(name))
        return tn_fail(err, TARN_EINVAL,
                       "model name is '%.80s'; it must have 1 to 64 characters: letters, "
                       "digits, '.', '_' and '-'",
                       name ? name : "");
    for (size_t i = 0; i < index; i++)
        if (strcmp(desc->models[i].name, name) == 0)
            return tn_fail(err, TARN_EINVAL,
                           "two models have the name '%s'; give one of them another name",
                           name);
    return TARN_OK;
}

static tarn_status check(const tarn_server_desc *desc, tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (!desc->models || desc->model_count == 0)
        return tn_fail(err, TARN_EINVAL, "models must not be NULL, nor model_count 0");
    for (size_t i = 0; i < desc->model_count && status == TARN_OK; i++)
        status = desc->models[i].model
                     ? check_name(desc->models[i].name, desc, i, err)
                     : tn_fail(err, TARN_EINVAL, "models[%zu].model must not be NULL", i);
    for (size_t i = 0; i < desc->key_count && status == TARN_OK; i++)
        if (!desc->keys || !desc->keys[i] || !*desc->keys[i])
            status = tn_fail(err, TARN_EINVAL, "keys[%zu] must not be NULL or empty", i);
    if (status == TARN_OK && desc->port > 65535)
        status = tn_fail(err, TARN_EINVAL, "port is %zu; it must be at most 65535", desc->port);
    return status;
}

/* Texts are the server's own. False: not enough memory. */
static bool copy_text(tarn_server *server, const char **text)
{
    *text = tn_texts_copy(&server->texts, *text, strlen(*text));
    return *text != NULL;
}

static tarn_status copy_texts(tarn_server *server, tarn_error *err)
{
    tarn_server_desc *const desc = &server->desc;
    const char **const all[] = {&desc->address, &desc->precision, &desc->state_folder,
                                &desc->cors, &desc->log};
    const char **const keys = calloc(desc->key_count + 1, sizeof *keys);
    bool copied = keys != NULL;

    server->keys = keys;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && copied; i++)
        copied = !*all[i] || copy_text(server, all[i]);
    for (size_t i = 0; i < desc->key_count && copied; i++) {
        keys[i] = desc->keys[i];
        copied = copy_text(server, &keys[i]);
    }
    desc->keys = keys;
    return copied ? TARN_OK : tn_fail(err, TARN_ENOMEM, "not enough memory for a server");
}

/* ---- Models ------------------------------------------------------------- */

static tarn_status open_task(struct tn_served *model, tarn_error *err)
{
    const tarn_config *const config = tarn_model_config(model->model);
    char spec[TARN_NAME_SIZE];

    if (*config->task)
        snprintf(spec, sizeof spec, "%s", config->task);
    else
        snprintf(spec, sizeof spec, "copy:symbols=%zu",
                 config->symbols > 1 ? config->symbols - 1 : 1);
    if (tarn_task_image(&model->size, spec)) {
        model->serves = TN_SERVES_IMAGE;
        if (model->size.height * model->size.width * model->size.channels < 2)
            return tn_fail(err, TARN_EINVAL,
                           "model '%s': task '%s' does not give the size of the images",
                           model->name, spec);
    } else {
        model->serves = config->frames > 0 ? TN_SERVES_SPEECH : TN_SERVES_TEXT;
    }
    return tarn_task_open(&model->task, spec, err);
}

static tarn_status open_model(tarn_server *server, struct tn_served *model,
                              const tarn_served_model *given, tarn_error *err)
{
    tarn_status status;

    *model = (struct tn_served){
        .server = server,
        .model = given->model,
        .name = given->name,
        .path = given->path,
        .fingerprint = tarn_model_fingerprint(given->model),
    };
    server->model_count++;
    if (!copy_text(server, &model->name) || (given->path && !copy_text(server, &model->path)))
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a model");
    if ((status = open_task(model, err)) != TARN_OK)
        return status;
    return model->serves == TN_SERVES_SPEECH
               ? TARN_OK
               : tn_scheduler_create(&model->scheduler, model, err);
}

static tarn_status open_models(tarn_server *server, tarn_error *err)
{
    const tarn_server_desc *const desc = &server->desc;
    tarn_status status = TARN_OK;

    server->models = calloc(desc->model_count, sizeof *server->models);
    if (!server->models)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu models", desc->model_count);
    for (size_t i = 0; i < desc->model_count && status == TARN_OK; i++)
        status = open_model(server, &server->models[i], &desc->models[i], err);
    return status;
}

/* ---- Listening ---------------------------------------------------------- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static tarn_status read_address(union address *address, socklen_t *size,
                                const tarn_server_desc *desc, tarn_error *err)
{
    *address = (union address){.v6 = {.sin6_family = AF_INET6}};
    if (inet_pton(AF_INET6, desc->address, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_port = htons((uint16_t)desc->port);
        *size = sizeof address->v6;
        return TARN_OK;
    }
    *address = (union address){.v4 = {.sin_family = AF_INET}};
    if (inet_pton(AF_INET, desc->address, &address->v4.sin_addr) == 1) {
        address->v4.sin_port = htons((uint16_t)desc->port);
        *size = sizeof address->v4;
        return TARN_OK;
    }
    return tn_fail(
        err, TARN_EINVAL,
        "host is '%.80s'; it must be a numeric address such as 127.0.0.1 or ::", desc->address);
}

static bool is_loopback(const union address *address)
{
    return address->any.sa_family == AF_INET ? ntohl(address->v4.sin_addr.s_addr) >> 24 == 127
                                             : IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* The socket, or -1. */
static int listen_on(tarn_server *server, tarn_error *err)
{
    const tarn_server_desc *const desc = &server->desc;
    union address address;
    socklen_t size;

    if (read_address(&address, &size, desc, err) != TARN_OK)
        return -1;
    const int s = socket(address.any.sa_family, SOCK_STREAM, 0);
    const int yes = 1;

    if (s >= 0 && fcntl(s, F_SETFD, FD_CLOEXEC) == 0 &&
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(s, &address.any, size) == 0 && listen(s, BACKLOG) == 0 &&
        getsockname(s, &address.any, &size) == 0) {
        server->is_local = is_loopback(&address);
        server->port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
                                                              : address.v6.sin6_port);
        return s;
    }
    tn_fail(err, TARN_EIO, "cannot listen on %s port %zu: %s", desc->address, desc->port,
            strerror(errno));
    if (s >= 0)
        close(s);
    return -1;
}

static tarn_status start_http(tarn_server *server, tarn_error *err)
{
    const int s = listen_on(server, err);

    if (s < 0)
        return TARN_EIO;
    struct MHD_Daemon *const daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, tn_http_access, server,
        MHD_OPTION_LISTEN_SOCKET, s, MHD_OPTION_NOTIFY_COMPLETED, tn_http_completed, server,
        MHD_OPTION_UNESCAPE_CALLBACK, tn_http_unescape, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)server->desc.max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)CONNECTION_STEP, MHD_OPTION_END);

    if (daemon)
        return tn_http_loop_start(&server->loop, daemon, err);
    close(s);
    return tn_fail(err, TARN_EIO, "libmicrohttpd cannot start a server");
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status open_log(tarn_server *server, tarn_error *err)
{
    const char *const path = server->desc.log;

    if (!path)
        return TARN_OK;
    server->log = strcmp(path, "-") == 0 ? stderr : fopen(path, "ae");
    return server->log ? TARN_OK : tn_fail_errno(err, path);
}

/* Signals are the caller's: none may interrupt these threads. */
static tarn_status start(tarn_server *server, tarn_error *err)
{
    const tarn_server_desc *const desc = &server->desc;
    const struct tn_store_desc states = {desc->state_folder, desc->max_states,
                                         desc->state_seconds};
    sigset_t all, before;
    tarn_status status;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    if ((status = open_log(server, err)) == TARN_OK &&
        (status = tn_store_open(&server->store, &states, err)) == TARN_OK &&
        (status = tn_workers_create(&server->workers[TN_LISTENERS], LISTENERS, err)) ==
            TARN_OK &&
        (status = open_models(server, err)) == TARN_OK) {
        tn_time_slice(short_slice);
        if ((status = tn_workers_create(&server->workers[TN_READERS], READERS, err)) ==
                TARN_OK &&
            (status = tn_workers_create(&server->workers[TN_SAVERS], SAVERS, err)) == TARN_OK)
            status = start_http(server, err);
        tn_time_slice(0.0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

tarn_status tarn_server_create(tarn_server **out, const tarn_server_desc *desc, tarn_error *err)
{
    tarn_status status;

    if (!out || !desc)
        return tn_fail(err, TARN_EINVAL, "server and desc must not be NULL");
    *out = NULL;
    if ((status = check(desc, err)) != TARN_OK)
        return status;
    tarn_server *const server = calloc(1, sizeof *server);

    if (!server)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a server");
    server->desc = *desc;
    server->begun = tn_seconds();
    fill_in(&server->desc);
    pthread_mutex_init(&server->log_lock, NULL);
    sem_init(&server->stop, 0, 0);
    if ((status = copy_texts(server, err)) == TARN_OK && !(server->live = tn_live_create()))
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for a server");
    if (status == TARN_OK)
        status = start(server, err);
    if (status == TARN_OK)
        *out = server;
    else
        tarn_server_free(server);
    return status;
}

size_t tarn_server_port(const tarn_server *server)
{
    return server->port;
}

void tarn_server_stop(tarn_server *server)
{
    sem_post(&server->stop);
}

/* No more connections; those that are there get their replies. */
static void drain(tarn_server *server)
{
    const double deadline = tn_seconds() + server->desc.drain_seconds;

    atomic_store(&server->draining, true);
    tn_http_loop_quiesce(server->loop);
    for (size_t i = 0; i < server->model_count; i++)
        if (server->models[i].scheduler)
            tn_scheduler_drain(server->models[i].scheduler, deadline);
    while (atomic_load(&server->counts.open) > 0 && tn_seconds() < deadline + 1.0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

void tarn_server_run(tarn_server *server)
{
    while (sem_wait(&server->stop) != 0)
        continue;
    drain(server);
}

/* Schedulers and workers end first: nothing sleeps any more when libmicrohttpd stops. */
void tarn_server_free(tarn_server *server)
{
    if (!server)
        return;
    atomic_store(&server->draining, true);
    for (size_t i = 0; i < server->model_count; i++)
        tn_scheduler_stop(server->models[i].scheduler);
    for (size_t i = TN_POOLS; i-- > 0;)
        if (server->workers[i])
            tn_workers_stop(server->workers[i]);
    tn_http_loop_stop(server->loop);
    for (size_t i = 0; i < TN_POOLS; i++)
        tn_workers_free(server->workers[i]);
    for (size_t i = 0; i < server->model_count; i++) {
        tn_scheduler_free(server->models[i].scheduler);
        tarn_task_free(server->models[i].task);
    }
    tn_live_free(server->live);
    tn_store_close(server->store);
    if (server->log && server->log != stderr)
        fclose(server->log);
    tn_texts_free(&server->texts);
    free(server->keys);
    free(server->models);
    pthread_mutex_destroy(&server->log_lock);
    sem_destroy(&server->stop);
    free(server);
}
