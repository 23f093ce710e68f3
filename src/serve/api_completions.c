/* SPDX-License-Identifier: MIT */
/* api_completions.c - POST /v1/completions: symbols become text, piece by piece or at the end.
 *
 * What may still become a stop sequence, or is not yet a whole character, is held back. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"
#include "file/json_write.h"
#include "serve/completion_body.h"
#include "serve/scheduler.h"

enum { SYMBOL_TEXT = 16 };

/* The sink's own. */
struct completion {
    struct tn_json json;
    struct tn_completion asked;
    char id[TN_STATE_ID];
    long long created;
    size_t prompt_tokens;
};

struct tn_token {
    int32_t symbol;
    float logprob;
    int32_t top[TN_LOGPROBS];
    float top_logprob[TN_LOGPROBS];
    size_t offset; /* of its text */
};

static struct completion *own_of(const struct tn_generation *g)
{
    return g->own;
}

/* ---- Log-probabilities -------------------------------------------------- */

static double log_sum(const float *logits, size_t n)
{
    double most = -(double)INFINITY, sum = 0.0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    return most + log(sum);
}

/* The most probable first; of equals the lower symbol. */
static void find_top(struct tn_token *token, size_t count, const float *logits, size_t n,
                     double sum)
{
    for (size_t k = 0; k < count; k++) {
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < n; i++) {
            bool taken = false;

            for (size_t j = 0; j < k; j++)
                taken |= token->top[j] == (int32_t)i;
            if (!taken && (best == SIZE_MAX || logits[i] > logits[best]))
                best = i;
        }
        token->top[k] = (int32_t)best;
        token->top_logprob[k] = (float)((double)logits[best] - sum);
    }
}

static bool keep_token(struct tn_choice *choice, int32_t symbol, const float *outputs,
                       size_t offset)
{
    const struct completion *const own = own_of(choice->of);
    const size_t n = tarn_task_symbols(choice->of->model->task);
    const float *const logits = tn_scheduler_logits(choice->of->model->scheduler, outputs);
    const double sum = log_sum(logits, n);

    if (choice->token_count == choice->token_room) {
        const size_t room = 2 * choice->token_room + 64;
        struct tn_token *const tokens = realloc(choice->tokens, room * sizeof *tokens);

        if (!tokens)
            return false;
        choice->tokens = tokens;
        choice->token_room = room;
    }
    struct tn_token *const token = &choice->tokens[choice->token_count++];

    *token = (struct tn_token){
        .symbol = symbol, .offset = offset, .logprob = (float)((double)logits[symbol] - sum)};
    find_top(token, tn_min(own->asked.logprobs, n), logits, n, sum);
    return true;
}

/* "a", or "bytes:\xc3" for a part of a character. */
static void put_token(struct tn_json_writer *w, const tarn_task *task, int32_t symbol, bool key)
{
    char text[SYMBOL_TEXT + 1], shown[8 * SYMBOL_TEXT] = "bytes:";
    const size_t length = tarn_task_decode(task, text, &symbol, 1);

    text[length] = '\0';
    if (strlen(text) == length && tn_is_utf8(text))
        memcpy(shown, text, length + 1);
    else
        for (size_t i = 0; i < length; i++)
            snprintf(shown + 6 + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)text[i]);
    (key ? tn_json_key : tn_json_put_text)(w, shown);
}

static void put_top(struct tn_json_writer *w, const tarn_task *task,
                    const struct tn_token *token, size_t count)
{
    tn_json_open(w, '{');
    for (size_t k = 0; k < count; k++) {
        put_token(w, task, token->top[k], true);
        tn_json_put_number(w, (double)token->top_logprob[k], 7);
    }
    tn_json_close(w, '}');
}

/* Of the tokens that were not sent yet. */
static void put_logprobs(struct tn_json_writer *w, struct tn_choice *choice)
{
    const struct completion *const own = own_of(choice->of);
    const tarn_task *const task = choice->of->model->task;
    const size_t top = tn_min(own->asked.logprobs, tarn_task_symbols(task));
    const size_t from = choice->token_sent, to = choice->token_count;

    tn_json_key(w, "logprobs");
    if (!own->asked.has_logprobs) {
        tn_json_put_text(w, NULL);
        return;
    }
    tn_json_open(w, '{');
    tn_json_key(w, "tokens");
    tn_json_open(w, '[');
    for (size_t i = from; i < to; i++)
        put_token(w, task, choice->tokens[i].symbol, false);
    tn_json_close(w, ']');
    tn_json_key(w, "token_logprobs");
    tn_json_open(w, '[');
    for (size_t i = from; i < to; i++)
        tn_json_put_number(w, (double)choice->tokens[i].logprob, 7);
    tn_json_close(w, ']');
    tn_json_key(w, "top_logprobs");
    tn_json_open(w, '[');
    for (size_t i = from; i < to; i++)
        put_top(w, task, &choice->tokens[i], top);
    tn_json_close(w, ']');
    tn_json_key(w, "text_offset");
    tn_json_open(w, '[');
    for (size_t i = from; i < to; i++)
        tn_json_put_whole(w, (int64_t)choice->tokens[i].offset);
    tn_json_close(w, ']');
    tn_json_close(w, '}');
    choice->token_sent = to;
}

