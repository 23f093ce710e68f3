/* SPDX-License-Identifier: MIT */
/* cmd_transcribe.c - tarn transcribe: speech recognition on audio files, whole or as they
 * arrive. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "hardware.h"
#include "json_line.h"

enum { PIECE = 4096, PIECES_PER_SECOND = 50 };

static const double usual_longest = 600.0; /* the default below */

struct options {
    const char *model;
    tarn_host host;
    struct args_words audio;
    size_t beam, rate;
    double longest;
    bool best, json, stream, strict;
};

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

/* {"symbol": ..., "begin": seconds, "confidence": ...} */
static json_t *json_of_symbol(const tarn_heard *heard)
{
    json_t *const object = json_object();

    json_put_text(object, "symbol", heard->symbol);
    json_put_number(object, "begin", heard->begin);
    json_put_number(object, "confidence", heard->confidence);
    return object;
}

static json_t *json_of_file(const char *path)
{
    json_t *const object = json_object();

    json_put_bytes(object, "file", path, strlen(path));
    return object;
}

/* A file that could not be transcribed. */
static void report_failure(const struct options *o, const char *path)
{
    warn("%s", failure.text);
    if (!o->json)
        return;
    json_t *const object = json_of_file(path);

    json_put_text(object, "error", failure.text);
    json_print_line(object);
}

static void print_json(const char *path, const tarn_transcript *transcript)
{
    json_t *const object = json_of_file(path), *const symbols = json_array();

    for (size_t i = 0; i < transcript->count; i++)
        json_array_append_new(symbols, json_of_symbol(&transcript->symbols[i]));
    json_put_text(object, "text", transcript->text);
    json_put_number(object, "seconds", transcript->seconds);
    json_put_number(object, "log_probability", transcript->log_probability);
    json_object_set_new(object, "symbols", symbols);
    json_print_line(object);
}

/* ---- Streams ------------------------------------------------------------ */

struct stream {
    const struct options *options;
    tarn_recognizer *recognizer;
    tarn_audio *audio;
    size_t symbols, samples; /* so far */
};

/* Symbols are printed as soon as they are recognized. */
static void print_symbols(struct stream *s, const tarn_heard *heard, size_t count)
{
    for (size_t i = 0; i < count; i++, s->symbols++) {
        if (s->options->json)
            json_print_line(json_of_symbol(&heard[i]));
        else
            printf("%s%s", s->symbols ? tarn_recognizer_separator(s->recognizer) : "",
                   heard[i].symbol);
    }
    if (count > 0)
        fflush(stdout);
}

static void print_end(const struct stream *s, const char *path)
{
    if (!s->options->json) {
        printf("\n");
        return;
    }
    json_t *const object = json_of_file(path);

    json_put_number(object, "seconds", (double)s->samples / (double)tarn_audio_rate(s->audio));
    json_put_count(object, "count", s->symbols);
    json_print_line(object);
}

/* Small pieces, so that symbols are printed without delay. */
static tarn_status listen(struct stream *s)
{
    const size_t rate = tarn_audio_rate(s->audio);
    const size_t piece = smaller(rate / PIECES_PER_SECOND, PIECE);
    float samples[PIECE];
    const tarn_heard *heard;
    size_t read = 1, count;
    tarn_status status = tarn_recognizer_begin(s->recognizer, rate, &failure);

    while (status == TARN_OK && read > 0) {
        if ((status = tarn_audio_read(s->audio, samples, &read, piece, &failure)) == TARN_OK &&
            (status = tarn_recognizer_push(s->recognizer, &heard, &count, samples, read,
                                           &failure)) == TARN_OK) {
            s->samples += read;
            print_symbols(s, heard, count);
        }
    }
    if (status == TARN_OK &&
        (status = tarn_recognizer_end(s->recognizer, &heard, &count, &failure)) == TARN_OK)
        print_symbols(s, heard, count);
    return status;
}

/* A file, or standard input if it is "-", as it arrives. */
static tarn_status transcribe_stream(const struct options *o, tarn_recognizer *recognizer,
                                     const char *path)
{
    struct stream s = {.options = o, .recognizer = recognizer};
    const bool is_input = strcmp(path, "-") == 0;
    tarn_status status =
        tarn_audio_open(&s.audio, is_input ? NULL : path, STDIN_FILENO, o->rate, &failure);

    if (status == TARN_OK) {
        status = listen(&s);
        if (status == TARN_OK || s.symbols > 0)
            print_end(&s, path);
    }
    tarn_audio_close(s.audio);
    return status;
}

/* ---- Files -------------------------------------------------------------- */

static tarn_status transcribe_file(const struct options *o, tarn_recognizer *recognizer,
                                   const char *path)
{
    tarn_transcript transcript;
    const tarn_status status = tarn_recognizer_file(recognizer, &transcript, path, &failure);

    if (status != TARN_OK)
        return status;
    if (o->json)
        print_json(path, &transcript);
    else if (o->audio.count > 1)
        printf("%s\t%s\n", path, transcript.text);
    else
        printf("%s\n", transcript.text);
    return TARN_OK;
}

/* Returns the number of files that failed. */
static size_t transcribe_all(const struct options *o, tarn_recognizer *recognizer)
{
    size_t failed = 0;

    for (size_t i = 0; i < o->audio.count && !(failed && o->strict); i++) {
        const char *const path = o->audio.words[i];

        if ((o->stream ? transcribe_stream : transcribe_file)(o, recognizer, path) != TARN_OK) {
            report_failure(o, path);
            failed++;
        }
    }
    return failed;
}

/* Refuses options that would have no effect. */
static void check(const struct options *o)
{
    bool has_input = false;

    for (size_t i = 0; i < o->audio.count; i++)
        has_input |= strcmp(o->audio.words[i], "-") == 0;
    if (o->rate > 0 && !o->stream)
        refuse("--rate is for raw samples on standard input; it requires --stream");
    if (o->rate > 0 && !has_input)
        refuse("--rate is for raw samples on standard input; AUDIO must be -");
    if (!o->stream && has_input)
        refuse("AUDIO is -, standard input, which requires --stream");
    if (o->stream && o->longest != usual_longest)
        refuse("--longest cannot be used with --stream, which has no time limit");
}

static void run(void *values)
{
    const struct options *const o = values;
    const tarn_recognizer_desc desc = {.beam = o->beam, .longest = o->longest, .host = o->host};
    tarn_recognizer *recognizer;

    check(o);
    tarn_model *const model = model_open(o->model, o->best);
    const tarn_config *const config = tarn_model_config(model);

    if (config->frames == 0 || strcmp(config->head, "ctc") != 0)
        refuse("%s is a model of task '%s'; it must be a speech model", o->model, config->task);
    must(tarn_recognizer_create(&recognizer, model, &desc, &failure));
    if (o->stream)
        must(tarn_recognizer_begin(recognizer, 16000, &failure));
    const size_t failed = transcribe_all(o, recognizer);

    tarn_recognizer_free(recognizer);
    tarn_model_free(model);
    if (failed > 0)
        leave(EXIT_FAILED);
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
    .values = sizeof(struct options),
    .run = run,
};
