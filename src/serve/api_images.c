/* SPDX-License-Identifier: MIT */
/* api_images.c - POST /v1/images/generations and /v1/images/completions: symbols are the bytes
 * of images, which are sent as PNG files, and as they are drawn if the client asks for it. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "file/cursor.h"
#include "file/json_write.h"
#include "file/png_file.h"
#include "serve/scheduler.h"

static size_t bytes_of(tarn_image_size size)
{
    return size.height * size.width * size.channels;
}

/* ---- The sink ----------------------------------------------------------- */

/* {"index": i, "position": p, "pixels": [...]} */
static void emit(struct tn_choice *choice)
{
    const struct tn_text *const pixels = &choice->text;
    struct tn_json_writer w = {0};

    if (choice->emitted == pixels->used)
        return;
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "index", (int64_t)choice->index);
    tn_json_put_whole(&w, "position", (int64_t)choice->emitted);
    tn_json_open(&w, "pixels", '[');
    for (; choice->emitted < pixels->used; choice->emitted++)
        tn_json_put_whole(&w, NULL, (unsigned char)pixels->data[choice->emitted]);
    tn_json_close(&w, ']');
    tn_json_close(&w, '}');
    tn_stream_event(choice->of->request, &w);
}

static void put(struct tn_choice *choice, int32_t symbol, const float *outputs)
{
    const unsigned char pixel = (unsigned char)symbol;

    (void)outputs;
    tn_text_put(&choice->text, &pixel, 1);
    if (choice->text.failed) {
        tn_refuse(&choice->refusal, 503, NULL, "not enough memory for the image");
        choice->finish = "error";
    } else if (choice->of->streams && tn_choice_is_due(choice)) {
        emit(choice);
    }
}

/* "b64_json": the image as a PNG file. */
static void put_png(struct tn_json_writer *w, const struct tn_choice *choice)
{
    const unsigned char *const pixels = (const unsigned char *)choice->text.data;
    struct tn_text png;

    if (tn_png_grid(&png, "image", pixels, choice->of->model->size, 1, 1, NULL) != TARN_OK)
        w->out.failed = true;
    tn_json_put_base64(w, "b64_json", png.data, png.used);
    tn_text_free(&png);
}

static void refuse_unfinished(struct tn_choice *choice)
{
    if (choice->drawn < choice->of->most && !choice->refusal.status)
        tn_refuse(&choice->refusal, 503, NULL, "the image was not finished: %s",
                  choice->finish);
}

static void end(struct tn_choice *choice)
{
    struct tn_json_writer w = {0};

    refuse_unfinished(choice);
    if (!choice->of->streams)
        return;
    if (choice->refusal.status) {
        tn_stream_refusal(choice->of->request, &choice->refusal);
        return;
    }
    emit(choice);
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "index", (int64_t)choice->index);
    put_png(&w, choice);
    tn_json_close(&w, '}');
    tn_stream_event(choice->of->request, &w);
}

static void finish(struct tn_generation *g)
{
    const struct tn_refusal *const refusal = tn_generation_refusal(g);
    struct tn_json_writer w = {0};

    if (g->streams) {
        tn_stream_end(g->request);
        return;
    }
    if (refusal) {
        tn_reply_refusal(g->request, refusal);
        return;
    }
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "created", g->created);
    tn_json_open(&w, "data", '[');
    for (size_t i = 0; i < g->n; i++) {
        tn_json_open(&w, NULL, '{');
        put_png(&w, &g->choices[i]);
        tn_json_close(&w, '}');
    }
    tn_json_close(&w, ']');
    tn_json_close(&w, '}');
    tn_reply_json(g->request, &w);
}

static const struct tn_sink sink = {put, end, finish};

/* ---- The request -------------------------------------------------------- */

/* By the header of the PNG file, before it is unpacked to a thousand times its bytes. */
static bool has_size(const struct tn_bytes *png, tarn_image_size size,
                     struct tn_refusal *refusal)
{
    const size_t width = png->size < 24 ? 0 : tn_big_endian(png->data + 16);
    const size_t height = png->size < 24 ? 0 : tn_big_endian(png->data + 20);

    return (width == size.width && height == size.height) ||
           tn_refuse(refusal, 400, "image",
                     "image has %zu x %zu pixels (height x width); the model needs %zu x %zu",
                     height, width, size.height, size.width);
}

