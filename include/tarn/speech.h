/* SPDX-License-Identifier: MIT */
/* speech.h - speech recognition with a model of task "speech". The model file is all it needs.
 *
 *     tarn_model *model;
 *     tarn_recognizer *recognizer;
 *     tarn_transcript transcript;
 *     tarn_model_load(&model, "model.safetensors", NULL, &err);
 *     tarn_recognizer_create(&recognizer, model, &(tarn_recognizer_desc){0}, &err);
 *     tarn_recognizer_file(recognizer, &transcript, "hello.wav", &err);
 *     puts(transcript.text);
 *
 * Causal models can also recognise speech as it arrives, in constant memory. */
#ifndef TARN_SPEECH_H
#define TARN_SPEECH_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* One thread at a time. The model belongs to the caller and must outlive the recognizer. */
typedef struct tarn_recognizer tarn_recognizer;

/* Zero is a valid default for every field. */
typedef struct tarn_recognizer_desc {
    size_t beam;    /* beam width; 0: greedy decoding, the most probable symbol of each frame */
    double longest; /* maximum length of a recording in seconds; 0: 600 */
    tarn_host host; /* its allocator is for the model's activations; recordings and texts use
                       malloc() */
} tarn_recognizer_desc;

/* A recognised symbol. */
typedef struct tarn_heard {
    const char *symbol; /* its name; valid as long as the recognizer */
    double begin;       /* seconds from the start of the audio */
    double confidence;  /* highest probability of the symbol in its frames, 0 to 1 */
} tarn_heard;

/* Pointers are valid until the next use of the recognizer. */
typedef struct tarn_transcript {
    const tarn_heard *symbols;
    size_t count;
    const char *text;       /* all symbols, joined with tarn_recognizer_separator() */
    double seconds;         /* length of the audio */
    double log_probability; /* in nats: of the best path, or with a beam of the labels */
} tarn_transcript;

/* ---- Recordings --------------------------------------------------------- */

TARN_API tarn_status tarn_recognizer_create(tarn_recognizer **recognizer,
                                            const tarn_model *model,
                                            const tarn_recognizer_desc *desc, tarn_error *err);
TARN_API void tarn_recognizer_free(tarn_recognizer *recognizer); /* accepts NULL */

/* Recognises a whole file: WAV, FLAC or NIST SPHERE, with any sample rate. After a failure the
 * recognizer can be used for the next file. */
TARN_API tarn_status tarn_recognizer_file(tarn_recognizer *recognizer,
                                          tarn_transcript *transcript, const char *path,
                                          tarn_error *err);

/* What separates symbols in tarn_transcript.text: " ", or "" for models of characters. */
TARN_API const char *tarn_recognizer_separator(const tarn_recognizer *recognizer);

/* ---- Streaming ---------------------------------------------------------- */

/* Starts a stream of audio with `rate` samples per second, and ends an earlier one. Fails for
 * models that are not causal or whose features are normalised per speaker, and with a beam. */
TARN_API tarn_status tarn_recognizer_begin(tarn_recognizer *recognizer, size_t rate,
                                           tarn_error *err);

/* Feeds n samples between -1 and 1. *symbols become the *count symbols that were completed;
 * they are valid until the next use of the recognizer. The result does not depend on how the
 * samples are divided into calls. */
TARN_API tarn_status tarn_recognizer_push(tarn_recognizer *recognizer,
                                          const tarn_heard **symbols, size_t *count,
                                          const float *samples, size_t n, tarn_error *err);

/* Ends the stream; *symbols become the *count remaining symbols. */
TARN_API tarn_status tarn_recognizer_end(tarn_recognizer *recognizer,
                                         const tarn_heard **symbols, size_t *count,
                                         tarn_error *err);

/* ---- Audio -------------------------------------------------------------- */

/* Samples from a file or a pipe, mixed down to one channel. One thread at a time. */
typedef struct tarn_audio tarn_audio;

/* Opens the file `path`; or, if path is NULL, a file descriptor that delivers WAV, or with a
 * `raw_rate` above 0 raw samples of one channel, 16-bit little-endian, at that rate. */
TARN_API tarn_status tarn_audio_open(tarn_audio **audio, const char *path, int descriptor,
                                     size_t raw_rate, tarn_error *err);
TARN_API void tarn_audio_close(tarn_audio *audio); /* accepts NULL */
TARN_API size_t tarn_audio_rate(const tarn_audio *audio);

/* Reads the next samples, at most `most`; *count becomes their number, 0 only at the end. */
TARN_API tarn_status tarn_audio_read(tarn_audio *audio, float *samples, size_t *count,
                                     size_t most, tarn_error *err);

/* ---- Features ----------------------------------------------------------- */

enum { TARN_FEATURES = 40 }; /* floats of a frame */

/* Number of frames of n samples at `rate` samples per second: one every 10 ms, of 25 ms each.
 */
TARN_API size_t tarn_features_count(size_t n, size_t rate);

/* Log-mel features of a sound, n samples between -1 and 1: writes tarn_features_count() frames
 * of TARN_FEATURES floats, before normalisation. */
TARN_API tarn_status tarn_features(float *frames, const float *samples, size_t n, size_t rate,
                                   tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
