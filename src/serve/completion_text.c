/* SPDX-License-Identifier: MIT */
/* completion_text.c - symbols become text, piece by piece or at the end.
 *
 * What may still become a stop sequence, or is not yet a whole character, is held back. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "serve/completion.h"

static const struct tn_completion *asked_of(const struct tn_generation *g)
{
    return g->own;
}

/* ---- JSON --------------------------------------------------------------- */

static void open_object(struct tn_json_writer *w, const struct tn_generation *g)
{
    char id[TN_STATE_ID + 8];

    snprintf(id, sizeof id, "cmpl-%s", g->id);
    tn_json_open(w, NULL, '{');
    tn_json_put_text(w, "id", id);
    tn_json_put_text(w, "object", "text_completion");
    tn_json_put_whole(w, "created", g->created);
    tn_json_put_text(w, "model", g->model->name);
    tn_json_open(w, "choices", '[');
}

static void put_choice(struct tn_json_writer *w, struct tn_choice *choice, const char *text,
                       size_t length, bool ended)
{
    tn_json_open(w, NULL, '{');
    tn_json_put_whole(w, "index", (int64_t)choice->index);
    tn_json_put_bytes(w, "text", text, length);
    tn_logprobs_write(w, choice);
    tn_json_put_text(w, "finish_reason", ended ? choice->finish : NULL);
    if (ended)
        tn_choice_put_state(choice, w);
    tn_json_close(w, '}');
}

static void put_usage(struct tn_json_writer *w, const struct tn_generation *g)
{
    const size_t prompts = g->request->prompt_tokens;
    size_t drawn = 0;

    for (size_t i = 0; i < g->choice_count; i++)
        drawn += g->choices[i].drawn;
    tn_json_open(w, "usage", '{');
    tn_json_put_whole(w, "prompt_tokens", (int64_t)prompts);
    tn_json_put_whole(w, "completion_tokens", (int64_t)drawn);
    tn_json_put_whole(w, "total_tokens", (int64_t)(prompts + drawn));
    tn_json_close(w, '}');
}

/* ---- The sink ----------------------------------------------------------- */

/* Where a stop sequence begins in what was drawn, of which `fresh` bytes are new; SIZE_MAX:
 * none. */
static size_t find_stop(const struct tn_completion *c, const struct tn_choice *choice,
                        size_t fresh)
{
    const struct tn_text *const text = &choice->text;
    const size_t before = text->used - choice->echoed - fresh;
    size_t first = SIZE_MAX;

    for (size_t k = 0; k < c->stop_count; k++) {
        const size_t length = c->stops[k].length;
        const size_t from = text->used - fresh - tn_min(before, length - 1);

        for (size_t i = from; i + length <= text->used; i++)
            if (memcmp(text->data + i, c->stops[k].text, length) == 0)
                first = tn_min(first, i);
    }
    return first;
}

/* Bytes at the end that may be the beginning of a stop sequence. */
static size_t begun_stop(const struct tn_completion *c, const struct tn_choice *choice)
{
    const struct tn_text *const text = &choice->text;
    const size_t drawn = text->used - choice->echoed;
    size_t most = 0;

    for (size_t k = 0; k < c->stop_count; k++)
        for (size_t n = tn_min(c->stops[k].length - 1, drawn); n > most; n--)
            if (memcmp(text->data + text->used - n, c->stops[k].text, n) == 0)
                most = n;
    return most;
}

/* Bytes at the end that may be the beginning of a character. */
static size_t begun_character(const char *text, size_t used)
{
    for (size_t n = 1; n <= tn_min(3, used); n++) {
        const unsigned char byte = (unsigned char)text[used - n];

        if ((byte & 0xc0) == 0x80)
            continue;
        return (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : byte >= 0xc0 ? 2u : 1u) > n ? n : 0;
    }
    return 0;
}

static void emit(struct tn_choice *choice, bool ended)
{
    const struct tn_completion *const c = asked_of(choice->of);
    struct tn_text *const text = &choice->text;
    struct tn_json_writer w = {0};
    size_t upto = text->used;

    if (!ended) {
        upto -= begun_stop(c, choice);
        upto -= begun_character(text->data, upto);
    }
    if (!ended && (upto <= choice->emitted || !tn_choice_is_due(choice)))
        return;
    upto = tn_max(upto, choice->emitted);
    open_object(&w, choice->of);
    put_choice(&w, choice, text->data ? text->data + choice->emitted : "",
               upto - choice->emitted, ended);
    tn_json_close(&w, ']');
    if (c->include_usage)
        tn_json_put_text(&w, "usage", NULL);
    tn_json_close(&w, '}');
    choice->emitted = upto;
    tn_stream_event(choice->of->request, &w);
}

static void put(struct tn_choice *choice, int32_t symbol, const float *outputs)
{
    const struct tn_completion *const c = asked_of(choice->of);
    struct tn_text *const text = &choice->text;
    const size_t before = text->used;
    char decoded[TN_SYMBOL_TEXT];

    tn_text_put(text, decoded, tarn_task_decode(choice->of->model->task, decoded, &symbol, 1));
    if ((c->has_logprobs && !tn_logprobs_keep(choice, symbol, outputs, before)) ||
        text->failed) {
        tn_refuse(&choice->refusal, 503, NULL, "not enough memory for the text");
        choice->finish = "error";
        return;
    }
    const size_t stop = find_stop(c, choice, text->used - before);

    if (stop < SIZE_MAX) {
        text->used = tn_max(stop, choice->emitted);
        choice->finish = "stop";
    } else if (choice->of->streams) {
        emit(choice, false);
    }
}

static void end(struct tn_choice *choice)
{
    if (!choice->of->streams)
        return;
    if (choice->refusal.status)
        tn_stream_refusal(choice->of->request, &choice->refusal);
    else
        emit(choice, true);
}

static void finish_stream(struct tn_generation *g)
{
    struct tn_json_writer w = {0};

    if (asked_of(g)->include_usage) {
        open_object(&w, g);
        tn_json_close(&w, ']');
        put_usage(&w, g);
        tn_json_close(&w, '}');
        tn_stream_event(g->request, &w);
    }
    tn_stream_end(g->request);
}

static void finish(struct tn_generation *g)
{
    const struct tn_refusal *const refusal = tn_generation_refusal(g);
    struct tn_json_writer w = {0};

    if (g->streams) {
        finish_stream(g);
        return;
    }
    if (refusal) {
        tn_reply_refusal(g->request, refusal);
        return;
    }
    open_object(&w, g);
    for (size_t i = 0; i < g->choice_count; i++)
        put_choice(&w, &g->choices[i], g->choices[i].text.data, g->choices[i].text.used, true);
    tn_json_close(&w, ']');
    put_usage(&w, g);
    tn_json_close(&w, '}');
    tn_reply_json(g->request, &w);
}

const struct tn_sink tn_completion_sink = {put, end, finish};
