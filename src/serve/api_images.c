/* SPDX-License-Identifier: MIT */
/* api_images.c - POST /v1/images/generations and /v1/images/completions: symbols are the bytes
 * of images, which are sent as PNG files, and as they are drawn if the client asks for it. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file/cursor.h"
#include "file/json_write.h"
#include "file/png_file.h"
#include "serve/scheduler.h"

/* The sink's own. */
struct drawing {
    struct tn_image_wish wish;
    unsigned char *pixels; /* of all choices */
    size_t bytes, given;   /* of an image; of these, those that are there from the start */
};

static struct drawing *own_of(const struct tn_generation *g)
{
    return g->own;
}

static unsigned char *image_of(const struct tn_choice *choice)
{
    const struct drawing *const own = own_of(choice->of);

    return own->pixels + choice->index * own->bytes;
}

/* ---- The sink ----------------------------------------------------------- */

/* {"index": i, "position": p, "pixels": [...]} */
static void emit(struct tn_choice *choice)
{
    const struct drawing *const own = own_of(choice->of);
    const size_t there = own->given + choice->drawn;
    struct tn_json_writer w = {0};

    if (choice->emitted == there)
        return;
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "index", (int64_t)choice->index);
    tn_json_put_whole(&w, "position", (int64_t)choice->emitted);
    tn_json_open(&w, "pixels", '[');
    for (; choice->emitted < there; choice->emitted++)
        tn_json_put_whole(&w, NULL, image_of(choice)[choice->emitted]);
    tn_json_close(&w, ']');
    tn_json_close(&w, '}');
    tn_stream_event(choice->of->request, &w);
}

static void put(struct tn_choice *choice, int32_t symbol, const float *outputs)
{
    const struct drawing *const own = own_of(choice->of);

    (void)outputs;
    image_of(choice)[own->given + choice->drawn - 1] = (unsigned char)symbol;
    if (choice->of->streams && tn_choice_is_due(choice))
        emit(choice);
}

/* "b64_json": the image as a PNG file. */
static void put_png(struct tn_json_writer *w, const struct tn_choice *choice)
{
    struct tn_text png;

    if (tn_png_grid(&png, "image", image_of(choice), choice->of->model->size, 1, 1, NULL) !=
        TARN_OK)
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

    for (size_t i = 0; i < g->n; i++)
        tn_request_drew(g->request, g->choices[i].drawn);
    if (g->streams) {
        tn_stream_end(g->request);
        return;
    }
    if (refusal) {
        tn_reply_refusal(g->request, refusal);
        return;
    }
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "created", time(NULL));
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

static void close_own(struct tn_generation *g)
{
    free(own_of(g)->pixels);
}

static const struct tn_sink sink = {put, end, finish, close_own, sizeof(struct drawing)};

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

/* Of the image model's size, and whether it is. */
static bool read_image(struct tn_images *images, const struct tn_generation *g,
                       struct tn_refusal *refusal)
{
    const struct tn_image_wish *const wish = &own_of(g)->wish;
    const tarn_image_size size = g->model->size;
    struct tn_text text = {0};
    tarn_error err = {0};
    tarn_status status = TARN_EFORMAT;

    *images = (struct tn_images){0};
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
    return (images->height == size.height && images->width == size.width &&
            images->channels == size.channels) ||
           tn_refuse(refusal, 400, "image",
                     "image has %zu x %zu x %zu (height x width x channels); the model needs "
                     "%zu x %zu x %zu",
                     images->height, images->width, images->channels, size.height, size.width,
                     size.channels);
}

static bool take_given(struct tn_generation *g, struct tn_refusal *refusal)
{
    struct drawing *const own = own_of(g);
    const struct tn_image_wish *const wish = &own->wish;
    const tarn_image_size size = g->model->size;
    const size_t pixels = size.height * size.width;
    const size_t keep =
        wish->rows < SIZE_MAX ? tn_min(wish->rows, pixels) * size.width : wish->keep;
    struct tn_images images;

    if (keep >= pixels)
        return tn_refuse(refusal, 400, wish->rows < SIZE_MAX ? "rows" : "keep",
                         "%zu pixels are given; the image has %zu, and one at least must be "
                         "left",
                         keep, pixels);
    const bool read = read_image(&images, g, refusal);

    own->given = keep * size.channels;
    if (read && own->given > 0)
        memcpy(own->pixels, images.pixels, own->given);
    tn_images_free(&images);
    return read;
}

/* A model needs at least one symbol: the first byte of a new image is 0, as in tarn generate.
 */
static bool set_up(struct tn_generation *g, struct tn_refusal *refusal)
{
    struct drawing *const own = own_of(g);
    const tarn_image_size size = g->model->size;
    struct tn_prompt *const prompt = &g->prompts[0];
    char id[TN_STATE_ID];

    own->bytes = size.height * size.width * size.channels;
    own->pixels = calloc(g->n, own->bytes);
    prompt->symbols = malloc(own->bytes * sizeof *prompt->symbols);
    if (!own->pixels || !prompt->symbols)
        return tn_refuse(refusal, 503, NULL, "not enough memory for %zu images", g->n);
    if (own->wish.image && !take_given(g, refusal))
        return false;
    own->given = tn_max(own->given, 1);
    for (size_t i = 0; i < own->given; i++)
        prompt->symbols[i] = own->pixels[i];
    for (size_t i = 0; i < g->n; i++) {
        g->choices[i].emitted = own->wish.image ? own->given : 0;
        memcpy(own->pixels + i * own->bytes, own->pixels, own->given);
    }
    prompt->count = g->request->prompt_tokens = own->given;
    g->most = own->bytes - own->given;
    if (!g->has_seed) {
        tarn_error err = {0};

        if (tn_random_id(id, &err) != TARN_OK)
            return tn_refuse(refusal, 500, NULL, "%s", err.text);
        g->sampling.seed = strtoull(id + 16, NULL, 16);
    }
    return true;
}

static void draw(struct tn_request *request, struct tn_image_wish *wish,
                 struct tn_served *model, struct tn_refusal *refusal)
{
    struct tn_generation *const g = tn_generation_new(request, model, &sink, &wish->asked, 1);

    if (!g) {
        tn_refuse(refusal, 503, NULL, "not enough memory for a request");
        return;
    }
    own_of(g)->wish = *wish;
    if (!set_up(g, refusal) || !tn_scheduler_submit(model->scheduler, g, refusal))
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
