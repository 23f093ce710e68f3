/* SPDX-License-Identifier: MIT */
/* http_loop.h - the thread that does libmicrohttpd's work, and wakes up connections. */
#ifndef TN_HTTP_LOOP_H
#define TN_HTTP_LOOP_H

#include "base/base.h"

struct MHD_Daemon;
struct tn_http_loop;
struct tn_request;

/* Runs a daemon, which is then its own: NULL is not allowed, and it is stopped if this fails.
 */
tarn_status tn_http_loop_start(struct tn_http_loop **loop, struct MHD_Daemon *daemon,
                               tarn_error *err);

/* Nothing may sleep any more. Accepts NULL. */
void tn_http_loop_stop(struct tn_http_loop *loop);

/* No more connections; those that are there go on. */
void tn_http_loop_quiesce(struct tn_http_loop *loop);

/* The connection of a request, whose lock is held, sleeps, and shall go on. */
void tn_http_loop_wake(struct tn_http_loop *loop, struct tn_request *request);

/* This thread's connections go on together, when it says so: a signal for each would hand the
 * processor over and back for each. */
void tn_http_loop_hold(void);
void tn_http_loop_send(struct tn_http_loop *loop);

#endif
