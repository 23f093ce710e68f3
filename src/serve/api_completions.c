/* SPDX-License-Identifier: MIT */
/* api_completions.c - POST /v1/completions: what the body asks for becomes a generation. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "serve/completion.h"

/* ---- Prompts ------------------------------------------------------------ */

static bool encode_text(struct tn_prompt *prompt, const char *text, size_t length,
                        struct tn_refusal *refusal)
{
    tarn_error err = {0};

    prompt->symbols = malloc((length + 1) * sizeof *prompt->symbols);
    if (!prompt->symbols)
        return tn_refuse(refusal, 503, "prompt", "not enough memory for the prompt");
    const tarn_status status = tarn_task_encode(prompt->of->model->task, prompt->symbols,
                                                &prompt->count, text, length, &err);

    return status == TARN_OK || tn_refuse_status(refusal, status, "prompt", &err);
}

static bool take_symbols(struct tn_prompt *prompt, const struct tn_json_value *array,
                         struct tn_refusal *refusal)
{
    const size_t known = tarn_task_symbols(prompt->of->model->task);
    int64_t number;

    prompt->symbols = malloc((array->size + 1) * sizeof *prompt->symbols);
    if (!prompt->symbols)
        return tn_refuse(refusal, 503, "prompt", "not enough memory for the prompt");
    for (; prompt->count < array->size; prompt->count++) {
        if (!tn_json_whole(array + 1 + prompt->count, &number) || number < 0 ||
            (uint64_t)number >= known)
            return tn_refuse(refusal, 400, "prompt",
                             "prompt[%zu] must be a symbol from 0 to %zu", prompt->count,
                             known - 1);
        prompt->symbols[prompt->count] = (int32_t)number;
    }
    return true;
}

/* A model needs at least one symbol before it can predict: a newline, as in tarn generate. */
static bool read_prompt(struct tn_prompt *prompt, const struct tn_json_value *given,
                        struct tn_refusal *refusal)
{
    const bool is_text = given && given->kind == TN_JSON_TEXT;

    if (is_text ? !encode_text(prompt, given->text, given->size, refusal)
                : given && !take_symbols(prompt, given, refusal))
        return false;
    if (prompt->count > 0 || prompt->of->continues)
        return true;
    free(prompt->symbols);
    prompt->symbols = NULL;
    if (!encode_text(prompt, "\n", 1, refusal))
        return false;
    if (prompt->count == 0)
        prompt->symbols[prompt->count++] = 0;
    return true;
}

/* A state that has read everything it was given can only continue with a prompt. */
static bool check_length(const struct tn_prompt *prompt, struct tn_refusal *refusal)
{
    const tarn_stream *const from = prompt->of->from;
    const size_t end = tn_engine_end(tn_scheduler_engine(prompt->of->model->scheduler));
    const uint64_t position = from ? tarn_stream_position(from) : 0;
    const size_t next = from && tarn_stream_next(from) >= 0;

    if (prompt->count + next == 0)
        return tn_refuse(refusal, 400, "prompt",
                         "the state has no next symbol; a prompt is required to continue it");
    if (position > end || prompt->count + next > end - position)
        return tn_refuse(refusal, 400, "prompt",
                         "the prompt has %zu symbols after position %llu; the model can read "
                         "at most %zu",
                         prompt->count, (unsigned long long)position, end);
    return true;
}

static bool read_prompts(struct tn_generation *g, struct tn_refusal *refusal)
{
    const struct tn_json_value *given = ((const struct tn_completion *)g->own)->prompt;

    for (size_t i = 0; i < g->prompt_count; i++) {
        struct tn_prompt *const prompt = &g->prompts[i];

        if (!read_prompt(prompt, given, refusal) || !check_length(prompt, refusal))
            return false;
        g->request->prompt_tokens += prompt->count;
        given = given ? tn_json_next(given) : NULL;
    }
    return true;
}

/* Text begins with the prompt. */
static bool echo_prompt(const struct tn_prompt *prompt, struct tn_refusal *refusal)
{
    char decoded[TN_SYMBOL_TEXT];

    for (size_t i = 0; i < prompt->of->n; i++) {
        struct tn_choice *const choice = &prompt->choices[i];
        struct tn_text *const text = &choice->text;

        for (size_t k = 0; k < prompt->count; k++)
            tn_text_put(
                text, decoded,
                tarn_task_decode(prompt->of->model->task, decoded, &prompt->symbols[k], 1));
        if (text->failed)
            return tn_refuse(refusal, 503, NULL, "not enough memory for the text");
        choice->echoed = text->used;
    }
    return true;
}

