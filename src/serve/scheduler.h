/* SPDX-License-Identifier: MIT */
/* scheduler.h - all streams of a model in one batch.
 *
 * A generation is what one request asks for: prompts, and for each of them one or more choices:
 * streams that begin alike and are drawn with different random numbers. A prompt waits in a
 * queue until there is room, is read in pieces between the steps of others, and then its
 * streams join the batch. */
#ifndef TN_SCHEDULER_H
#define TN_SCHEDULER_H

#include "serve/completion_body.h"
#include "serve/request.h"

struct tn_generation;

/* One stream. */
struct tn_choice {
    struct tn_generation *of;
    size_t index; /* of all choices of the generation */
    tarn_stream *stream;
    size_t drawn;              /* symbols */
    const char *finish;        /* why it ended; NULL: it has not */
    struct tn_refusal refusal; /* if it failed */
    struct tn_bytes state;     /* packed, when it has ended, if it is wanted */
    char state_id[TN_STATE_ID];
    uint64_t position; /* at the end */
    struct tn_job saving;

    /* The sink's. */
    struct tn_text text;     /* or pixels */
    size_t echoed;           /* bytes of it that are the prompt's */
    size_t emitted;          /* bytes of it that were sent */
    double emitted_at;       /* tn_seconds() */
    struct tn_token *tokens; /* that were not sent */
    size_t token_count, token_room;
};

/* What the choices of a prompt begin with. */
struct tn_prompt {
    struct tn_generation *of;
    int32_t *symbols; /* after the symbol that `from` has not read yet */
    size_t count, fed;
    struct tn_choice *choices; /* n of them */
    struct tn_prompt *next;    /* in the queue, or of those that are read */
};

/* What becomes of symbols. Called on the scheduler's thread, `end` and `finish` also on others.
 */
struct tn_sink {
    /* A symbol was drawn from outputs; may set choice->finish. */
    void (*put)(struct tn_choice *choice, int32_t symbol, const float *outputs);
    /* It has ended, and its state is saved. */
    void (*end)(struct tn_choice *choice);
    /* All choices have. */
    void (*finish)(struct tn_generation *generation);
};

struct tn_generation {
    struct tn_request *request;
    struct tn_served *model;
    const struct tn_sink *sink;
    void *own;            /* the sink's; is freed with the generation */
    char id[TN_STATE_ID]; /* random */
    long long created;    /* seconds since 1970 */

    tarn_sampling sampling;
    bool has_seed; /* else it is random or, if it continues a state, that of the state */
    size_t most;   /* symbols to draw */
    enum tn_return_state return_state;
    bool streams; /* server-sent events */
    double deadline;

    struct tn_prompt *prompts;
    size_t prompt_count;
    struct tn_choice *choices;
    size_t n, choice_count; /* of a prompt; of all */
    tarn_stream *from;      /* the state that all begin with; NULL: zeros */
    bool continues;         /* there was one */
    size_t waiting;         /* prompts that have no streams yet */

    unsigned long long came_at; /* a step of the batch */
    atomic_size_t open;         /* choices that have not ended */
};

struct tn_scheduler;

tarn_status tn_scheduler_create(struct tn_scheduler **scheduler, struct tn_served *model,
                                tarn_error *err);

/* Runs until all generations have ended, or until the deadline (tn_seconds()), when those that
 * run are cut off. */
void tn_scheduler_drain(struct tn_scheduler *scheduler, double deadline);

/* Cuts off whatever runs. What is submitted later is refused. Accept NULL. */
void tn_scheduler_stop(struct tn_scheduler *scheduler);
void tn_scheduler_free(struct tn_scheduler *scheduler);

/* Takes the generation over with all its prompts, and begins to stream if it does; false: it is
 * refused, and stays the caller's. */
bool tn_scheduler_submit(struct tn_scheduler *scheduler, struct tn_generation *generation,
                         struct tn_refusal *refusal);

/* Its engine answers questions of sizes and unpacks states, on any thread. */
const tarn_engine *tn_scheduler_engine(const struct tn_scheduler *scheduler);

/* Streams that run; when the last step ended (tn_seconds()). */
size_t tn_scheduler_streams(const struct tn_scheduler *scheduler);
double tn_scheduler_stepped(const struct tn_scheduler *scheduler);

/* Log-probabilities of all symbols, on the scheduler's thread. */
const float *tn_scheduler_logits(struct tn_scheduler *scheduler, const float *outputs);

struct tn_scheduler_counts {
    size_t streams, queued;
    unsigned long long steps, tokens;
    double tokens_per_s;                    /* of the last seconds */
    double step_seconds;                    /* in all */
    unsigned long long firsts, first_steps; /* streams that have symbols; from when they came */
};
struct tn_scheduler_counts tn_scheduler_count(struct tn_scheduler *scheduler);

/* ---- generation.c ------------------------------------------------------- */

/* For a request, as it was asked for, and zeros else. NULL: refused. */
struct tn_generation *tn_generation_new(struct tn_request *request, struct tn_served *model,
                                        const struct tn_sink *sink,
                                        const struct tn_asked *asked, size_t prompts,
                                        struct tn_refusal *refusal);
void tn_generation_free(struct tn_generation *generation); /* accepts NULL */

/* A zeroed stream. */
tarn_stream *tn_stream_new(const tarn_engine *engine);

/* Begins with saved bytes. */
bool tn_generation_unpack(struct tn_generation *generation, const void *bytes, size_t size,
                          struct tn_refusal *refusal);

/* The choice has ended for a reason: saves its state, then tells the sink. On the scheduler's
 * thread. */
void tn_choice_end(struct tn_choice *choice);

/* Whether what was drawn is to be sent: the first at once, then not more often than clients can
 * use. */
bool tn_choice_is_due(struct tn_choice *choice);

/* {"id": ..., "bytes": ..., "position": ...}, under the key "state", if one was wanted. */
void tn_choice_put_state(const struct tn_choice *choice, struct tn_json_writer *writer);

/* The first of its choices that failed; NULL: none. */
const struct tn_refusal *tn_generation_refusal(const struct tn_generation *generation);

#endif
