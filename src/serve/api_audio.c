/* SPDX-License-Identifier: MIT */
/* api_audio.c - POST /v1/audio/transcriptions: a recording, uploaded as a form. */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file/json_write.h"
#include "serve/request.h"
#include "tarn/speech.h"

/* Fields of the form. */
struct form {
    struct tn_text file, model, format;
    bool has_file;
};

static enum MHD_Result take_field(void *own, enum MHD_ValueKind kind, const char *key,
                                  const char *filename, const char *type, const char *encoding,
                                  const char *data, uint64_t offset, size_t size)
{
    struct form *const form = own;

    (void)kind, (void)filename, (void)type, (void)encoding, (void)offset;
    if (!key)
        return MHD_YES;
    if (strcmp(key, "file") == 0) {
        form->has_file = true;
        tn_text_put(&form->file, data, size);
    } else if (strcmp(key, "model") == 0) {
        tn_text_put(&form->model, data, size);
    } else if (strcmp(key, "response_format") == 0) {
        tn_text_put(&form->format, data, size);
    }
    return MHD_YES;
}

static bool read_form(struct form *form, struct tn_request *request, struct tn_refusal *refusal)
{
    struct MHD_PostProcessor *const parser =
        MHD_create_post_processor(request->connection, 4096, take_field, form);

    if (!parser)
        return tn_refuse(refusal, 415, NULL,
                         "the body must be multipart/form-data with the fields file and model");
    const bool parsed = MHD_post_process(parser, request->body.data ? request->body.data : "",
                                         request->body.used) == MHD_YES;

    if (MHD_destroy_post_processor(parser) != MHD_YES || !parsed)
        return tn_refuse(refusal, 400, NULL, "the form is damaged or incomplete");
    tn_text_end(&form->file);
    tn_text_end(&form->model);
    tn_text_end(&form->format);
    if (form->file.failed || form->model.failed || form->format.failed)
        return tn_refuse(refusal, 503, NULL, "not enough memory for the form");
    return form->has_file || tn_refuse(refusal, 400, "file", "file must be given");
}

/* ---- Replies ------------------------------------------------------------ */

static void put_number(struct tn_json_writer *w, const char *key, double number)
{
    tn_json_put_number(w, key, number, 7);
}

/* A symbol ends where the next one begins. */
static void put_words(struct tn_json_writer *w, const tarn_transcript *t)
{
    tn_json_open(w, "words", '[');
    for (size_t i = 0; i < t->count; i++) {
        tn_json_open(w, NULL, '{');
        tn_json_put_text(w, "word", t->symbols[i].symbol);
        put_number(w, "start", t->symbols[i].begin);
        put_number(w, "end", i + 1 < t->count ? t->symbols[i + 1].begin : t->seconds);
        put_number(w, "confidence", t->symbols[i].confidence);
        tn_json_close(w, '}');
    }
    tn_json_close(w, ']');
}

static void put_verbose(struct tn_json_writer *w, const tarn_transcript *t)
{
    tn_json_put_text(w, "task", "transcribe");
    tn_json_put_text(w, "language", "unknown");
    put_number(w, "duration", t->seconds);
    put_words(w, t);
    tn_json_open(w, "segments", '[');
    tn_json_open(w, NULL, '{');
    tn_json_put_whole(w, "id", 0);
    put_number(w, "start", 0.0);
    put_number(w, "end", t->seconds);
    tn_json_put_text(w, "text", t->text);
    put_number(w, "avg_logprob",
               t->count > 0 ? t->log_probability / (double)t->count : t->log_probability);
    tn_json_close(w, '}');
    tn_json_close(w, ']');
}

static void reply(struct tn_request *request, const tarn_transcript *t, const char *format)
{
    struct tn_json_writer w = {0};
    struct tn_text text = {0};

    if (strcmp(format, "text") == 0) {
        tn_text_print(&text, "%s\n", t->text);
        tn_reply(request, 200, "text/plain; charset=utf-8", &text);
        return;
    }
    tn_json_open(&w, NULL, '{');
    tn_json_put_text(&w, "text", t->text);
    if (strcmp(format, "verbose_json") == 0)
        put_verbose(&w, t);
    tn_json_close(&w, '}');
    tn_reply_json(request, &w);
}

/* ---- Recognition -------------------------------------------------------- */

static bool write_all(int file, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t written = write(file, bytes + done, n - done);

        if (written <= 0 && errno != EINTR)
            return false;
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* The reader wants a file: one in memory, without a name. */
static tarn_status recognize(tarn_recognizer *recognizer, tarn_transcript *transcript,
                             const struct tn_text *bytes, tarn_error *err)
{
    const int file = memfd_create("recording", MFD_CLOEXEC);
    char path[64];
    tarn_status status;

    if (file < 0 || !write_all(file, bytes->data, bytes->used)) {
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for the recording");
    } else {
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        status = tarn_recognizer_file(recognizer, transcript, path, err);
    }
    if (file >= 0)
        close(file);
    return status;
}

/* Sentences of the library begin with the path, which means nothing to the client. */
static void refuse(struct tn_refusal *refusal, tarn_status status, const tarn_error *err)
{
    const char *const colon =
        strncmp(err->text, "/proc/", 6) == 0 ? strstr(err->text, ": ") : NULL;
    tarn_error shown = *err;

    if (colon)
        snprintf(shown.text, sizeof shown.text, "file: %s", colon + 2);
    tn_refuse_status(refusal, status == TARN_EIO ? TARN_EFORMAT : status, "file", &shown);
}

static void transcribe(struct tn_request *request, const struct form *form, const char *format,
                       const tarn_model *model, struct tn_refusal *refusal)
{
    const tarn_recognizer_desc desc = {.host = request->server->desc.host};
    tarn_recognizer *recognizer = NULL;
    tarn_transcript transcript;
    tarn_error err = {0};
    tarn_status status = tarn_recognizer_create(&recognizer, model, &desc, &err);

    if (status == TARN_OK)
        status = recognize(recognizer, &transcript, &form->file, &err);
    if (status == TARN_OK)
        reply(request, &transcript, format);
    else
        refuse(refusal, status, &err);
    tarn_recognizer_free(recognizer);
}

void tn_api_transcriptions(struct tn_request *request)
{
    struct tn_refusal refusal = {0};
    struct form form = {0};
    struct tn_served *model;

    if (read_form(&form, request, &refusal)) {
        const char *const format = form.format.used > 0 ? form.format.data : "json";

        if (strcmp(format, "json") != 0 && strcmp(format, "text") != 0 &&
            strcmp(format, "verbose_json") != 0)
            tn_refuse(&refusal, 400, "response_format",
                      "response_format must be json, text or verbose_json");
        else if ((model = tn_request_model(request, form.model.used ? form.model.data : NULL,
                                           TN_SERVES_SPEECH, &refusal)))
            transcribe(request, &form, format, model->model, &refusal);
    }
    tn_text_free(&form.file);
    tn_text_free(&form.model);
    tn_text_free(&form.format);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}
