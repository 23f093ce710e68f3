/* SPDX-License-Identifier: MIT */
/* recognizer.c - recordings as a whole: features, the model, decoding. */
#define _POSIX_C_SOURCE 200809L
#include "generate/recognizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "file/file_bytes.h"

enum { ROUNDED = 64 }; /* frames: a run serves recordings of up to so many fewer */

static const double usual_longest = 600.0;

/* ---- Life --------------------------------------------------------------- */

static tarn_status check_model(const tarn_recognizer *r, tarn_error *err)
{
    const tarn_config *const config = &r->model->arch.config;

    if (config->frames != TN_MEL_BANDS || strcmp(config->head, "ctc") != 0)
        return tn_fail(err, TARN_EINVAL,
                       "model: reads %zu floats per frame and has head '%s'; a speech model "
                       "has %d and ctc",
                       config->frames, config->head, TN_MEL_BANDS);
    if (!r->model->note)
        return tn_fail(
            err, TARN_EFORMAT,
            "model: has no speech metadata; it must be one that was trained on speech");
    return TARN_OK;
}

static tarn_status read_profile(tarn_recognizer *r, tarn_error *err)
{
    const size_t symbols = r->model->arch.config.symbols;
    const tarn_status status =
        tn_speech_profile_read(&r->profile, r->model->note, "model", err);

    if (status == TARN_OK && r->profile.symbols.count != symbols)
        return tn_fail(err, TARN_EFORMAT,
                       "model: its metadata names %zu symbols, but it has %zu",
                       r->profile.symbols.count, symbols);
    return status;
}

static tarn_status check_desc(const tarn_recognizer_desc *desc, tarn_error *err)
{
    if (!(desc->longest > 0.0 && desc->longest <= 1e6))
        return tn_fail(err, TARN_EINVAL,
                       "longest is %g; it must be above 0 and at most 1000000 seconds",
                       desc->longest);
    if (desc->beam > 100000)
        return tn_fail(err, TARN_EINVAL, "beam is %zu; it must be at most 100000", desc->beam);
    return TARN_OK;
}

tarn_status tarn_recognizer_create(tarn_recognizer **recognizer, const tarn_model *model,
                                   const tarn_recognizer_desc *desc, tarn_error *err)
{
    tarn_status status;

    if (!recognizer || !model || !desc)
        return tn_fail(err, TARN_EINVAL, "recognizer, model and desc must not be NULL");
    *recognizer = NULL;
    tarn_recognizer *const r = calloc(1, sizeof *r);

    if (!r)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a recognizer");
    r->model = model;
    r->desc = *desc;
    if (desc->longest == 0.0)
        r->desc.longest = usual_longest;
    if ((status = tn_host_init(&r->host, &desc->host, err)) != TARN_OK ||
        (status = check_desc(&r->desc, err)) != TARN_OK ||
        (status = check_model(r, err)) != TARN_OK || (status = read_profile(r, err)) != TARN_OK)
        tarn_recognizer_free(r);
    else
        *recognizer = r;
    return status;
}

void tarn_recognizer_free(tarn_recognizer *r)
{
    if (!r)
        return;
    tn_hearing_free(&r->hearing);
    tarn_run_free(r->run);
    tn_speech_profile_free(&r->profile);
    free(r->symbols);
    free(r->heard);
    free(r->text);
    free(r);
}

const char *tarn_recognizer_separator(const tarn_recognizer *r)
{
    return r->profile.kind == TN_CHARACTERS ? "" : " ";
}

/* ---- Symbols ------------------------------------------------------------ */

tarn_status tn_recognizer_room(tarn_recognizer *r, size_t count, tarn_error *err)
{
    if (count <= r->room)
        return TARN_OK;
    const size_t room = tn_max(count, 2 * r->room);
    struct tn_ctc_symbol *const symbols = realloc(r->symbols, room * sizeof *symbols);

    if (symbols)
        r->symbols = symbols;
    tarn_heard *const heard = realloc(r->heard, room * sizeof *heard);

    if (heard)
        r->heard = heard;
    if (!symbols || !heard)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu symbols", room);
    r->room = room;
    return TARN_OK;
}

void tn_recognizer_name(tarn_recognizer *r, size_t n)
{
    const double position =
        (double)r->model->arch.config.stack * TN_MEL_HOP / (double)TN_MEL_RATE;

    for (; n > 0; n--, r->count++) {
        const struct tn_ctc_symbol *const found = &r->symbols[r->count];

        r->heard[r->count] = (tarn_heard){r->profile.symbols.name[found->symbol],
                                          (double)found->frame * position, found->confidence};
    }
}

