/* SPDX-License-Identifier: MIT */
/* serve.h - an HTTP server for trained models: completions of text and images, transcription
 * of speech, and the states of streams as objects. docs/serve.md describes its requests.
 *
 *     const tarn_served_model digits = {.name = "digits", .model = model};
 *     const tarn_server_desc desc = {.models = &digits, .model_count = 1};
 *     tarn_server *server;
 *     tarn_server_create(&server, &desc, &err);
 *     tarn_server_run(server);
 *     tarn_server_free(server);
 *
 * tarn_server_run() returns after tarn_server_stop(), which another thread or a signal calls.
 * All streams of a model advance together in one batch; a request joins it at the next step.
 * What a stream computes does not depend on the others, to the last bit. */
#ifndef TARN_SERVE_H
#define TARN_SERVE_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

typedef struct tarn_server tarn_server;

/* The model must outlive the server. */
typedef struct tarn_served_model {
    const char *name; /* in requests; letters, digits and the characters ._- */
    const tarn_model *model;
    const char *path; /* its file, for browsers that run it themselves; NULL: not offered */
} tarn_served_model;

/* Zero is a valid default for every field but the models. */
typedef struct tarn_server_desc {
    const tarn_served_model *models;
    size_t model_count;
    const char *address;   /* numeric IPv4 or IPv6 address to listen on; NULL: 127.0.0.1 */
    size_t port;           /* 0: any free one */
    const char *precision; /* of the weights, as tarn_engine_desc.precision */
    tarn_host host;

    /* Limits. */
    size_t max_streams;     /* streams that run at a time, of each model; 0: 1024 */
    size_t max_queue;       /* streams that wait, of each model; 0: 1024. More get status 429 */
    size_t max_tokens;      /* of a completion; 0: 65536 */
    size_t max_context;     /* positions of models whose state grows with them; 0: 4096 */
    size_t max_body;        /* bytes of a request, a 16th of those of all; 0: 32 MiB */
    size_t max_connections; /* 0: 16384 */
    double max_seconds;     /* of a request; 0: 600 */
    double drain_seconds; /* that running streams get to end after tarn_server_stop(); then they
                             are cut off, and saved if they asked for their state; 0: 10 */

    /* Saved states. */
    const char *state_folder; /* NULL: in memory only */
    size_t max_states;        /* the oldest are removed; 0: 1000000, or 1000 in memory */
    double state_seconds;     /* age at which they expire; 0: never */

    /* Access. */
    const char *const *keys; /* one of which a request must have; key_count 0: none is needed */
    size_t key_count;
    const char *cors; /* origin whose pages may use the server, or "*"; NULL: only its own */
    const char *log;  /* file to append a JSON line per request to, "-": standard error;
                         NULL: none */
} tarn_server_desc;

/* ---- Use ---------------------------------------------------------------- */

/* Whether this build has the server, that is, libmicrohttpd. */
TARN_API bool tarn_server_available(void);

/* Listens and answers from now on, on threads of its own. */
TARN_API tarn_status tarn_server_create(tarn_server **server, const tarn_server_desc *desc,
                                        tarn_error *err);

/* The port it listens on. */
TARN_API size_t tarn_server_port(const tarn_server *server);

/* Waits for tarn_server_stop(); then new requests are refused, running ones end, and it
 * returns. */
TARN_API void tarn_server_run(tarn_server *server);

/* May be called from a signal handler. */
TARN_API void tarn_server_stop(tarn_server *server);

TARN_API void tarn_server_free(tarn_server *server); /* accepts NULL */

#ifdef __cplusplus
}
#endif
#endif
