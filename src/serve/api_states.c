/* SPDX-License-Identifier: MIT */
/* api_states.c - saved states: what they are, their bytes, copies, import and removal. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "file/json_write.h"
#include "serve/scheduler.h"

static const struct tn_served *model_of(const tarn_server *server, uint64_t fingerprint)
{
    for (size_t i = 0; i < server->model_count; i++)
        if (server->models[i].fingerprint == fingerprint)
            return &server->models[i];
    return NULL;
}

static void refuse(struct tn_request *request, tarn_status status, const tarn_error *err)
{
    struct tn_refusal refusal;

    if (status == TARN_EUNKNOWN)
        tn_refuse(&refusal, 404, "id", "%s", err->text);
    else
        tn_refuse_status(&refusal, status, NULL, err);
    tn_reply_refusal(request, &refusal);
}

static void reply_about(struct tn_request *request, const char *id,
                        const struct tn_bytes *bytes, double created,
                        const tarn_streams_about *about)
{
    const struct tn_served *const model = model_of(request->server, about->model);
    struct tn_json_writer w = {0};

    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "id", id);
    tn_json_put_text(&w, "object", "state");
    tn_json_put_text(&w, "model", model ? model->name : NULL);
    tn_json_put_whole(&w, "bytes", (int64_t)bytes->size);
    tn_json_put_whole(&w, "position", (int64_t)about->position);
    tn_json_put_whole(&w, "created", (int64_t)created);
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

/* Free `bytes` in any case. */
static bool read_state(struct tn_request *request, struct tn_bytes *bytes, double *created,
                       tarn_streams_about *about)
{
    tarn_error err = {0};
    tarn_status status =
        tn_store_get(request->server->store, request->tail, bytes, created, &err);

    if (status == TARN_OK)
        status = tarn_streams_inspect_packed(about, bytes->data, bytes->size, &err);
    if (status != TARN_OK)
        refuse(request, status, &err);
    return status == TARN_OK;
}

void tn_api_state(struct tn_request *request)
{
    struct tn_bytes bytes;
    double created;
    tarn_streams_about about;

    if (read_state(request, &bytes, &created, &about))
        reply_about(request, request->tail, &bytes, created, &about);
    tn_bytes_free(&bytes);
}

void tn_api_state_data(struct tn_request *request)
{
    struct tn_bytes bytes;
    struct tn_text text = {0};
    tarn_error err = {0};
    const tarn_status status =
        tn_store_get(request->server->store, request->tail, &bytes, NULL, &err);

    if (status != TARN_OK) {
        refuse(request, status, &err);
        return;
    }
    tn_text_put(&text, bytes.data, bytes.size);
    tn_bytes_free(&bytes);
    tn_reply_header(request, "Cache-Control", "no-store");
    tn_reply_header(request, "Content-Disposition",
                    "attachment; filename=\"state.safetensors\"");
    tn_reply(request, 200, "application/octet-stream", &text);
}

void tn_api_state_delete(struct tn_request *request)
{
    struct tn_json_writer w = {0};
    tarn_error err = {0};
    const tarn_status status = tn_store_remove(request->server->store, request->tail, &err);

    if (status != TARN_OK) {
        refuse(request, status, &err);
        return;
    }
    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "id", request->tail);
    tn_json_put_bool(&w, "deleted", true);
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

static void put_and_reply(struct tn_request *request, const struct tn_bytes *bytes,
                          const tarn_streams_about *about)
{
    char id[TN_STATE_ID];
    double created;
    tarn_error err = {0};
    const tarn_status status =
        tn_store_put(request->server->store, id, bytes->data, bytes->size, &created, &err);

    if (status == TARN_OK)
        reply_about(request, id, bytes, created, about);
    else
        refuse(request, status, &err);
}

void tn_api_state_fork(struct tn_request *request)
{
    struct tn_bytes bytes;
    tarn_streams_about about;

    if (read_state(request, &bytes, NULL, &about))
        put_and_reply(request, &bytes, &about);
    tn_bytes_free(&bytes);
}

/* ---- Import ------------------------------------------------------------- */

/* Only what can be continued is kept. */
static bool check_import(const struct tn_served *model, const struct tn_bytes *bytes,
                         tarn_streams_about *about, struct tn_refusal *refusal)
{
    const tarn_engine *const engine = tn_scheduler_engine(model->scheduler);
    tarn_stream *stream = tn_stream_new(engine);
    tarn_error err = {0};
    tarn_status status = TARN_OK;

    if (!stream)
        return tn_refuse(refusal, 503, NULL, "not enough memory for a state");
    if ((status = tarn_streams_unpack(engine, &stream, 1, bytes->data, bytes->size, &err)) ==
        TARN_OK)
        status = tarn_streams_inspect_packed(about, bytes->data, bytes->size, &err);
    free(stream);
    return status == TARN_OK || tn_refuse_status(refusal, status, NULL, &err);
}

void tn_api_state_import(struct tn_request *request)
{
    const char *const name =
        MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, "model");
    const struct tn_bytes bytes = {(unsigned char *)request->body.data, request->body.used};
    struct tn_refusal refusal = {0};
    const struct tn_served *const model =
        tn_request_model(request, name, TN_SERVES_TEXT, &refusal);
    tarn_streams_about about;

    if (model && bytes.size == 0)
        tn_refuse(&refusal, 400, NULL, "the body must be the bytes of a state");
    else if (model && check_import(model, &bytes, &about, &refusal))
        put_and_reply(request, &bytes, &about);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}
