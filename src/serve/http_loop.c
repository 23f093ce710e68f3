/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "serve/http_loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "serve/request.h"

struct tn_http_loop {
    struct MHD_Daemon *daemon;
    int signal; /* an eventfd */
    pthread_t thread;
    atomic_bool ends;
    pthread_mutex_t lock;
    struct tn_request *waking; /* a list, each with a reference */
};

static _Thread_local bool holds, held; /* wakes up nobody yet; somebody is to be woken up */

static void signal_loop(struct tn_http_loop *loop)
{
    const uint64_t one = 1;

    while (write(loop->signal, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

void tn_http_loop_hold(void)
{
    holds = true;
}

void tn_http_loop_send(struct tn_http_loop *loop)
{
    if (held)
        signal_loop(loop);
    held = false;
}

void tn_http_loop_wake(struct tn_http_loop *loop, struct tn_request *request)
{
    request->references++;
    pthread_mutex_lock(&loop->lock);
    request->next_waking = loop->waking;
    loop->waking = request;
    pthread_mutex_unlock(&loop->lock);
    held = true;
    if (!holds)
        tn_http_loop_send(loop);
}

/* ---- The thread --------------------------------------------------------- */

static void resume_all(struct tn_http_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct tn_request *request = loop->waking;

    loop->waking = NULL;
    pthread_mutex_unlock(&loop->lock);
    for (struct tn_request *next; request; request = next) {
        next = request->next_waking;
        MHD_resume_connection(request->connection);
        tn_request_release(request);
    }
}

/* Until libmicrohttpd has something to do, or somebody is to be woken up. */
static void wait_for_any(const struct tn_http_loop *loop, int connections)
{
    struct pollfd any[] = {{.fd = connections, .events = POLLIN},
                           {.fd = loop->signal, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG most;
    uint64_t count;
    const int timeout = MHD_get_timeout(loop->daemon, &most) == MHD_YES
                            ? (int)(most < INT_MAX ? most : INT_MAX)
                            : -1;

    if (poll(any, 2, timeout) > 0 && any[1].revents)
        while (read(loop->signal, &count, sizeof count) < 0 && errno == EINTR)
            continue;
}

static void *run(void *arg)
{
    struct tn_http_loop *const loop = arg;
    const union MHD_DaemonInfo *const about =
        MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    while (!loop->ends) {
        wait_for_any(loop, about->epoll_fd);
        resume_all(loop);
        MHD_run(loop->daemon);
    }
    resume_all(loop);
    return NULL;
}

/* ---- Life --------------------------------------------------------------- */

tarn_status tn_http_loop_start(struct tn_http_loop **out, struct MHD_Daemon *daemon,
                               tarn_error *err)
{
    struct tn_http_loop *const loop = calloc(1, sizeof *loop);
    const int signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int number = loop && signal >= 0 ? 0 : errno;

    if (number == 0) {
        *loop = (struct tn_http_loop){.daemon = daemon, .signal = signal};
        pthread_mutex_init(&loop->lock, NULL);
        *out = loop; /* requests come as soon as the thread runs */
        number = pthread_create(&loop->thread, NULL, run, loop);
    }
    if (number == 0)
        return TARN_OK;
    *out = NULL;
    MHD_stop_daemon(daemon);
    if (signal >= 0)
        close(signal);
    free(loop);
    return tn_fail(err, TARN_EIO, "cannot start a thread for connections: %s",
                   strerror(number));
}

void tn_http_loop_quiesce(struct tn_http_loop *loop)
{
    const MHD_socket s = MHD_quiesce_daemon(loop->daemon);

    if (s >= 0)
        close(s);
}

void tn_http_loop_stop(struct tn_http_loop *loop)
{
    if (!loop)
        return;
    loop->ends = true;
    signal_loop(loop);
    pthread_join(loop->thread, NULL);
    MHD_stop_daemon(loop->daemon);
    pthread_mutex_destroy(&loop->lock);
    close(loop->signal);
    free(loop);
}