static bool echo_prompts(const struct tn_generation *g, struct tn_refusal *refusal)
{
    const size_t most = g->request->server->desc.max_body / g->n;
    const size_t tokens = g->request->prompt_tokens;
    bool echoed = true;

    if (!((const struct tn_completion *)g->own)->echo)
        return true;
    if (tokens > most)
        return tn_refuse(refusal, 400, "echo",
                         "the prompt has %zu symbols; at most %zu can be echoed for n = %zu",
                         tokens, most, g->n);
    for (size_t i = 0; i < g->prompt_count && echoed; i++)
        echoed = echo_prompt(&g->prompts[i], refusal);
    return echoed;
}

/* ---- State -------------------------------------------------------------- */

static bool read_saved(struct tn_generation *g, const char *id, struct tn_refusal *refusal)
{
    struct tn_bytes saved = {0};
    tarn_error err = {0};
    const tarn_status status = tn_store_get(g->request->server->store, id, &saved, NULL, &err);
    const bool read =
        status == TARN_OK         ? tn_generation_unpack(g, saved.data, saved.size, refusal)
        : status == TARN_EUNKNOWN ? tn_refuse(refusal, 404, "state", "%s", err.text)
                                  : tn_refuse_status(refusal, status, "state", &err);

    tn_bytes_free(&saved);
    return read;
}

static bool read_data(struct tn_generation *g, const struct tn_state_given *state,
                      struct tn_refusal *refusal)
{
    struct tn_text data = {0};
    bool read;

    if (!tn_text_from_base64(&data, state->data, state->data_length))
        read = tn_refuse(refusal, 400, "state", "state.data is not base64");
    else if (data.failed)
        read = tn_refuse(refusal, 503, "state", "not enough memory for the state");
    else
        read = tn_generation_unpack(g, data.data ? data.data : "", data.used, refusal);
    tn_text_free(&data);
    return read;
}

static bool read_state(struct tn_generation *g, const struct tn_state_given *state,
                       struct tn_refusal *refusal)
{
    if (state->id)
        return read_saved(g, state->id, refusal);
    return !state->data || read_data(g, state, refusal);
}

/* ---- The request -------------------------------------------------------- */

/* Log-probabilities of a whole reply are kept until its end. */
static bool reserve(const struct tn_generation *g, struct tn_refusal *refusal)
{
    const struct tn_completion *const c = g->own;
    const size_t bytes = g->streams ? 0 : tn_logprobs_bytes(c, g->choice_count);

    if (bytes > g->request->server->desc.max_body)
        return tn_refuse(refusal, 400, "logprobs",
                         "log-probabilities of %zu x %zu tokens do not fit in one reply; ask "
                         "for fewer, or for a stream",
                         g->choice_count, c->max_tokens);
    return tn_request_keep(g->request, bytes, refusal);
}

static bool set_up(struct tn_generation *g, const struct tn_completion *asked,
                   struct tn_refusal *refusal)
{
    struct tn_completion *const own = malloc(sizeof *own);

    if (!own)
        return tn_refuse(refusal, 503, NULL, "not enough memory for a request");
    *own = *asked;
    g->own = own;
    g->most = asked->max_tokens;
    g->return_state = asked->return_state;
    if (!reserve(g, refusal) || !read_state(g, &asked->state, refusal) ||
        !read_prompts(g, refusal) || !echo_prompts(g, refusal))
        return false;
    atomic_fetch_add(&g->request->server->counts.prompt_tokens, g->request->prompt_tokens);
    return true;
}

static void submit(struct tn_request *request, const struct tn_completion *asked,
                   struct tn_refusal *refusal)
{
    struct tn_served *const model =
        tn_request_model(request, asked->asked.model, TN_SERVES_TEXT, refusal);
    struct tn_generation *const g =
        model ? tn_generation_new(request, model, &tn_completion_sink, &asked->asked,
                                  asked->prompts, refusal)
              : NULL;

    if (g && (!set_up(g, asked, refusal) || !tn_scheduler_submit(model->scheduler, g, refusal)))
        tn_generation_free(g);
}

void tn_api_completions(struct tn_request *request)
{
    struct tn_refusal refusal = {0};
    struct tn_body body = {.refusal = &refusal};
    struct tn_json json = {0};
    struct tn_completion asked = {0};

    if (tn_body_parse(&body, &json, request->body.data, request->body.used) &&
        tn_completion_read(&asked, &body, request->server->desc.max_tokens)) {
        if (asked.state.id && !request->deferred) {
            tn_request_defer(request, TN_READERS);
        } else {
            tn_text_free(&request->body); /* all of it is in the JSON */
            submit(request, &asked, &refusal);
        }
    }
    tn_json_free(&json);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}
