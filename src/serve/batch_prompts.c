/* SPDX-License-Identifier: MIT */
/* batch_prompts.c - prompts, read in pieces between the steps of others.
 *
 * The last symbol of a prompt is not read with the rest but stays the symbol that comes next,
 * so that a stream that begins and one that continues are the same thing: the step feeds all of
 * them. Prompts get as much time between two steps as a step takes, and at least one piece: the
 * time between symbols of the others at most doubles, and who comes meanwhile is admitted. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>

#include "serve/stream_batch.h"

enum { PIECE = 128 };

/* The same numbers for every prompt: each is drawn as if it were alone. */
static tarn_status set_sampling(const struct tn_prompt *prompt, tarn_error *err)
{
    const struct tn_generation *const g = prompt->of;
    const tarn_stream *const first = prompt->choices[0].stream;
    tarn_sampling sampling = g->sampling;
    tarn_status status = TARN_OK;

    if (!g->has_seed && g->continues) {
        sampling.seed = first->head.seed;
        sampling.number = first->head.number;
    }
    for (size_t i = 0; i < g->n && status == TARN_OK; i++, sampling.number++)
        status = tarn_stream_sampling(prompt->choices[i].stream, &sampling, err);
    return status;
}

/* All choices continue the first, whose next symbol is the last of the prompt. */
static void join(struct tn_scheduler *s, struct tn_prompt *prompt)
{
    struct tn_choice *const choices = prompt->choices;
    tarn_stream *const first = choices[0].stream;
    const size_t n = prompt->of->n, most = prompt->of->most;
    tarn_error err;

    if (prompt->count > 0)
        first->head.drawn = prompt->symbols[prompt->count - 1] + 1;
    for (size_t i = 1; i < n; i++)
        memcpy(choices[i].stream, first, tarn_stream_size(s->engine));
    if (set_sampling(prompt, &err) != TARN_OK) {
        tn_batch_fail(s, prompt, 400, err.text);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (most == 0)
            tn_batch_end(s, &choices[i], "length");
        else
            s->active[s->active_count++] = &choices[i];
}

/* Returns how many symbols are left to read. */
static size_t feed_piece(struct tn_scheduler *s, struct tn_prompt *prompt, tarn_status *status,
                         tarn_error *err)
{
    tarn_stream *const stream = prompt->choices[0].stream;
    const size_t left = prompt->count > 0 ? prompt->count - 1 - prompt->fed : 0;
    const size_t n = tn_min(left, PIECE);

    *status = TARN_OK;
    if (prompt->count > 0 && stream->head.drawn > 0)
        *status = tarn_engine_step(s->engine, &stream, NULL, NULL, 1, err);
    if (*status == TARN_OK && n > 0)
        *status =
            tarn_engine_prefill(s->engine, stream, NULL, prompt->symbols + prompt->fed, n, err);
    prompt->fed += n;
    return left - n;
}

/* A piece of the first prompt, which then stands last. */
static void read_piece(struct tn_scheduler *s, double now)
{
    struct tn_prompt *const prompt = tn_prompts_take(&s->reading);
    const char *const why = tn_batch_must_end(s, prompt->of, now);
    tarn_status status;
    tarn_error err;

    if (why) {
        tn_batch_fail(s, prompt, strcmp(why, "cancelled") == 0 ? 0 : 503,
                      "the prompt was not read in time");
        return;
    }
    const size_t left = feed_piece(s, prompt, &status, &err);

    if (status != TARN_OK)
        tn_batch_fail(s, prompt, status == TARN_EINVAL ? 400 : 500, err.text);
    else if (left > 0)
        tn_prompts_add(&s->reading, prompt);
    else
        join(s, prompt);
}

void tn_batch_read(struct tn_scheduler *s)
{
    const double start = tn_seconds();
    double now = start;

    for (; s->reading.first && (now == start || now - start < s->step_s); now = tn_seconds())
        read_piece(s, now);
}
