/* SPDX-License-Identifier: MIT */
/* speech.h - what was said, by a model of the task "speech". A model file is all that it takes.
 *
 *     tarn_model *model;
 *     tarn_recognizer *recognizer;
 *     tarn_transcript transcript;
 *     tarn_model_load(&model, "model.safetensors", NULL, &err);
 *     tarn_recognizer_create(&recognizer, model, &(tarn_recognizer_desc){0}, &err);
 *     tarn_recognizer_file(recognizer, &transcript, "hello.wav", &err);
 *     puts(transcript.text);
 *
 * A causal model also hears sounds that arrive, in constant memory. */
#ifndef TARN_SPEECH_H
#define TARN_SPEECH_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* One thread at a time. The model is the caller's and must live longer. */
typedef struct tarn_recognizer tarn_recognizer;

/* Zero is a valid default for every field. */
typedef struct tarn_recognizer_desc {
    size_t beam; /* beginnings of labels that are kept from frame to frame; 0: the most likely
                       symbol of each frame */
    double longest; /* seconds of a recording, at most; 0: 600 */
    size_t threads; /* 0: all */
    const char *cpu;
} tarn_recognizer_desc;

/* A symbol that was heard. Names live as long as the recognizer. */
typedef struct tarn_heard {
    const char *symbol;
    double begin;      /* seconds from the start of the sound */
    double confidence; /* its greatest probability in any frame that is its own, 0 to 1 */
} tarn_heard;

/* Good until the recognizer is next used. */
typedef struct tarn_transcript {
    const tarn_heard *symbols;
    size_t count;
    const char *text; /* symbols behind each other, with blanks between phones and words */
    double seconds;   /* of the sound */
    double log_probability; /* of the path, or with a beam of the labels; in nats */
} tarn_transcript;

/* ---- Recordings --------------------------------------------------------- */

TARN_API tarn_status tarn_recognizer_create(tarn_recognizer **recognizer,
                                            const tarn_model *model,
                                            const tarn_recognizer_desc *desc, tarn_error *err);
TARN_API void tarn_recognizer_free(tarn_recognizer *recognizer); /* accepts NULL */

/* A whole file: WAV, FLAC, NIST SPHERE, of any rate. After a failure the next may come. */
TARN_API tarn_status tarn_recognizer_file(tarn_recognizer *recognizer,
                                          tarn_transcript *transcript, const char *path,
                                          tarn_error *err);

/* What stands between symbols in a text: " ", or "" between characters. */
TARN_API const char *tarn_recognizer_separator(const tarn_recognizer *recognizer);

/* ---- Sounds that arrive ------------------------------------------------- */

/* Begins a sound of so many samples a second, whatever came before. Refuses models that are not
 * causal, or whose features are normalised by a whole recording, and a beam. */
TARN_API tarn_status tarn_recognizer_begin(tarn_recognizer *recognizer, size_t rate,
                                           tarn_error *err);

/* More samples, full scale being 1: *symbols, *count of them, have ended since, good until the
 * recognizer is next used. What pieces they come in makes no difference. */
TARN_API tarn_status tarn_recognizer_push(tarn_recognizer *recognizer,
                                          const tarn_heard **symbols, size_t *count,
                                          const float *samples, size_t n, tarn_error *err);

/* The rest. */
TARN_API tarn_status tarn_recognizer_end(tarn_recognizer *recognizer,
                                         const tarn_heard **symbols, size_t *count,
                                         tarn_error *err);

/* ---- Audio -------------------------------------------------------------- */

/* Samples of a file or a pipe, mixed to one channel. */
typedef struct tarn_audio tarn_audio;

/* A file by its path; or, where the path is NULL, what arrives at a descriptor: WAV, or with a
 * rate raw samples of 16 bits, low byte first, of one channel. */
TARN_API tarn_status tarn_audio_open(tarn_audio **audio, const char *path, int descriptor,
                                     size_t raw_rate, tarn_error *err);
TARN_API void tarn_audio_close(tarn_audio *audio); /* accepts NULL */
TARN_API size_t tarn_audio_rate(const tarn_audio *audio);

/* The next samples: *count of them, at most `most`, and 0 only at the end. */
TARN_API tarn_status tarn_audio_read(tarn_audio *audio, float *samples, size_t *count,
                                     size_t most, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
