/* SPDX-License-Identifier: MIT */
/* audio.h - the samples of an audio file, mixed to one channel, piece by piece.
 *
 * By libsndfile: WAV, FLAC, NIST SPHERE and whatever else it knows by what is in the file,
 * never by its name alone. A sample of full scale is 1, whatever the file's width; floats are
 * taken as they are. Channels are mixed by their mean.
 *
 * Only a buffer of fixed size is in memory, however long the file. The length that a header
 * claims is never allocated, and may be wrong: programs that write to pipes cannot know it. */
#ifndef TN_AUDIO_H
#define TN_AUDIO_H

#include "base/base.h"

enum { TN_AUDIO_RATE_LEAST = 1000, TN_AUDIO_RATE_MOST = 1000000 };

struct tn_audio {
    void *file; /* libsndfile's; NULL: closed */
    char *path;
    float *mixing; /* samples of all channels */
    size_t rate, channels;
    uint64_t claimed; /* samples that the header tells of */
    uint64_t done;    /* samples read */
};

/* What is no regular file is refused, and an empty one. On failure *audio is closed. */
tarn_status tn_audio_open(struct tn_audio *audio, const char *path, tarn_error *err);

/* What arrives at a descriptor, which stays the caller's: a pipe of WAV, or with a raw rate
 * samples of 16 bits, low byte first, of one channel. `name` stands for it in messages. */
tarn_status tn_audio_open_stream(struct tn_audio *audio, int file, size_t raw_rate,
                                 const char *name, tarn_error *err);

/* Accepts one that is closed. */
void tn_audio_close(struct tn_audio *audio);

/* The next samples: *count of them, at most `most`, and 0 only at the end. Samples that are not
 * finite, or of a size that no recording has (2^32), are refused with their place; so are files
 * whose coded data is damaged, and FLAC that ends before its header says. */
tarn_status tn_audio_read(struct tn_audio *audio, float *samples, size_t *count, size_t most,
                          tarn_error *err);

#endif