/* ---- JSON --------------------------------------------------------------- */

static void open_object(struct tn_json_writer *w, const struct tn_generation *g)
{
    const struct completion *const own = own_of(g);
    char id[TN_STATE_ID + 8];

    snprintf(id, sizeof id, "cmpl-%s", own->id);
    tn_json_open(w, '{');
    tn_json_key(w, "id");
    tn_json_put_text(w, id);
    tn_json_key(w, "object");
    tn_json_put_text(w, "text_completion");
    tn_json_key(w, "created");
    tn_json_put_whole(w, own->created);
    tn_json_key(w, "model");
    tn_json_put_text(w, g->model->name);
    tn_json_key(w, "choices");
    tn_json_open(w, '[');
}

static void put_bytes(struct tn_json_writer *w, const char *bytes, size_t n)
{
    struct tn_text text = {0};

    tn_text_utf8(&text, bytes, n);
    tn_json_put_text(w, tn_text_end(&text));
    if (text.failed)
        w->status = TARN_ENOMEM;
    tn_text_free(&text);
}

static void put_choice(struct tn_json_writer *w, struct tn_choice *choice, const char *text,
                       size_t length, bool ended)
{
    tn_json_open(w, '{');
    tn_json_key(w, "index");
    tn_json_put_whole(w, (int64_t)choice->index);
    tn_json_key(w, "text");
    put_bytes(w, text, length);
    put_logprobs(w, choice);
    tn_json_key(w, "finish_reason");
    tn_json_put_text(w, ended ? choice->finish : NULL);
    if (ended)
        tn_choice_put_state(choice, w);
    tn_json_close(w, '}');
}

static void put_usage(struct tn_json_writer *w, const struct tn_generation *g)
{
    const struct completion *const own = own_of(g);
    size_t drawn = 0;

    for (size_t i = 0; i < g->n; i++)
        drawn += g->choices[i].drawn;
    tn_json_key(w, "usage");
    tn_json_open(w, '{');
    tn_json_key(w, "prompt_tokens");
    tn_json_put_whole(w, (int64_t)own->prompt_tokens);
    tn_json_key(w, "completion_tokens");
    tn_json_put_whole(w, (int64_t)drawn);
    tn_json_key(w, "total_tokens");
    tn_json_put_whole(w, (int64_t)(own->prompt_tokens + drawn));
    tn_json_close(w, '}');
}

/* ---- The sink ----------------------------------------------------------- */

/* Where a stop sequence begins in the text, of which `fresh` bytes are new; SIZE_MAX: none. */
static size_t find_stop(const struct tn_completion *c, const struct tn_text *text, size_t fresh)
{
    size_t first = SIZE_MAX;

    for (size_t k = 0; k < c->stop_count; k++) {
        const size_t length = c->stops[k].length;
        const size_t from = text->used - fresh >= length ? text->used - fresh - length + 1 : 0;

        for (size_t i = from; i + length <= text->used; i++)
            if (memcmp(text->data + i, c->stops[k].text, length) == 0)
                first = tn_min(first, i);
    }
    return first;
}

/* Bytes at the end that may be the beginning of a stop sequence. */
static size_t begun_stop(const struct tn_completion *c, const struct tn_text *text)
{
    size_t most = 0;

    for (size_t k = 0; k < c->stop_count; k++)
        for (size_t n = tn_min(c->stops[k].length - 1, text->used); n > most; n--)
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
    const struct tn_completion *const c = &own_of(choice->of)->asked;
    struct tn_text *const text = &choice->text;
    struct tn_json_writer w = {0};
    size_t upto = text->used;

    if (!ended) {
        upto -= begun_stop(c, text);
        upto -= begun_character(text->data, upto);
    }
    if (!ended && (upto <= choice->emitted || !tn_choice_is_due(choice)))
        return;
    upto = tn_max(upto, choice->emitted);
    open_object(&w, choice->of);
    put_choice(&w, choice, text->data ? text->data + choice->emitted : "",
               upto - choice->emitted, ended);
    tn_json_close(&w, ']');
    tn_json_close(&w, '}');
    choice->emitted = upto;
    tn_stream_event(choice->of->request, &w);
}

