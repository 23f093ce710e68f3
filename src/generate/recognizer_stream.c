/* SPDX-License-Identifier: MIT */
/* recognizer_stream.c - sounds that arrive: what a frame needs has come before it, so that the
 * model steps from stack to stack of frames, (18)-(20), and a symbol is told when the next
 * begins.
 *
 * What is held does not grow: features hold back what frames are not complete, the model its
 * state, the decoder its open symbol. */
#include <stdlib.h>
#include <string.h>

#include "generate/recognizer.h"

enum { PIECE = 4096 }; /* samples that become features at once */

void tn_hearing_free(struct tn_hearing *h)
{
    tn_features_close(&h->features);
    tarn_stream_free(h->stream);
    tarn_engine_free(h->engine, NULL);
    free(h->outputs);
    free(h->frames);
    free(h->stack);
    *h = (struct tn_hearing){0};
}

static size_t stack_floats(const tarn_recognizer *r)
{
    return r->model->arch.config.stack * TN_MEL_BANDS;
}

static tarn_status check(const tarn_recognizer *r, tarn_error *err)
{
    const struct tn_arch *const arch = &r->model->arch;

    if (!arch->config.causal || !arch->has_step)
        return tn_fail(err, TARN_EINVAL,
                       "model: is not causal or has no recurrent form; streaming needs both");
    if (r->profile.normalise == TN_NORMALISE_SPEAKER)
        return tn_fail(
            err, TARN_EINVAL,
            "model: its features are normalised per speaker; streaming needs global or none");
    if (r->desc.beam > 0)
        return tn_fail(err, TARN_EINVAL, "beam is %zu; it must be 0 for streaming",
                       r->desc.beam);
    return TARN_OK;
}

/* Softmax attention has a state that grows: it ends with `longest`. */
static tarn_status make_engine(tarn_recognizer *r, tarn_error *err)
{
    struct tn_hearing *const h = &r->hearing;
    const size_t stack = r->model->arch.config.stack;
    tarn_engine_desc desc = {
        .capacity = 1, .host = tn_host_given(&r->host), .method = "recurrent"};
    tarn_status status = tarn_engine_create(&h->engine, r->model, &desc, NULL);

    if (status == TARN_OK)
        return status;
    desc.longest = (size_t)(r->desc.longest * TN_MEL_RATE / TN_MEL_HOP) / stack + 1;
    return tarn_engine_create(&h->engine, r->model, &desc, err);
}

static tarn_status prepare(tarn_recognizer *r, tarn_error *err)
{
    struct tn_hearing *const h = &r->hearing;
    tarn_status status;

    if (h->engine)
        return TARN_OK;
    if ((status = check(r, err)) != TARN_OK || (status = make_engine(r, err)) != TARN_OK)
        return status;
    status = tarn_stream_create(&h->stream, h->engine, err);
    h->outputs = malloc(tarn_model_outputs(r->model) * sizeof *h->outputs);
    h->stack = malloc(stack_floats(r) * sizeof *h->stack);
    if (status == TARN_OK && (!h->outputs || !h->stack))
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for streaming recognition");
    if (status != TARN_OK)
        tn_hearing_free(h);
    return status;
}

tarn_status tarn_recognizer_begin(tarn_recognizer *r, size_t rate, tarn_error *err)
{
    tarn_status status;

    if (!r)
        return tn_fail(err, TARN_EINVAL, "recognizer must not be NULL");
    struct tn_hearing *const h = &r->hearing;

    h->begun = false;
    if ((status = prepare(r, err)) != TARN_OK)
        return status;
    tn_features_close(&h->features);
    if ((status = tn_features_open(&h->features, rate, 1.0, err)) != TARN_OK)
        return status;
    memset(h->stream, 0, tarn_stream_size(h->engine));
    h->waiting = 0;
    h->greedy = (struct tn_ctc_greedy){0};
    h->begun = true;
    return TARN_OK;
}

/* ---- Frames ------------------------------------------------------------- */

