/* SPDX-License-Identifier: MIT */
/* serve_request.c - whatever a client sends must end in a request that can be run, or in an
 * error of OpenAI's form. The first byte says what the rest is: C and I bodies for completions
 * and images, S the bytes of a state. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/completion_body.h"
#include "tarn/tarn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

/* ---- States ------------------------------------------------------------- */

/* Made once: a model of text with random weights. */
static tarn_engine *engine_of(void)
{
    static tarn_engine *engine;
    static const char *const fields[] = {"task",  "text", "layers", "1", "heads", "2",
                                         "width", "8",    "feed",   "8", NULL};
    tarn_config config;
    tarn_model *model;

    if (engine)
        return engine;
    need(tarn_config_preset(&config, "tiny", NULL) == TARN_OK);
    for (size_t i = 0; fields[i]; i += 2)
        need(tarn_config_set(&config, fields[i], fields[i + 1], NULL) == TARN_OK);
    need(tarn_model_create(&model, &config, NULL, NULL) == TARN_OK);
    need(tarn_engine_create(&engine, model,
                            &(tarn_engine_desc){.capacity = 1, .host.threads = 1},
                            NULL) == TARN_OK);
    return engine;
}

/* What is accepted can be continued; outputs that are not finite are an error. */
static void check_state(const void *bytes, size_t size)
{
    tarn_engine *const engine = engine_of();
    tarn_stream *stream;
    tarn_streams_about about;
    tarn_error err = {0};
    const int32_t symbol = 7;

    need(tarn_stream_create(&stream, engine, NULL) == TARN_OK);
    if (tarn_streams_unpack(engine, &stream, 1, bytes, size, &err) != TARN_OK) {
        need(*err.text && memchr(err.text, '\0', sizeof err.text));
    } else {
        need(tarn_streams_inspect_packed(&about, bytes, size, NULL) == TARN_OK);
        need(about.position == tarn_stream_position(stream));
        tarn_engine_step(engine, &stream, NULL, &symbol, 1, NULL);
    }
    tarn_stream_free(stream);
}

/* ---- Bodies ------------------------------------------------------------- */

static void check_refusal(const struct tn_refusal *refusal)
{
    struct tn_json_writer w = {0};
    struct tn_json json = {0};

    need(refusal->status >= 400 && refusal->status < 600 && *refusal->text);
    tn_refusal_write(refusal, &w);
    need(!w.out.failed && tn_json_parse(&json, w.out.data, w.out.used, NULL) == TARN_OK);
    need(tn_json_text(tn_json_get(json.root, "error"), "message") != NULL);
    tn_json_free(&json);
    tn_text_free(&w.out);
}

static void check_sampling(const tarn_sampling *sampling)
{
    need(sampling->temperature >= 0.0 && isfinite(sampling->temperature));
    need(sampling->top_p >= 0.0 && sampling->top_p <= 1.0);
}

static void check_prompts(const struct tn_completion *c)
{
    const struct tn_json_value *prompt = c->prompt;

    need(c->prompts >= 1 && c->prompts * c->asked.n <= TN_CHOICES_MOST);
    for (size_t i = 0; prompt && i < c->prompts; i++, prompt = tn_json_next(prompt))
        need(prompt->kind == TN_JSON_TEXT || prompt->kind == TN_JSON_ARRAY);
}

static void check_completion(const struct tn_completion *c)
{
    struct tn_text state = {0};

    need(c->asked.n >= 1 && c->asked.n <= TN_CHOICES_MOST && c->max_tokens <= 1000);
    need(c->stop_count <= TN_STOPS && c->logprobs <= TN_LOGPROBS);
    for (size_t i = 0; i < c->stop_count; i++)
        need(c->stops[i].length == strlen(c->stops[i].text) && c->stops[i].length > 0);
    check_prompts(c);
    check_sampling(&c->asked.sampling);
    if (c->state.data && tn_text_from_base64(&state, c->state.data, c->state.data_length) &&
        state.data)
        check_state(state.data, state.used);
    tn_text_free(&state);
}

static void check_body(bool image, const char *text, size_t size)
{
    struct tn_refusal refusal = {0};
    struct tn_body body = {.refusal = &refusal};
    struct tn_json json = {0};
    struct tn_completion completion;
    struct tn_image_wish wish;

    if (!tn_body_parse(&body, &json, text, size)) {
        check_refusal(&refusal);
    } else if (image) {
        if (tn_image_wish_read(&wish, &body, size % 2 == 0))
            check_sampling(&wish.asked.sampling);
        else
            check_refusal(&refusal);
    } else if (tn_completion_read(&completion, &body, 1000)) {
        check_completion(&completion);
    } else {
        check_refusal(&refusal);
    }
    tn_json_free(&json);
}

/* What base64 says again is what it was. */
static void check_base64(const void *bytes, size_t size)
{
    struct tn_text text = {0}, again = {0};

    tn_text_base64(&text, bytes, size);
    need(tn_text_from_base64(&again, text.data ? text.data : "", text.used));
    need(again.used == size && (size == 0 || memcmp(again.data, bytes, size) == 0));
    tn_text_free(&text);
    tn_text_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *const rest = malloc(size + 1);

    need(rest != NULL);
    if (size > 1)
        memcpy(rest, data + 1, size - 1);
    const size_t n = size > 0 ? size - 1 : 0;

    rest[n] = '\0';
    check_base64(rest, n);
    if (size > 0 && *data == 'S')
        check_state(rest, n);
    else
        check_body(size > 0 && *data == 'I', rest, n);
    free(rest);
    return 0;
}
