/* SPDX-License-Identifier: MIT */
/* api_models.c - what is served: GET /v1/models, the models' files, health and metrics. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/json_write.h"
#include "serve/scheduler.h"

static const char *const tasks[] = {"text", "image", "speech"};

static void put_model(struct tn_json_writer *w, const struct tn_served *model)
{
    const tarn_config *const config = tarn_model_config(model->model);

    tn_json_open(w, NULL, '{');
    tn_json_put_text(w, "id", model->name);
    tn_json_put_text(w, "object", "model");
    tn_json_put_whole(w, "created", 0);
    tn_json_put_text(w, "owned_by", "tarn");
    tn_json_put_text(w, "task", tasks[model->serves]);
    tn_json_put_text(w, "attention", config->attention);
    tn_json_put_whole(w, "parameters", (int64_t)tarn_model_parameters(model->model));
    tn_json_put_whole(w, "symbols", (int64_t)config->symbols);
    if (model->scheduler) {
        const tarn_engine *const engine = tn_scheduler_engine(model->scheduler);
        const size_t end = tn_engine_end(engine);

        tn_json_put_whole(w, "state_bytes", (int64_t)tarn_stream_size(engine));
        if (end < SIZE_MAX)
            tn_json_put_whole(w, "max_positions", (int64_t)end);
        else
            tn_json_put_text(w, "max_positions", NULL);
    }
    if (model->serves == TN_SERVES_IMAGE) {
        tn_json_put_whole(w, "width", (int64_t)model->size.width);
        tn_json_put_whole(w, "height", (int64_t)model->size.height);
        tn_json_put_whole(w, "channels", (int64_t)model->size.channels);
    }
    tn_json_put_bool(w, "causal", config->causal);
    tn_json_put_bool(w, "file", model->path != NULL);
    tn_json_close(w, '}');
}

void tn_api_models(struct tn_request *request)
{
    const tarn_server *const server = request->server;
    struct tn_json_writer w = {0};

    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "object", "list");
    tn_json_open(&w, "data", '[');
    for (size_t i = 0; i < server->model_count; i++)
        put_model(&w, &server->models[i]);
    tn_json_close(&w, ']');
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

void tn_api_model(struct tn_request *request)
{
    struct tn_refusal refusal;
    const struct tn_served *const model =
        tn_server_model(request->server, request->tail, &refusal);
    struct tn_json_writer w = {0};

    if (!model) {
        tn_reply_refusal(request, &refusal);
        return;
    }
    put_model(&w, model);
    tn_reply_json(request, &w);
}

/* ---- Files -------------------------------------------------------------- */

/* The file may have been replaced since it was loaded: its time and size name what is sent. */
static void send_file(struct tn_request *request, const struct tn_served *model)
{
    struct tn_refusal refusal;
    struct stat about;
    char tag[64];
    const int file = open(model->path, O_RDONLY | O_CLOEXEC);

    if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        tn_refuse(&refusal, 500, NULL, "the model's file cannot be read: %s",
                  file < 0 ? strerror(errno) : "not a regular file");
        tn_reply_refusal(request, &refusal);
        if (file >= 0)
            close(file);
        return;
    }
    request->file = file; /* closed with the request */
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "-%llx-%llx\"", model->fingerprint,
             (unsigned long long)about.st_size, (unsigned long long)about.st_mtime);
    const bool known = tn_reply_tag(request, tag);

    request->still_bytes = known ? 0 : (size_t)about.st_size;
    tn_reply(request, known ? 304 : 200, "application/octet-stream", &(struct tn_text){0});
}

void tn_api_model_file(struct tn_request *request)
{
    static const char ending[] = ".safetensors";
    const size_t length = strlen(request->tail), cut = sizeof ending - 1;
    const struct tn_served *model = NULL;
    struct tn_refusal refusal;
    char name[TN_REQUEST_TAIL];

    tn_refuse(&refusal, 404, NULL, "there is no such path");
    if (length > cut && strcmp(request->tail + length - cut, ending) == 0) {
        snprintf(name, sizeof name, "%.*s", (int)(length - cut), request->tail);
        model = tn_server_model(request->server, name, &refusal);
    }
    if (model && model->path)
        send_file(request, model);
    else
        tn_reply_refusal(request, &refusal);
}

