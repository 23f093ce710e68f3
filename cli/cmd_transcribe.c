/* SPDX-License-Identifier: MIT */
/* cmd_transcribe.c - tarn transcribe: what was said in recordings. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hardware.h"
#include "model_open.h"
#include "transcribe_options.h"
#include "words.h"

#define AT(field) offsetof(struct transcribe_options, field)

const char transcribe_name[] = "tarn transcribe";

static const double usual_longest = 600.0; /* as below */

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0,
     "a model of speech, a checkpoint, or a folder of training"},
    {"AUDIO", NULL, ARGS_OPERANDS, NULL, AT(audio), 1, 0,
     "WAV, FLAC or NIST SPHERE, of any rate"},
    {"beam", "W", ARGS_COUNT, "0", AT(beam), 0, 100000,
     "keep the W likeliest beginnings from frame to frame; 0: the likeliest symbol of each "
     "frame"},
    {"stream", NULL, ARGS_FLAG, NULL, AT(stream), 0, 0,
     "tell symbols as they are heard, in constant memory; for causal models. AUDIO may be -, "
     "WAV on standard input"},
    {"rate", "HZ", ARGS_COUNT, "0", AT(rate), 0, 1000000,
     "standard input is raw samples, so many a second, of 16 bits, low byte first; 0: WAV"},
    {"longest", "SECONDS", ARGS_SECONDS, "600", AT(longest), 0, 0,
     "what lasts longer is refused; not with --stream"},
    {"strict", NULL, ARGS_FLAG, NULL, AT(strict), 0, 0,
     "stop at the first file that cannot be used"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0,
     "of a folder: the model of its best validation instead of the last"},
    {"threads", "N", ARGS_COUNT, "0", AT(threads), 0, 1024, "threads; 0: all"},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "one object per file: text, seconds, symbols with times and confidences; with --stream "
     "one per symbol"},
    {0},
};

static const struct args_command command = {
    .name = transcribe_name,
    .help = "Writes down what was said, a line for each recording; with several, behind its "
            "name and a tab. Files that cannot be used are told on standard error, the others "
            "go on, and the exit code is 1.",
    .options = rows,
};

/* ---- Answers ------------------------------------------------------------ */

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

    words_harmless(text, sizeof text, err->text);
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", transcribe_name, text);
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
    fprintf(stderr, "%s: %s: a model of task '%s'; expected one of speech\n", transcribe_name,
            o->model, config->task);
    return false;
}

static int transcribe(const struct transcribe_options *o, const tarn_model *model)
{
    const tarn_recognizer_desc desc = {
        .beam = o->beam, .longest = o->longest, .threads = o->threads, .cpu = o->cpu};
    tarn_recognizer *recognizer;
    tarn_error err;

    if (!is_of_speech(o, model))
        return EXIT_USAGE;
    if (tarn_recognizer_create(&recognizer, model, &desc, &err) != TARN_OK)
        return model_refused(&command, &err);
    const tarn_status status =
        o->stream ? tarn_recognizer_begin(recognizer, 16000, &err) : TARN_OK;
    const int code =
        status == TARN_OK ? transcribe_all(o, recognizer) : model_refused(&command, &err);

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

static int refuse(const char *why)
{
    fprintf(stderr, "%s: %s\n", transcribe_name, why);
    return EXIT_USAGE;
}

/* What would have no effect. */
static int check(const struct transcribe_options *o)
{
    if (o->rate > 0 && !o->stream)
        return refuse("--rate: is of raw samples; expected --stream");
    if (o->rate > 0 && !has_input(o))
        return refuse("--rate: is of standard input; expected - among AUDIO");
    if (!o->stream && has_input(o))
        return refuse("-: standard input; expected --stream with it");
    if (o->stream && o->longest != usual_longest)
        return refuse("--longest: a stream may last for ever; expected none with --stream");
    return ARGS_GO_ON;
}

int cmd_transcribe(int argc, char **argv)
{
    struct transcribe_options o = {0};
    int code = args_read(&command, &o, argc, argv);

    if (code != ARGS_GO_ON || (code = check(&o)) != ARGS_GO_ON)
        return code;
    if (!hardware_cpu(&o.cpu))
        return EXIT_USAGE;
    tarn_model *const model = model_open(transcribe_name, o.model, o.best);

    code = model ? transcribe(&o, model) : EXIT_FAILED;
    tarn_model_free(model);
    return code;
}