static void put(struct tn_choice *choice, int32_t symbol, const float *outputs)
{
    const struct tn_completion *const c = &own_of(choice->of)->asked;
    struct tn_text *const text = &choice->text;
    const size_t before = text->used;
    char decoded[SYMBOL_TEXT];

    tn_text_put(text, decoded, tarn_task_decode(choice->of->model->task, decoded, &symbol, 1));
    if ((c->has_logprobs && !keep_token(choice, symbol, outputs, before)) || text->failed) {
        tn_refuse(&choice->refusal, 503, NULL, "not enough memory for the text");
        choice->finish = "error";
        return;
    }
    const size_t stop = find_stop(c, text, text->used - before);

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
    static const char done[] = "data: [DONE]\n\n";
    struct tn_json_writer w = {0};

    if (own_of(g)->asked.include_usage) {
        open_object(&w, g);
        tn_json_close(&w, ']');
        put_usage(&w, g);
        tn_json_close(&w, '}');
        tn_stream_event(g->request, &w);
    }
    tn_stream_put(g->request, done, sizeof done - 1);
    tn_stream_end(g->request);
}

static void finish(struct tn_generation *g)
{
    const struct tn_refusal *const refusal = tn_generation_refusal(g);
    struct tn_json_writer w = {0};

    for (size_t i = 0; i < g->n; i++)
        tn_request_drew(g->request, g->choices[i].drawn);
    if (g->streams) {
        finish_stream(g);
        return;
    }
    if (refusal) {
        tn_reply_refusal(g->request, refusal);
        return;
    }
    open_object(&w, g);
    for (size_t i = 0; i < g->n; i++)
        put_choice(&w, &g->choices[i], g->choices[i].text.data, g->choices[i].text.used, true);
    tn_json_close(&w, ']');
    put_usage(&w, g);
    tn_json_close(&w, '}');
    tn_reply_json(g->request, &w);
}

static void free_own(struct tn_generation *g)
{
    struct completion *const own = own_of(g);

    if (own)
        tn_json_free(&own->json);
    free(own);
}

static const struct tn_sink sink = {put, end, finish, free_own};

/* ---- The request -------------------------------------------------------- */

static bool encode_text(struct tn_generation *g, const char *text, size_t length,
                        struct tn_refusal *refusal)
{
    tarn_error err = {0};

    g->prompt = malloc((length + 1) * sizeof *g->prompt);
    if (!g->prompt)
        return tn_refuse(refusal, 503, "prompt", "not enough memory for the prompt");
    const tarn_status status =
        tarn_task_encode(g->model->task, g->prompt, &g->prompt_count, text, length, &err);

    return status == TARN_OK || tn_refuse_status(refusal, status, "prompt", &err);
}

static bool take_symbols(struct tn_generation *g, const struct tn_json_value *array,
                         struct tn_refusal *refusal)
{
    const size_t known = tarn_task_symbols(g->model->task);
    int64_t number;

    g->prompt = malloc((array->size + 1) * sizeof *g->prompt);
    if (!g->prompt)
        return tn_refuse(refusal, 503, "prompt", "not enough memory for the prompt");
    for (; g->prompt_count < array->size; g->prompt_count++) {
        if (!tn_json_whole(array + 1 + g->prompt_count, &number) || number < 0 ||
            (uint64_t)number >= known)
            return tn_refuse(refusal, 400, "prompt",
                             "prompt[%zu] must be a symbol from 0 to %zu", g->prompt_count,
                             known - 1);
        g->prompt[g->prompt_count] = (int32_t)number;
    }
    return true;
}

/* A model needs at least one symbol before it can predict: a newline, as in tarn generate. */
static bool read_prompt(struct tn_generation *g, const struct tn_json_value *prompt,
                        struct tn_refusal *refusal)
{
    const bool is_text = prompt && prompt->kind == TN_JSON_TEXT;

    if (is_text ? !encode_text(g, prompt->text, prompt->size, refusal)
                : prompt && !take_symbols(g, prompt, refusal))
        return false;
    if (g->prompt_count > 0 || g->continues)
        return true;
    free(g->prompt);
    g->prompt = NULL;
    if (!encode_text(g, "\n", 1, refusal))
        return false;
    if (g->prompt_count == 0)
        g->prompt[g->prompt_count++] = 0;
    return true;
}

static bool read_state(struct tn_generation *g, const struct tn_state_given *state,
                       struct tn_refusal *refusal)
{
    struct tn_bytes saved = {0};
    struct tn_text data = {0};
    tarn_error err = {0};
    bool read = true;

