/* SPDX-License-Identifier: MIT */
#include "serve/completion_body.h"

#include <string.h>

/* Temperature 0 is the most probable symbol. */
static bool read_asked(struct tn_asked *asked, const struct tn_body *body)
{
    tarn_sampling *const sampling = &asked->sampling;

    *asked = (struct tn_asked){.n = 1, .sampling = {.temperature = 1.0, .top_p = 1.0}};
    if (!tn_body_text(body, "model", &asked->model) ||
        !tn_body_count(body, "n", &asked->n, 1, TN_CHOICES_MOST) ||
        !tn_body_flag(body, "stream", &asked->stream) ||
        !tn_body_number(body, "temperature", &sampling->temperature, 0.0, 100.0) ||
        !tn_body_number(body, "top_p", &sampling->top_p, 0.0, 1.0) ||
        !tn_body_count(body, "top_k", &sampling->top_k, 0, INT32_MAX) ||
        !tn_body_seed(body, "seed", &sampling->seed, &asked->has_seed))
        return false;
    sampling->greedy = sampling->temperature == 0.0 || sampling->top_p == 0.0;
    return true;
}

/* ---- Completions -------------------------------------------------------- */

/* A long one would take the time of everybody's next step: see begun_stop(). */
static bool read_stop(struct tn_completion *c, const struct tn_body *body,
                      const struct tn_json_value *value)
{
    if (value->kind != TN_JSON_TEXT || value->size == 0)
        return tn_refuse(body->refusal, 400, "stop",
                         "stop must be a non-empty string, or an array of up to %d of them",
                         TN_STOPS);
    if (value->size > TN_STOP_MOST)
        return tn_refuse(body->refusal, 400, "stop",
                         "stop has %zu bytes; at most %d are allowed", value->size,
                         TN_STOP_MOST);
    memcpy(c->stops[c->stop_count].text, value->text, value->size + 1);
    c->stops[c->stop_count++].length = value->size;
    return true;
}

static bool read_stops(struct tn_completion *c, const struct tn_body *body)
{
    const struct tn_json_value *const stop = tn_body_get(body, "stop");
    const struct tn_json_value *one;

    if (!stop || stop->kind != TN_JSON_ARRAY)
        return !stop || read_stop(c, body, stop);
    one = stop + 1;
    if (stop->size > TN_STOPS)
        return tn_refuse(body->refusal, 400, "stop",
                         "stop has %zu strings; at most %d are allowed", stop->size, TN_STOPS);
    for (size_t i = 0; i < stop->size; i++, one = tn_json_next(one))
        if (!read_stop(c, body, one))
            return false;
    return true;
}

static bool is_prompt(const struct tn_json_value *value)
{
    int64_t number;

    if (value->kind != TN_JSON_ARRAY)
        return value->kind == TN_JSON_TEXT;
    for (size_t i = 1; i <= value->size; i++)
        if (value[i].kind != TN_JSON_WHOLE || !tn_json_whole(value + i, &number) ||
            number < 0 || number > INT32_MAX)
            return false;
    return true;
}

/* An array that does not begin with a symbol is one of prompts. */
static bool read_prompt(struct tn_completion *c, const struct tn_body *body)
{
    const struct tn_json_value *prompt = tn_body_get(body, "prompt");

    if (prompt && prompt->kind == TN_JSON_ARRAY && prompt->size > 0 &&
        prompt[1].kind != TN_JSON_WHOLE)
        c->prompts = prompt++->size;
    c->prompt = prompt;
    for (size_t i = 0; prompt && i < c->prompts; i++, prompt = tn_json_next(prompt))
        if (!is_prompt(prompt))
            return tn_refuse(body->refusal, 400, "prompt",
                             "prompt must be a string, an array of symbols, or an array of "
                             "these");
    return c->prompts <= TN_CHOICES_MOST / c->asked.n ||
           tn_refuse(body->refusal, 400, "prompt",
                     "%zu prompts with n = %zu are too many choices; at most %d are allowed",
                     c->prompts, c->asked.n, TN_CHOICES_MOST);
}

static bool read_state(struct tn_completion *c, const struct tn_body *body)
{
    const struct tn_json_value *const state = tn_body_get(body, "state");
    const struct tn_json_value *const data = tn_json_get(state, "data");

    if (!state)
        return true;
    if (state->kind == TN_JSON_TEXT) {
        c->state.id = state->text;
        return true;
    }
    if (!data || data->kind != TN_JSON_TEXT)
        return tn_refuse(body->refusal, 400, "state",
                         "state must be the id of a state, or {\"data\": base64}");
    c->state.data = data->text;
    c->state.data_length = data->size;
    return true;
}

static bool read_return_state(struct tn_completion *c, const struct tn_body *body)
{
    const struct tn_json_value *const value = tn_body_get(body, "return_state");
    const char *const text = value && value->kind == TN_JSON_TEXT ? value->text : "";

    c->return_state = strcmp(text, "id") == 0     ? TN_STATE_BY_ID
                      : strcmp(text, "data") == 0 ? TN_STATE_AS_DATA
                                                  : TN_STATE_NONE;
    return !value || value->kind == TN_JSON_FALSE || c->return_state != TN_STATE_NONE ||
           tn_refuse(body->refusal, 400, "return_state",
                     "return_state must be \"id\", \"data\" or false");
}

