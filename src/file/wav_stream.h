/* SPDX-License-Identifier: MIT */
/* wav_stream.h - samples that arrive through a descriptor, as WAV or raw.
 *
 *     "RIFF" size "WAVE"
 *     "fmt " size, format, channels, rate, ..., bits per sample
 *     "data" size, samples, those of all channels in turn
 *
 * Little-endian; other chunks are passed over. Sizes of the whole and of the data are what a
 * program that writes to a pipe could know when it began: 0 and 2^32 - 1 stand for any.
 *
 * libsndfile, which reads files, reads before the beginning of a buffer where a hostile stream
 * that cannot be rewound makes it look back. */
#ifndef TN_WAV_STREAM_H
#define TN_WAV_STREAM_H

#include "base/base.h"

struct tn_wav_stream {
    int descriptor;
    const char *name; /* for messages */
    bool is_float;
    size_t width; /* bytes of a sample */
    size_t channels, rate;
    uint64_t left; /* bytes of the data that are still to come, as far as that is known */
};

/* `raw_rate`: one channel of 16 bits, without a header; 0: WAV. The name must stay. */
tarn_status tn_wav_stream_open(struct tn_wav_stream *stream, int descriptor, size_t raw_rate,
                               const char *name, tarn_error *err);

/* Samples of all channels, `frames` of each unless the end comes before, full scale 1; *got of
 * each. */
tarn_status tn_wav_stream_read(struct tn_wav_stream *stream, float *samples, size_t *got,
                               size_t frames, tarn_error *err);

#endif