static bool read_image(struct tn_images *images, const struct tn_image_wish *wish,
                       tarn_image_size size, struct tn_refusal *refusal)
{
    struct tn_text text = {0};
    tarn_error err = {0};
    tarn_status status = TARN_EFORMAT;

    if (!tn_text_from_base64(&text, wish->image, wish->image_length)) {
        tn_text_free(&text);
        return tn_refuse(refusal, 400, "image", "image is not base64");
    }
    const struct tn_bytes bytes = {(unsigned char *)text.data, text.used};

    if (text.failed)
        status = tn_fail(&err, TARN_ENOMEM, "not enough memory for the image");
    else if (!text.data || !tn_is_png(&bytes))
        tn_fail(&err, TARN_EFORMAT, "image is not a PNG file");
    else if (has_size(&bytes, size, refusal))
        status = tn_png_parse(images, &bytes, "image", NULL, &err);
    tn_text_free(&text);
    if (refusal->status)
        return false;
    if (status != TARN_OK)
        return tn_refuse_status(refusal, status, "image", &err);
    return images->channels == size.channels ||
           tn_refuse(refusal, 400, "image", "image has %zu channels; the model needs %zu",
                     images->channels, size.channels);
}

/* Bytes that are given of an image; SIZE_MAX: refused. */
static size_t count_given(const struct tn_image_wish *wish, tarn_image_size size,
                          struct tn_refusal *refusal)
{
    const size_t pixels = size.height * size.width;
    const bool by_rows = wish->rows < SIZE_MAX;
    const size_t keep = by_rows ? tn_min(wish->rows, pixels) * size.width : wish->keep;

    if (keep < pixels)
        return keep * size.channels;
    tn_refuse(refusal, 400, by_rows ? "rows" : "keep",
              "%zu pixels are given; the image has %zu, and at least one must be left", keep,
              pixels);
    return SIZE_MAX;
}

/* A model needs at least one symbol: the first byte of a new image is 0, as in tarn generate.
 */
static bool begin(struct tn_generation *g, const unsigned char *pixels, size_t given,
                  struct tn_refusal *refusal)
{
    struct tn_prompt *const prompt = &g->prompts[0];
    const size_t count = tn_max(given, 1);
    bool failed = false;

    prompt->symbols = malloc(count * sizeof *prompt->symbols);
    for (size_t i = 0; i < count && prompt->symbols; i++)
        prompt->symbols[i] = given > 0 ? pixels[i] : 0;
    for (size_t i = 0; i < g->n; i++) {
        tn_text_put(&g->choices[i].text, given > 0 ? (const void *)pixels : "", count);
        g->choices[i].emitted = given;
        failed |= g->choices[i].text.failed;
    }
    prompt->count = g->request->prompt_tokens = count;
    g->most = bytes_of(g->model->size) - count;
    return (prompt->symbols && !failed) ||
           tn_refuse(refusal, 503, NULL, "not enough memory for %zu images", g->n);
}

static bool set_up(struct tn_generation *g, const struct tn_image_wish *wish,
                   struct tn_refusal *refusal)
{
    struct tn_images images = {0};

    if (!wish->image)
        return begin(g, NULL, 0, refusal);
    const size_t given = count_given(wish, g->model->size, refusal);
    const bool begun = given < SIZE_MAX && read_image(&images, wish, g->model->size, refusal) &&
                       begin(g, images.pixels, given, refusal);

    tn_images_free(&images);
    return begun;
}

static void draw(struct tn_request *request, const struct tn_image_wish *wish,
                 struct tn_served *model, struct tn_refusal *refusal)
{
    struct tn_generation *const g =
        tn_generation_new(request, model, &sink, &wish->asked, 1, refusal);

    if (g && (!set_up(g, wish, refusal) || !tn_scheduler_submit(model->scheduler, g, refusal)))
        tn_generation_free(g);
}

static void answer(struct tn_request *request, bool completes)
{
    struct tn_refusal refusal = {0};
    struct tn_body body = {.refusal = &refusal};
    struct tn_json json = {0};
    struct tn_image_wish wish;
    struct tn_served *model;

    if (tn_body_parse(&body, &json, request->body.data, request->body.used) &&
        tn_image_wish_read(&wish, &body, completes) &&
        (model = tn_request_model(request, wish.asked.model, TN_SERVES_IMAGE, &refusal)))
        draw(request, &wish, model, &refusal);
    tn_json_free(&json);
    if (refusal.status)
        tn_reply_refusal(request, &refusal);
}

void tn_api_image_generations(struct tn_request *request)
{
    answer(request, false);
}

void tn_api_image_completions(struct tn_request *request)
{
    answer(request, true);
}
