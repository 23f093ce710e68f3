/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/wav_stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "file/file_bytes.h"

enum {
    CHUNK = 8,         /* bytes of a chunk's name and size */
    FORMAT_LEAST = 16, /* bytes of a format chunk */
    FORMAT_MOST = 40,
    PIECE = 4096,
};

enum { PCM = 1, FLOATS = 3, EXTENSIBLE = 0xfffe };

/* ---- Bytes -------------------------------------------------------------- */

/* So many bytes, unless the end comes before. */
static tarn_status take(const struct tn_wav_stream *s, unsigned char *to, size_t bytes,
                        size_t *got, const char *name, tarn_error *err)
{
    ssize_t some = 1;

    for (*got = 0; *got < bytes && some != 0;) {
        some = read(s->descriptor, to + *got, bytes - *got);
        if (some < 0 && errno != EINTR)
            return tn_fail_errno(err, name);
        *got += some > 0 ? (size_t)some : 0;
    }
    return TARN_OK;
}

static tarn_status refuse(const char *name, tarn_error *err)
{
    return tn_fail_path(err, TARN_EFORMAT, name,
                        "is damaged or not an audio file; expected WAV, or raw samples and "
                        "their rate");
}

static tarn_status take_all(const struct tn_wav_stream *s, unsigned char *to, size_t bytes,
                            const char *name, tarn_error *err)
{
    size_t got;
    const tarn_status status = take(s, to, bytes, &got, name, err);

    return status == TARN_OK && got < bytes ? refuse(name, err) : status;
}

static tarn_status pass_over(const struct tn_wav_stream *s, uint64_t bytes, const char *name,
                             tarn_error *err)
{
    unsigned char piece[PIECE];
    tarn_status status = TARN_OK;

    for (size_t some; bytes > 0 && status == TARN_OK; bytes -= some) {
        some = bytes < PIECE ? (size_t)bytes : PIECE;
        status = take_all(s, piece, some, name, err);
    }
    return status;
}

static uint32_t number(const unsigned char *at, size_t bytes)
{
    uint32_t value = 0;

    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* ---- Header ------------------------------------------------------------- */

static tarn_status read_format(struct tn_wav_stream *s, uint32_t size, const char *name,
                               tarn_error *err)
{
    unsigned char format[FORMAT_MOST];

    if (size < FORMAT_LEAST || size > FORMAT_MOST)
        return refuse(name, err);
    const tarn_status status = take_all(s, format, size, name, err);

    if (status != TARN_OK)
        return status;
    uint32_t kind = number(format, 2);
    const uint32_t bits = number(format + 14, 2);

    if (kind == EXTENSIBLE && size == FORMAT_MOST)
        kind = number(format + 24, 2);
    s->channels = number(format + 2, 2);
    s->rate = number(format + 4, 4);
    s->width = bits / 8;
    s->is_float = kind == FLOATS;
    if (bits % 8 != 0 || s->channels == 0 ||
        !(kind == PCM ? bits >= 8 && bits <= 32 : kind == FLOATS && (bits == 32 || bits == 64)))
        return tn_fail_path(err, TARN_EFORMAT, name,
                            "has %u bits per sample of format %u; expected integers of 8 to 32 "
                            "bits or floats",
                            (unsigned)bits, (unsigned)kind);
    return TARN_OK;
}

/* Up to the samples. Chunks have an even number of bytes. */
static tarn_status read_header(struct tn_wav_stream *s, const char *name, tarn_error *err)
{
    unsigned char chunk[CHUNK + 4];
    tarn_status status = take_all(s, chunk, sizeof chunk, name, err);

    if (status == TARN_OK &&
        (memcmp(chunk, "RIFF", 4) != 0 || memcmp(chunk + CHUNK, "WAVE", 4) != 0))
        return refuse(name, err);
    while (status == TARN_OK && (status = take_all(s, chunk, CHUNK, name, err)) == TARN_OK) {
        const uint32_t size = number(chunk + 4, 4);

        if (memcmp(chunk, "data", 4) == 0) {
            s->left = size == 0 || size == UINT32_MAX ? UINT64_MAX : size;
            return s->width > 0 ? TARN_OK : refuse(name, err);
        }
        if (memcmp(chunk, "fmt ", 4) == 0 && s->width == 0)
            status = read_format(s, size, name, err);
        else
            status = pass_over(s, (uint64_t)size + size % 2, name, err);
    }
    return status;
}

tarn_status tn_wav_stream_open(struct tn_wav_stream *stream, int descriptor, size_t raw_rate,
                               const char *name, tarn_error *err)
{
    *stream = (struct tn_wav_stream){.descriptor = descriptor};
    if (raw_rate == 0)
        return read_header(stream, name, err);
    stream->channels = 1;
    stream->rate = raw_rate;
    stream->width = 2;
    stream->left = UINT64_MAX;
    return TARN_OK;
}

/* ---- Samples ------------------------------------------------------------ */

/* 8 bits are unsigned; the top of other integers is brought to that of 32 bits. */
static float integer(const unsigned char *at, size_t width)
{
    const uint32_t top = number(at, width) << (8 * (4 - width));
    const uint32_t value = width == 1 ? top ^ UINT32_C(0x80000000) : top;
    int32_t number;

    memcpy(&number, &value, sizeof number);
    return (float)((double)number / 2147483648.0);
}

static float floating(const unsigned char *at, size_t width)
{
    const uint64_t low = number(at, 4), high = width == 8 ? number(at + 4, 4) : 0;
    const uint64_t bits = high << 32 | low;
    const uint32_t narrow = (uint32_t)low;
    double wide;
    float value;

    memcpy(&wide, &bits, sizeof wide);
    memcpy(&value, &narrow, sizeof value);
    return width == 8 ? (float)wide : value;
}

tarn_status tn_wav_stream_read(struct tn_wav_stream *stream, float *samples, size_t *got,
                               size_t frames, const char *name, tarn_error *err)
{
    const size_t frame = stream->width * stream->channels;
    unsigned char piece[PIECE];
    size_t bytes = frame;
    tarn_status status = TARN_OK;

    for (*got = 0; *got < frames && bytes > 0 && status == TARN_OK;) {
        const size_t room = tn_min(frames - *got, PIECE / frame) * frame;

        bytes = stream->left < room ? (size_t)stream->left / frame * frame : room;
        if ((status = take(stream, piece, bytes, &bytes, name, err)) != TARN_OK)
            break;
        bytes -= bytes % frame; /* the end may be within one */
        for (size_t i = 0; i < bytes / stream->width; i++)
            samples[*got * stream->channels + i] = (stream->is_float ? floating : integer)(
                piece + i * stream->width, stream->width);
        *got += bytes / frame;
        stream->left -= stream->left < UINT64_MAX ? bytes : 0;
    }
    return status;
}