static tarn_status write_text(tarn_recognizer *r, tarn_error *err)
{
    const char *const separator = tarn_recognizer_separator(r);
    size_t size = 1;

    for (size_t i = 0; i < r->count; i++)
        size += strlen(r->heard[i].symbol) + strlen(separator);
    if (size > r->text_room) {
        char *const text = realloc(r->text, 2 * size);

        if (!text)
            return tn_fail(err, TARN_ENOMEM, "not enough memory for a text of %zu bytes", size);
        r->text = text;
        r->text_room = 2 * size;
    }
    char *at = r->text;

    for (size_t i = 0; i < r->count; i++) {
        at = stpcpy(at, i > 0 ? separator : "");
        at = stpcpy(at, r->heard[i].symbol);
    }
    *at = '\0';
    return TARN_OK;
}

/* ---- Recordings --------------------------------------------------------- */

/* For at least so many frames and, where they are rounded up, not for more than are learned. */
static tarn_status make_run(tarn_recognizer *r, size_t frames, tarn_error *err)
{
    const size_t learned = r->model->arch.config.positions * r->model->arch.config.stack;
    const size_t rounded = tn_round_up(frames, ROUNDED);
    const size_t T = learned > 0 && rounded > learned ? tn_max(frames, learned) : rounded;
    const struct tn_run_desc desc = {.B = 1, .N = T};

    if (r->run && r->run->T == T)
        return TARN_OK;
    tarn_run_free(r->run);
    return tn_run_create(&r->run, r->model, &desc, &r->host, err);
}

/* T positions of outputs become symbols. */
static tarn_status decode(tarn_recognizer *r, double *log_probability, size_t T,
                          tarn_error *err)
{
    const struct tn_ctc_frames frames = {r->host.kernels, T, r->model->arch.head.outputs};
    const size_t bytes = tn_ctc_decode_scratch(&frames, r->desc.beam);
    const tarn_status status = tn_recognizer_room(r, T + 1, err);
    size_t count;

    if (status != TARN_OK)
        return status;
    void *const scratch = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;

    r->count = 0;
    if (!scratch)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a beam of %zu", r->desc.beam);
    *log_probability =
        tn_ctc_decode(&frames, r->desc.beam, r->symbols, &count, r->run->outputs, T, scratch);
    free(scratch);
    tn_recognizer_name(r, count);
    return TARN_OK;
}

static tarn_status recognize(tarn_recognizer *r, struct tn_frames *frames, const char *path,
                             double *log_probability, tarn_error *err)
{
    tarn_status status;

    if (frames->count == 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has %llu samples at %zu Hz; expected at least 25 ms of audio",
                       tn_path_shown(path), (unsigned long long)frames->samples, frames->rate);
    if ((status = make_run(r, frames->count, err)) != TARN_OK)
        return status;
    tn_speech_profile_apply(&r->profile, frames->data, frames->count);
    tn_run_sizes(r->run, frames->count, NULL);
    tn_run_forward_frames(r->run, frames->data);
    const size_t T = tn_blocks(frames->count, r->model->arch.config.stack);

    if (!tn_all_finite(r->run->outputs, T * r->model->arch.head.outputs))
        return tn_fail(err, TARN_ENUMBER,
                       "the outputs of the model are not finite: its weights are too large");
    return decode(r, log_probability, T, err);
}

tarn_status tarn_recognizer_file(tarn_recognizer *r, tarn_transcript *transcript,
                                 const char *path, tarn_error *err)
{
    struct tn_frames frames;
    double log_probability = 0.0;
    tarn_status status;

    if (!r || !transcript || !path)
        return tn_fail(err, TARN_EINVAL, "recognizer, transcript and path must not be NULL");
    const size_t most = (size_t)(r->desc.longest * TN_MEL_RATE / TN_MEL_HOP) + 1;

    *transcript = (tarn_transcript){0};
    if ((status = tn_features_read(&frames, path, 1.0, most, err)) != TARN_OK)
        return status;
    if ((status = recognize(r, &frames, path, &log_probability, err)) == TARN_OK &&
        (status = write_text(r, err)) == TARN_OK)
        *transcript = (tarn_transcript){
            .symbols = r->heard,
            .count = r->count,
            .text = r->text,
            .seconds = (double)frames.samples / (double)frames.rate,
            .log_probability = log_probability,
        };
    tn_frames_free(&frames);
    return status;
}
