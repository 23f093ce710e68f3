/* SPDX-License-Identifier: MIT */
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hardware.h"

enum { ARGUMENTS = 32, BUFFER = 1 << 16, READY = 256 };

/* ---- A server ----------------------------------------------------------- */

static _Noreturn void become_server(const char *const *arguments, int out)
{
    const char *words[ARGUMENTS + 3] = {"tarn", "serve"};
    size_t count = 2;

    for (; arguments[count - 2] && count < ARGUMENTS; count++)
        words[count] = arguments[count - 2];
    dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    _exit(127);
}

struct http_server http_server_start(const char *const *arguments)
{
    struct http_server server = {0};
    char line[128] = "";
    int ends[2];

    if (pipe(ends) != 0 || (server.process = fork()) < 0)
        fail("cannot start a server: %s", strerror(errno));
    if (server.process == 0) {
        close(ends[0]);
        become_server(arguments, ends[1]);
    }
    close(ends[1]);
    FILE *const out = fdopen(ends[0], "r");

    if (!out || !fgets(line, sizeof line, out) || strncmp(line, "listening", 9) != 0) {
        waitpid(server.process, NULL, 0);
        fail("the server did not start");
    }
    fclose(out);
    server.port = (size_t)strtoul(strrchr(line, ':') + 1, NULL, 10);
    return server;
}

void http_server_stop(struct http_server *server)
{
    kill(server->process, SIGTERM);
    waitpid(server->process, NULL, 0);
}

double http_server_resident(const struct http_server *server)
{
    char path[64], line[256];
    double bytes = 0.0;

    snprintf(path, sizeof path, "/proc/%ld/status", (long)server->process);
    FILE *const file = fopen(path, "r");

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            bytes = 1024.0 * strtod(line + 6, NULL);
    if (file)
        fclose(file);
    return bytes;
}

/* ---- Connections -------------------------------------------------------- */

static int connect_to(const struct http_server *server)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)server->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int s = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

    if (s < 0 || connect(s, (const struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        fail("cannot connect to the server: %s", strerror(errno));
    return s;
}

static void send_all(int s, const char *text, size_t length)
{
    for (size_t done = 0; done < length;) {
        const ssize_t sent = send(s, text + done, length - done, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            fail("cannot send a request: %s", strerror(errno));
        done += sent > 0 ? (size_t)sent : 0;
    }
}

static void send_request(int s, const char *method, const char *path, const char *body,
                         const char *end)
{
    char head[512];
    const int length = snprintf(head, sizeof head,
                                "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: "
                                "%zu\r\n\r\n",
                                method, path, end, strlen(body));

    send_all(s, head, (size_t)length);
    send_all(s, body, strlen(body));
}

/* To the end of the connection; to be freed. */
static char *receive_all(int s)
{
    size_t room = BUFFER, used = 0;
    char *text = allocate(room, 1, "a reply");

    for (ssize_t n; (n = recv(s, text + used, room - used - 1, 0)) != 0;) {
        if (n < 0 && errno != EINTR)
            fail("cannot read a reply: %s", strerror(errno));
        used += n > 0 ? (size_t)n : 0;
        if (room - used < BUFFER / 2 && !(text = realloc(text, room *= 2)))
            fail("not enough memory for a reply");
    }
    text[used] = '\0';
    return text;
}

char *http_ask(const struct http_server *server, const char *method, const char *path,
               const char *body, double *seconds)
{
    const double start = seconds_now();
    const int s = connect_to(server);

    send_request(s, method, path, body, "Connection: close\r\n");
    char *const text = receive_all(s);

    *seconds = seconds_now() - start;
    close(s);
    char *const content = strstr(text, "\r\n\r\n");

    if (strncmp(text, "HTTP/1.1 200", 12) != 0 || !content)
        fail("%s %s: the server answered %.200s", method, path, content ? content + 4 : text);
    memmove(text, content + 4, strlen(content + 4) + 1);
    return text;
}

double http_number(const char *text, const char *key)
{
    const char *const at = strstr(text, key);

    if (!at)
        fail("the server's answer has no %s", key);
    return strtod(at + strlen(key), NULL);
}

/* ---- Users -------------------------------------------------------------- */

void http_user_begin(struct http_users *users, size_t index)
{
    struct http_user *const user = &users->users[index];
    char body[1024];

    snprintf(body, sizeof body, "{\"seed\":%zu,%s", index, users->body + 1);
    user->asked = user->last = seconds_now();
    user->first_s = 0.0;
    send_request(user->socket, "POST", "/v1/completions", body, "");
}

static void connect_user(struct http_users *users, size_t index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
    const int s = connect_to(users->server);

    users->users[index] = (struct http_user){.socket = s};
    if (fcntl(s, F_SETFD, FD_CLOEXEC) != 0 ||
        epoll_ctl(users->poll, EPOLL_CTL_ADD, s, &event) != 0)
        fail("cannot watch connections: %s", strerror(errno));
}

void http_users_open(struct http_users *users, const struct http_server *server, size_t count,
                     const char *body)
{
    users->server = server;
    users->body = body;
    users->count = count;
    users->users = allocate(count, sizeof *users->users, "%zu users", count);
    users->poll = epoll_create1(EPOLL_CLOEXEC);
    if (users->poll < 0)
        fail("cannot watch connections: %s", strerror(errno));
    for (size_t i = 0; i < count; i++)
        connect_user(users, i);
}

void http_users_renew(struct http_users *users, size_t index)
{
    close(users->users[index].socket);
    connect_user(users, index);
}

void http_users_close(struct http_users *users)
{
    for (size_t i = 0; i < users->count; i++)
        close(users->users[i].socket);
    close(users->poll);
    free(users->users);
    free(users->gaps);
}

static void take_event(struct http_users *users, struct http_user *user, double now)
{
    if (user->first_s == 0.0)
        user->first_s = now - user->asked;
    else if (users->gap_count < users->gap_room)
        users->gaps[users->gap_count++] = now - user->last;
    user->last = now;
    user->events++;
}

/* Whether a byte completes a word. The first byte is nowhere else in these words. */
static bool completes(size_t *matched, const char *word, char byte)
{
    *matched = byte == word[*matched] ? *matched + 1 : byte == *word;
    if (word[*matched])
        return false;
    *matched = 0;
    return true;
}

static void read_user(struct http_users *users, size_t index)
{
    static char buffer[BUFFER];
    struct http_user *const user = &users->users[index];
    const ssize_t n = recv(user->socket, buffer, sizeof buffer, 0);
    const double now = seconds_now();
    bool ended = false;

    if (n <= 0)
        fail("the server closed a connection");
    for (ssize_t i = 0; i < n; i++) {
        if (completes(&user->matched[0], "{\"id\"", buffer[i]))
            take_event(users, user, now);
        ended |= completes(&user->matched[1], "[DONE]", buffer[i]);
    }
    if (ended && users->again)
        http_user_begin(users, index);
}

void http_users_run(struct http_users *users, double seconds, size_t until)
{
    const double end = seconds_now() + seconds;
    struct epoll_event ready[READY];

    while (seconds_now() < end && (until == SIZE_MAX || users->users[until].first_s == 0.0)) {
        const int n = epoll_wait(users->poll, ready, READY, 10);

        if (n < 0 && errno != EINTR)
            fail("cannot watch connections: %s", strerror(errno));
        for (int i = 0; i < n; i++)
            read_user(users, (size_t)ready[i].data.u64);
    }
}
