/* SPDX-License-Identifier: MIT */
/* audio.h - the samples of an audio file, mixed to one channel, piece by piece.
 *
 * By libsndfile, but for streams: WAV, FLAC, NIST SPHERE and whatever else it knows by what is
 * in the file, never by its name alone. A sample of full scale is 1, whatever the file's width;
 * floats are taken as they are. Channels are mixed by their mean.
 *
 * What is not a regular file, or empty, is refused; so are samples that are not finite or
 * larger than any recording has (2^32), damaged data, and FLAC that ends before its header
 * says.
 *
 * Only a buffer of fixed size is in memory, however long the file. The length that a header
 * claims is never allocated, and may be wrong: programs that write to pipes cannot know it. */
#ifndef TN_AUDIO_H
#define TN_AUDIO_H

#include "base/base.h"
#include "file/wav_stream.h"
#include "tarn/speech.h"

enum { TN_AUDIO_RATE_LEAST = 1000, TN_AUDIO_RATE_MOST = 1000000 };

/* Whether there is memory for what libsndfile allocates. Without, it crashes or reports a file
 * as damaged, and keeps no reason that a thread could trust. So there must be memory before it
 * is called, and what looks damaged is read again: a file that is damaged is so twice. */
bool tn_audio_has_memory(void);

struct tarn_audio {
    void *file;     /* libsndfile's, which reads it through us; NULL: a stream */
    int descriptor; /* of either */
    struct tn_wav_stream stream;
    int error; /* why reading failed, an errno; 0: it did not */
    char *path;
    float *mixing; /* samples of all channels */
    size_t rate, channels;
    uint64_t claimed; /* samples according to the header */
    uint64_t done;    /* samples read */
};

#endif
