/* SPDX-License-Identifier: MIT */
/* cmd_transcribe.c - tarn transcribe: speech recognition on audio files. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hardware.h"
#include "model_open.h"
#include "transcribe_options.h"

#define AT(field) offsetof(struct transcribe_options, field)

static const double usual_longest = 600.0; /* the default below */

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, "speech " MODEL_HELP},
    {"AUDIO", NULL, ARGS_OPERANDS, NULL, AT(audio), 1, 0,
     "audio file: WAV, FLAC or NIST SPHERE, at any sample rate"},
    {"beam", "W", ARGS_COUNT, "0", AT(beam), 0, 100000,
     "beam width of the CTC decoder; 0: greedy decoding"},
    {"stream", NULL, ARGS_FLAG, NULL, AT(stream), 0, 0,
     "print symbols as they are recognized, in constant memory; the model must be causal. "
     "AUDIO can be -, a WAV file on standard input"},
    {"rate", "HZ", ARGS_COUNT, "0", AT(rate), 0, 1000000,
     "sample rate of raw 16-bit little-endian samples on standard input; 0: WAV"},
    {"longest", "SECONDS", ARGS_SECONDS, "600", AT(longest), 0, 0,
     "maximum duration of a file; not with --stream"},
    {"strict", NULL, ARGS_FLAG, NULL, AT(strict), 0, 0,
     "stop at the first file that cannot be transcribed"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", AT(host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object per file: text, seconds, symbols with times and confidences; "
     "with --stream one per symbol"},
    {0},
};

/* ---- Output ------------------------------------------------------------- */

json_t *transcribe_symbol(const tarn_heard *heard)
{
    json_t *const object = json_object();

    json_put_text(object, "symbol", heard->symbol);
    json_put_number(object, "begin", heard->begin);
    json_put_number(object, "confidence", heard->confidence);
    return object;
}

void transcribe_failed(const struct transcribe_options *o, const char *path,
                       const tarn_error *err)
{
    char text[sizeof err->text];

    tarn_printable(text, sizeof text, err->text);
    fflush(stdout);
    command_fail(&cmd_transcribe, "%s", text);
    if (!o->json)
        return;
    json_t *const object = json_object();

    json_put_bytes(object, "file", path, strlen(path));
    json_put_text(object, "error", err->text);
    json_print_line(object);
}

static void print_json(const char *path, const tarn_transcript *transcript)
{
    json_t *const object = json_object(), *const symbols = json_array();

    for (size_t i = 0; i < transcript->count; i++)
        json_array_append_new(symbols, transcribe_symbol(&transcript->symbols[i]));
    json_put_bytes(object, "file", path, strlen(path));
    json_put_text(object, "text", transcript->text);
    json_put_number(object, "seconds", transcript->seconds);
    json_put_number(object, "log_probability", transcript->log_probability);
    json_object_set_new(object, "symbols", symbols);
    json_print_line(object);
}

/* ---- Files -------------------------------------------------------------- */

static bool transcribe_file(const struct transcribe_options *o, tarn_recognizer *recognizer,
                            const char *path)
{
    tarn_transcript transcript;
    tarn_error err;

    if (tarn_recognizer_file(recognizer, &transcript, path, &err) != TARN_OK) {
        transcribe_failed(o, path, &err);
        return false;
    }
    if (o->json)
        print_json(path, &transcript);
    else if (o->audio.count > 1)
        printf("%s\t%s\n", path, transcript.text);
    else
        printf("%s\n", transcript.text);
    return true;
}

static int transcribe_all(const struct transcribe_options *o, tarn_recognizer *recognizer)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < o->audio.count && (code == EXIT_DONE || !o->strict); i++) {
        const char *const path = o->audio.words[i];
        const bool done = o->stream ? transcribe_stream(o, recognizer, path)
                                    : transcribe_file(o, recognizer, path);

        if (!done)
            code = EXIT_FAILED;
    }
    return code;
}

static bool is_of_speech(const struct transcribe_options *o, const tarn_model *model)
{
    const tarn_config *const config = tarn_model_config(model);

    if (config->frames > 0 && strcmp(config->head, "ctc") == 0)
        return true;
    command_refuse(&cmd_transcribe, "%s is a model of task '%s'; it must be a speech model",
                   o->model, config->task);
    return false;
}

static int transcribe(const struct transcribe_options *o, const tarn_model *model)
{
    const tarn_recognizer_desc desc = {.beam = o->beam, .longest = o->longest, .host = o->host};
    tarn_recognizer *recognizer;
    tarn_error err;

    if (!is_of_speech(o, model))
        return EXIT_USAGE;
    if (tarn_recognizer_create(&recognizer, model, &desc, &err) != TARN_OK)
        return command_error(&cmd_transcribe, &err);
    const tarn_status status =
        o->stream ? tarn_recognizer_begin(recognizer, 16000, &err) : TARN_OK;
    const int code = status == TARN_OK ? transcribe_all(o, recognizer)
                                       : command_error(&cmd_transcribe, &err);

    tarn_recognizer_free(recognizer);
    return code;
}

static bool has_input(const struct transcribe_options *o)
{
    for (size_t i = 0; i < o->audio.count; i++)
        if (strcmp(o->audio.words[i], "-") == 0)
            return true;
    return false;
}

/* Rejects options that would have no effect. */
static int check(const struct transcribe_options *o)
{
    if (o->rate > 0 && !o->stream)
        return command_refuse(
            &cmd_transcribe,
            "--rate is for raw samples on standard input; it requires --stream");
    if (o->rate > 0 && !has_input(o))
        return command_refuse(&cmd_transcribe,
                              "--rate is for raw samples on standard input; AUDIO must be -");
    if (!o->stream && has_input(o))
        return command_refuse(&cmd_transcribe,
                              "AUDIO is -, standard input, which requires --stream");
    if (o->stream && o->longest != usual_longest)
        return command_refuse(
            &cmd_transcribe, "--longest cannot be used with --stream, which has no time limit");
    return ARGS_GO_ON;
}

static int run(void *values)
{
    const struct transcribe_options *const o = values;
    int code = check(o);

    if (code != ARGS_GO_ON)
        return code;
    tarn_model *const model = model_open(&cmd_transcribe, o->model, o->best);

    code = model ? transcribe(o, model) : EXIT_FAILED;
    tarn_model_free(model);
    return code;
}

const struct command cmd_transcribe = {
    .name = "tarn transcribe",
    .summary = "transcribe speech from audio files or a live stream",
    .help = "Transcribe speech with a trained model, one line per audio file; with several "
            "files, each line begins with the file name and a tab. A file that cannot be "
            "transcribed is reported on standard error and skipped; the exit code is then 1.",
    .options = rows,
    .examples = "tarn transcribe runs/speech recording.wav\n"
                "tarn transcribe runs/speech --beam 16 *.flac\n"
                "arecord -f S16_LE -r 16000 | tarn transcribe runs/speech - --stream\n",
    .values = sizeof(struct transcribe_options),
    .run = run,
};