    if (state->id) {
        const tarn_status status =
            tn_store_get(g->request->server->store, state->id, &saved, NULL, &err);

        read = status == TARN_OK
                   ? tn_generation_unpack(g, saved.data, saved.size, "state", refusal)
               : status == TARN_EUNKNOWN ? tn_refuse(refusal, 404, "state", "%s", err.text)
                                         : tn_refuse_status(refusal, status, "state", &err);
    } else if (state->data) {
        if (!tn_text_from_base64(&data, state->data, state->data_length))
            read = tn_refuse(refusal, 400, "state", "state.data is not base64");
        else if (data.failed)
            read = tn_refuse(refusal, 503, "state", "not enough memory for the state");
        else
            read = tn_generation_unpack(g, data.data ? data.data : "", data.used, "state",
                                        refusal);
    }
    tn_bytes_free(&saved);
    tn_text_free(&data);
    return read;
}

/* A state that has read everything it was given can only continue with a prompt. */
static bool check_length(const struct tn_generation *g, struct tn_refusal *refusal)
{
    const size_t end = tn_engine_end(tn_scheduler_engine(g->model->scheduler));
    const uint64_t position = g->from ? tarn_stream_position(g->from) : 0;
    const size_t next = g->from && tarn_stream_next(g->from) >= 0;

    if (g->prompt_count + next == 0)
        return tn_refuse(refusal, 400, "prompt",
                         "the state has no next symbol; a prompt is required to continue it");
    if (position > end || g->prompt_count + next > end - position)
        return tn_refuse(refusal, 400, "prompt",
                         "the prompt has %zu symbols after position %llu; the model can read "
                         "at most %zu",
                         g->prompt_count, (unsigned long long)position, end);
    return true;
}

static bool set_up(struct tn_generation *g, struct tn_refusal *refusal)
{
    struct completion *const own = own_of(g);
    const struct tn_completion *const c = &own->asked;
    tarn_error err = {0};

    const size_t echo_most = g->request->server->desc.max_body / g->n;

    if (!read_state(g, &c->state, refusal) || !read_prompt(g, c->prompt, refusal) ||
        !check_length(g, refusal))
        return false;
    if (c->echo && g->prompt_count > echo_most)
        return tn_refuse(refusal, 400, "echo",
                         "the prompt has %zu symbols; at most %zu can be echoed for n = %zu",
                         g->prompt_count, echo_most, g->n);
    if (tn_random_id(own->id, &err) != TARN_OK)
        return tn_refuse(refusal, 500, NULL, "%s", err.text);
    own->created = (long long)time(NULL);
    own->prompt_tokens = g->request->prompt_tokens = g->prompt_count;
    g->sampling = c->sampling;
    g->has_seed = c->has_seed;
    g->most = c->max_tokens;
    g->streams = c->stream;
    g->return_state = c->return_id     ? TN_STATE_BY_ID
                      : c->return_data ? TN_STATE_AS_DATA
                                       : TN_STATE_NONE;
    if (!c->has_seed && !g->continues)
        g->sampling.seed = strtoull(own->id + 16, NULL, 16);
    for (size_t i = 0; i < g->n && c->echo; i++) {
        struct tn_text *const text = &g->choices[i].text;
        char decoded[SYMBOL_TEXT];

        for (size_t k = 0; k < g->prompt_count; k++)
            tn_text_put(text, decoded,
                        tarn_task_decode(g->model->task, decoded, &g->prompt[k], 1));
        if (text->failed)
            return tn_refuse(refusal, 503, NULL, "not enough memory for the text");
    }
    atomic_fetch_add(&g->request->server->counts.prompt_tokens, g->prompt_count);
    return true;
}

static void submit(struct tn_request *request, struct tn_generation *g,
                   struct tn_refusal *refusal)
{
    request->model = g->model->name;
    if (!set_up(g, refusal) || !tn_scheduler_submit(g->model->scheduler, g, refusal))
        tn_generation_free(g);
}

void tn_api_completions(struct tn_request *request)
{
    struct tn_refusal refusal = {0};
    struct tn_body body = {.refusal = &refusal};
    struct tn_json json = {0};
    struct tn_completion asked = {0};
    struct tn_served *model = NULL;
    struct tn_generation *g = NULL;
    bool read = tn_body_parse(&body, &json, request->body.data, request->body.used) &&
                tn_completion_read(&asked, &body, request->server->desc.max_tokens);

    if (read && asked.state.id && !request->deferred) {
        tn_json_free(&json);
        tn_request_defer(request, request->server->workers);
        return;
    }
    if (read && (model = tn_request_model(request, asked.model, TN_SERVES_TEXT, &refusal)) &&
        !(g = tn_generation_new(request, model, &sink, asked.n)))
        tn_refuse(&refusal, 503, NULL, "not enough memory for a request");
    struct completion *const own = g ? calloc(1, sizeof *own) : NULL;

    if (g && !own) {
        tn_refuse(&refusal, 503, NULL, "not enough memory for a request");
        tn_generation_free(g);
    }
    if (own) {
        own->json = json;
        own->asked = asked;
        json = (struct tn_json){0};
        g->own = own;
        submit(request, g, &refusal);
    }
    tn_json_free(&json);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}
