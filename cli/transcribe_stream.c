/* SPDX-License-Identifier: MIT */
/* transcribe_stream.c - tarn transcribe --stream: symbols are printed as soon as they are
 * recognized. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transcribe_options.h"

enum { PIECE = 4096, PIECES_PER_SECOND = 50 };

struct stream {
    const struct transcribe_options *options;
    tarn_recognizer *recognizer;
    tarn_audio *audio;
    const char *path;
    size_t symbols, samples; /* so far */
};

static void tell(struct stream *s, const tarn_heard *heard, size_t count)
{
    for (size_t i = 0; i < count; i++, s->symbols++) {
        if (s->options->json)
            json_print_line(transcribe_symbol(&heard[i]));
        else
            printf("%s%s", s->symbols ? tarn_recognizer_separator(s->recognizer) : "",
                   heard[i].symbol);
    }
    if (count > 0)
        fflush(stdout);
}

static void tell_end(const struct stream *s)
{
    json_t *const object = json_object();

    if (!s->options->json) {
        printf("\n");
        json_decref(object);
        return;
    }
    json_put_bytes(object, "file", s->path, strlen(s->path));
    json_put_number(object, "seconds", (double)s->samples / (double)tarn_audio_rate(s->audio));
    json_put_count(object, "count", s->symbols);
    json_print_line(object);
}

/* Small pieces, so that symbols are printed without delay. */
static tarn_status listen(struct stream *s, tarn_error *err)
{
    const size_t rate = tarn_audio_rate(s->audio), share = rate / PIECES_PER_SECOND;
    const size_t piece = share < PIECE ? share : PIECE;
    float samples[PIECE];
    const tarn_heard *heard;
    size_t read = 1, count;
    tarn_status status = tarn_recognizer_begin(s->recognizer, rate, err);

    while (status == TARN_OK && read > 0) {
        if ((status = tarn_audio_read(s->audio, samples, &read, piece, err)) == TARN_OK &&
            (status = tarn_recognizer_push(s->recognizer, &heard, &count, samples, read,
                                           err)) == TARN_OK) {
            s->samples += read;
            tell(s, heard, count);
        }
    }
    if (status == TARN_OK &&
        (status = tarn_recognizer_end(s->recognizer, &heard, &count, err)) == TARN_OK)
        tell(s, heard, count);
    return status;
}

bool transcribe_stream(const struct transcribe_options *o, tarn_recognizer *recognizer,
                       const char *path)
{
    struct stream s = {.options = o, .recognizer = recognizer, .path = path};
    const bool is_input = strcmp(path, "-") == 0;
    tarn_error err;
    tarn_status status =
        tarn_audio_open(&s.audio, is_input ? NULL : path, STDIN_FILENO, o->rate, &err);

    if (status == TARN_OK) {
        status = listen(&s, &err);
        if (status == TARN_OK || s.symbols > 0)
            tell_end(&s);
    }
    tarn_audio_close(s.audio);
    if (status != TARN_OK)
        transcribe_failed(o, path, &err);
    return status == TARN_OK;
}