/* ---- Health and metrics ------------------------------------------------- */

void tn_api_health(struct tn_request *request)
{
    tarn_server *const server = request->server;
    const bool draining = atomic_load(&server->draining);
    struct tn_json_writer w = {0};

    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "status", draining ? "draining" : "ok");
    tn_json_put_text(&w, "version", tarn_version());
    tn_json_put_number(&w, "uptime", tn_seconds() - server->begun, 7);
    tn_json_put_whole(&w, "models", (int64_t)server->model_count);
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

static void metric(struct tn_text *text, const char *name, const char *type, const char *help)
{
    tn_text_print(text, "# HELP tarn_%s %s\n# TYPE tarn_%s %s\n", name, help, name, type);
}

static void one_metric(struct tn_text *text, const char *name, const char *type,
                       const char *help, double value)
{
    metric(text, name, type, help);
    tn_text_print(text, "tarn_%s %.10g\n", name, value);
}

static const struct {
    const char *name, *type, *help;
} model_metrics[] = {
    {"users", "gauge", "streams that are being generated"},
    {"queued_streams", "gauge", "streams that wait for room in the batch"},
    {"steps_total", "counter", "steps of the batch"},
    {"step_seconds_total", "counter", "seconds of these steps"},
    {"generated_tokens_total", "counter", "symbols drawn"},
    {"tokens_per_second", "gauge", "symbols drawn per second, over the last second"},
    {"first_tokens_total", "counter", "streams that have a first symbol"},
    {"first_token_steps_total", "counter", "steps from their requests to first symbols"},
    {"bytes_per_user", "gauge", "bytes of a stream"},
};

static double model_metric(const struct tn_served *model,
                           const struct tn_scheduler_counts *counts, size_t index)
{
    const double values[] = {
        (double)counts->streams,
        (double)counts->queued,
        (double)counts->steps,
        counts->step_seconds,
        (double)counts->tokens,
        counts->tokens_per_s,
        (double)counts->firsts,
        (double)counts->first_steps,
        (double)tarn_stream_size(tn_scheduler_engine(model->scheduler)),
    };

    return values[index];
}

static void put_model_metrics(struct tn_text *text, const tarn_server *server)
{
    for (size_t k = 0; k < sizeof model_metrics / sizeof model_metrics[0]; k++) {
        metric(text, model_metrics[k].name, model_metrics[k].type, model_metrics[k].help);
        for (size_t i = 0; i < server->model_count; i++) {
            const struct tn_served *const model = &server->models[i];

            if (!model->scheduler)
                continue;
            const struct tn_scheduler_counts counts = tn_scheduler_count(model->scheduler);

            tn_text_print(text, "tarn_%s{model=\"%s\"} %.10g\n", model_metrics[k].name,
                          model->name, model_metric(model, &counts, k));
        }
    }
}

void tn_api_metrics(struct tn_request *request)
{
    tarn_server *const server = request->server;
    struct tn_counts *const counts = &server->counts;
    struct tn_text text = {0};
    size_t states;
    uint64_t bytes;

    tn_store_sizes(server->store, &states, &bytes);
    metric(&text, "requests_total", "counter", "requests by the class of their status");
    for (size_t i = 1; i < TN_STATUS_CLASSES; i++)
        tn_text_print(&text, "tarn_requests_total{status=\"%zuxx\"} %llu\n", i,
                      (unsigned long long)atomic_load(&counts->requests[i]));
    one_metric(&text, "open_requests", "gauge", "requests that have no reply yet",
               (double)atomic_load(&counts->open));
    one_metric(&text, "clients_left_total", "counter",
               "requests whose client did not wait for the end",
               (double)atomic_load(&counts->left));
    one_metric(&text, "prompt_tokens_total", "counter", "symbols of prompts",
               (double)atomic_load(&counts->prompt_tokens));
    one_metric(&text, "states", "gauge", "saved states", (double)states);
    one_metric(&text, "state_bytes", "gauge", "bytes of saved states", (double)bytes);
    one_metric(&text, "uptime_seconds", "gauge", "seconds since the start",
               tn_seconds() - server->begun);
    put_model_metrics(&text, server);
    tn_reply(request, 200, "text/plain; version=0.0.4", &text);
}