/* A stack, the rest of which is zeros, through the model. */
static tarn_status step(tarn_recognizer *r, tarn_error *err)
{
    struct tn_hearing *const h = &r->hearing;
    tarn_status status;

    memset(h->stack + h->waiting * TN_MEL_BANDS, 0,
           (stack_floats(r) - h->waiting * TN_MEL_BANDS) * sizeof *h->stack);
    h->waiting = 0;
    if ((status = tn_recognizer_room(r, r->count + 2, err)) != TARN_OK ||
        (status = tarn_engine_frames(h->engine, &h->stream, h->outputs, h->stack, 1, err)) !=
            TARN_OK)
        return status;
    tn_recognizer_name(r, tn_ctc_greedy_push(&h->greedy, r->symbols + r->count, h->outputs, 1,
                                             r->model->arch.head.outputs));
    return TARN_OK;
}

static tarn_status hear(tarn_recognizer *r, size_t count, tarn_error *err)
{
    struct tn_hearing *const h = &r->hearing;
    const size_t stack = r->model->arch.config.stack;
    tarn_status status = TARN_OK;

    if (r->profile.normalise == TN_NORMALISE_GLOBAL)
        tn_feature_norm_apply(&r->profile.norm, h->frames, h->frames, count);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        memcpy(h->stack + h->waiting * TN_MEL_BANDS, h->frames + i * TN_MEL_BANDS,
               TN_MEL_BANDS * sizeof *h->stack);
        if (++h->waiting == stack)
            status = step(r, err);
    }
    return status;
}

static tarn_status frame_room(struct tn_hearing *h, size_t count, tarn_error *err)
{
    if (h->frames && count <= h->frame_room)
        return TARN_OK;
    float *const frames = realloc(h->frames, (count + 1) * TN_MEL_BANDS * sizeof *frames);

    if (!frames)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu frames", count);
    h->frames = frames;
    h->frame_room = count;
    return TARN_OK;
}

/* ---- Samples ------------------------------------------------------------ */

static tarn_status push_piece(tarn_recognizer *r, const float *samples, size_t n,
                              tarn_error *err)
{
    struct tn_hearing *const h = &r->hearing;
    const tarn_status status = frame_room(h, tn_features_most(&h->features, n), err);

    if (status != TARN_OK)
        return status;
    const size_t count = tn_features_push(&h->features, h->frames, samples, n);

    return tn_features_check(&h->features, err) == TARN_OK ? hear(r, count, err) : TARN_ENOMEM;
}

static tarn_status begun(const tarn_recognizer *r, tarn_error *err)
{
    return r->hearing.begun ? TARN_OK
                            : tn_fail(err, TARN_EINVAL, "recognizer: no stream was started");
}

/* A failure ends the sound: the model has not heard all of it. */
tarn_status tarn_recognizer_push(tarn_recognizer *r, const tarn_heard **symbols, size_t *count,
                                 const float *samples, size_t n, tarn_error *err)
{
    tarn_status status;

    if (!r || !symbols || !count || (n > 0 && !samples))
        return tn_fail(err, TARN_EINVAL,
                       "recognizer, symbols, count and samples must not be NULL");
    if ((status = begun(r, err)) != TARN_OK)
        return status;
    r->count = 0;
    for (size_t at = 0; at < n && status == TARN_OK; at += PIECE)
        status = push_piece(r, samples + at, tn_min(PIECE, n - at), err);
    r->hearing.begun = status == TARN_OK;
    *symbols = r->heard;
    *count = r->count;
    return status;
}

tarn_status tarn_recognizer_end(tarn_recognizer *r, const tarn_heard **symbols, size_t *count,
                                tarn_error *err)
{
    tarn_status status;

    if (!r || !symbols || !count)
        return tn_fail(err, TARN_EINVAL, "recognizer, symbols and count must not be NULL");
    if ((status = begun(r, err)) != TARN_OK)
        return status;
    struct tn_hearing *const h = &r->hearing;

    r->count = 0;
    h->begun = false;
    if ((status = frame_room(h, tn_features_most(&h->features, 0), err)) == TARN_OK &&
        (status = hear(r, tn_features_end(&h->features, h->frames), err)) == TARN_OK &&
        (status = tn_features_check(&h->features, err)) == TARN_OK && h->waiting > 0)
        status = step(r, err);
    if (status == TARN_OK && (status = tn_recognizer_room(r, r->count + 1, err)) == TARN_OK)
        tn_recognizer_name(r, tn_ctc_greedy_end(&h->greedy, r->symbols + r->count));
    *symbols = r->heard;
    *count = r->count;
    return status;
}