static bool read_logprobs(struct tn_completion *c, const struct tn_body *body)
{
    const struct tn_json_value *const value = tn_body_get(body, "logprobs");

    if (value && value->kind == TN_JSON_FALSE)
        return true;
    c->has_logprobs = value != NULL;
    return tn_body_count(body, "logprobs", &c->logprobs, 0, TN_LOGPROBS);
}

/* Fields of OpenAI's that have a meaning here only if they ask for nothing. */
static bool refuse_others(const struct tn_completion *c, const struct tn_body *body)
{
    static const char *const zeros[] = {"presence_penalty", "frequency_penalty"};
    const struct tn_json_value *const bias = tn_body_get(body, "logit_bias");
    size_t best_of = 1;
    double zero = 0.0;

    for (size_t i = 0; i < 2; i++)
        if (!tn_body_number(body, zeros[i], &zero, 0.0, 0.0))
            return tn_refuse(body->refusal, 400, zeros[i], "%s is not supported; it must be 0",
                             zeros[i]);
    if (bias && (bias->kind != TN_JSON_OBJECT || bias->size > 0))
        return tn_refuse(body->refusal, 400, "logit_bias", "logit_bias is not supported");
    if (tn_body_get(body, "suffix"))
        return tn_refuse(body->refusal, 400, "suffix", "suffix is not supported");
    if (!tn_body_count(body, "best_of", &best_of, 1, TN_CHOICES_MOST))
        return false;
    return best_of == 1 || best_of == c->asked.n ||
           tn_refuse(body->refusal, 400, "best_of", "best_of is not supported; it must be n");
}

bool tn_completion_read(struct tn_completion *c, const struct tn_body *body, size_t max_tokens)
{
    static const char known[] = "model prompt max_tokens temperature top_p top_k seed stop n "
                                "logprobs stream echo state "
                                "return_state stream_options user best_of presence_penalty "
                                "frequency_penalty logit_bias "
                                "suffix";

    *c = (struct tn_completion){.max_tokens = tn_min(16, max_tokens), .prompts = 1};
    if (!tn_body_known(body, known) || !read_asked(&c->asked, body) ||
        !tn_body_count(body, "max_tokens", &c->max_tokens, 0, max_tokens) ||
        !tn_body_flag(body, "echo", &c->echo) || !read_prompt(c, body) ||
        !read_stops(c, body) || !read_state(c, body) || !read_return_state(c, body) ||
        !read_logprobs(c, body) || !refuse_others(c, body))
        return false;
    const struct tn_json_value *const options = tn_body_get(body, "stream_options");
    const struct tn_body inner = {options, body->refusal};

    if (options &&
        (options->kind != TN_JSON_OBJECT || !tn_body_known(&inner, "include_usage") ||
         !tn_body_flag(&inner, "include_usage", &c->include_usage)))
        return tn_refuse(body->refusal, 400, "stream_options",
                         "stream_options must be an object with include_usage, true or false");
    return !(c->echo && c->has_logprobs) ||
           tn_refuse(body->refusal, 400, "echo", "echo cannot be used together with logprobs");
}

/* ---- Images ------------------------------------------------------------- */

static bool read_image(struct tn_image_wish *wish, const struct tn_body *body)
{
    const struct tn_json_value *const image = tn_body_get(body, "image");

    if (!image || image->kind != TN_JSON_TEXT)
        return tn_refuse(body->refusal, 400, "image", "image must be a PNG file in base64");
    wish->image = image->text;
    wish->image_length = image->size;
    if (!tn_body_count(body, "keep", &wish->keep, 0, INT32_MAX) ||
        !tn_body_count(body, "rows", &wish->rows, 0, INT32_MAX))
        return false;
    return (wish->keep == SIZE_MAX) != (wish->rows == SIZE_MAX) ||
           tn_refuse(body->refusal, 400, "keep",
                     "either keep, a number of pixels, or rows must be given");
}

bool tn_image_wish_read(struct tn_image_wish *wish, const struct tn_body *body, bool completes)
{
    static const char known[] = "model n seed temperature top_p top_k stream response_format "
                                "prompt size user image keep rows";
    const char *format = "b64_json";

    *wish = (struct tn_image_wish){.keep = SIZE_MAX, .rows = SIZE_MAX};
    if (!tn_body_known(body, known) || !read_asked(&wish->asked, body) ||
        !tn_body_text(body, "response_format", &format))
        return false;
    if (strcmp(format, "b64_json") != 0)
        return tn_refuse(body->refusal, 400, "response_format",
                         "response_format must be b64_json");
    if (completes)
        return read_image(wish, body);
    return !tn_body_get(body, "image") ||
           tn_refuse(body->refusal, 400, "image", "image belongs to /v1/images/completions");
}
