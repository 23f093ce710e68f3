/* SPDX-License-Identifier: MIT */
/* http_client.h - a client of tarn serve on the loopback, for tarn bench serve: many streams of
 * events at a time. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <sys/types.h>

#include "command.h"

/* ---- A server of its own ------------------------------------------------ */

struct http_server {
    pid_t process;
    size_t port;
};

/* This program as a server, with these arguments after "serve" (ended by NULL), which is ready
 * to answer. */
struct http_server http_server_start(const char *const *arguments);
void http_server_stop(struct http_server *server);
double http_server_resident(const struct http_server *server); /* bytes of memory */

/* ---- One request -------------------------------------------------------- */

/* The reply's body, to be freed; *seconds to its end. Fails unless its status is 200. */
char *http_ask(const struct http_server *server, const char *method, const char *path,
               const char *body, double *seconds);

/* A number in a text: what follows `key`. */
double http_number(const char *text, const char *key);

/* ---- Many streams ------------------------------------------------------- */

/* A user reads events, and asks again when they have ended. */
struct http_user {
    int socket;
    size_t matched[2];  /* bytes of the words that are looked for */
    size_t events;      /* so far */
    double asked, last; /* when it asked; when the last event came */
    double first_s;     /* from asking to the first event; 0: it has not come yet */
};

struct http_users {
    const struct http_server *server;
    const char *body; /* JSON of every request to /v1/completions, but for the seed */
    struct http_user *users;
    size_t count;
    int poll;
    bool again;   /* ask again after the end */
    double *gaps; /* between events, while there is room */
    size_t gap_count, gap_room;
};

void http_users_open(struct http_users *users, const struct http_server *server, size_t count,
                     const char *body);

/* Reads events for some seconds, or until user `until` has its first one (SIZE_MAX: not). */
void http_users_run(struct http_users *users, double seconds, size_t until);
void http_user_begin(struct http_users *users, size_t index);
void http_users_renew(struct http_users *users, size_t index); /* hangs up, connects again */
void http_users_close(struct http_users *users);

#endif
