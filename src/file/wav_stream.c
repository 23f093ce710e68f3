/* SPDX-License-Identifier: MIT */
#include "file/wav_stream.h"

#include <string.h>

#include "file/cursor.h"
#include "file/file_bytes.h"

enum {
    CHUNK = 8,         /* bytes of a chunk's name and size */
    FORMAT_LEAST = 16, /* bytes of a format chunk */
    FORMAT_MOST = 40,
    PIECE = 4096,
};

enum { PCM = 1, FLOATS = 3, EXTENSIBLE = 0xfffe };

/* ---- Bytes -------------------------------------------------------------- */

static tarn_status refuse(const struct tn_wav_stream *s, tarn_error *err)
{
    return tn_fail_path(err, TARN_EFORMAT, s->name,
                        "is damaged or not an audio file; expected WAV, or raw samples and "
                        "their rate");
}

static tarn_status take_all(const struct tn_wav_stream *s, unsigned char *to, size_t bytes,
                            tarn_error *err)
{
    size_t got;

    if (!tn_read_all(s->descriptor, to, bytes, &got))
        return tn_fail_errno(err, s->name);
    return got < bytes ? refuse(s, err) : TARN_OK;
}

static tarn_status pass_over(const struct tn_wav_stream *s, uint64_t bytes, tarn_error *err)
{
    unsigned char piece[PIECE];
    tarn_status status = TARN_OK;

    for (size_t some; bytes > 0 && status == TARN_OK; bytes -= some) {
        some = bytes < PIECE ? (size_t)bytes : PIECE;
        status = take_all(s, piece, some, err);
    }
    return status;
}

/* ---- Header ------------------------------------------------------------- */

static size_t number(const unsigned char *at, size_t bytes)
{
    return (size_t)tn_little_endian(at, bytes);
}

static tarn_status read_format(struct tn_wav_stream *s, size_t size, tarn_error *err)
{
    unsigned char format[FORMAT_MOST];

    if (size < FORMAT_LEAST || size > FORMAT_MOST)
        return refuse(s, err);
    const tarn_status status = take_all(s, format, size, err);

    if (status != TARN_OK)
        return status;
    const bool extensible = number(format, 2) == EXTENSIBLE && size == FORMAT_MOST;
    const size_t kind = number(format + (extensible ? 24 : 0), 2);
    const size_t bits = number(format + 14, 2);

    s->channels = number(format + 2, 2);
    s->rate = number(format + 4, 4);
    s->width = bits / 8;
    s->is_float = kind == FLOATS;
    if (bits % 8 != 0 || s->channels == 0 ||
        !(kind == PCM ? bits >= 8 && bits <= 32 : kind == FLOATS && (bits == 32 || bits == 64)))
        return tn_fail_path(err, TARN_EFORMAT, s->name,
                            "has %zu bits per sample of format %zu; expected integers of 8 to "
                            "32 bits or floats",
                            bits, kind);
    return TARN_OK;
}

/* Up to the samples. Chunks have an even number of bytes. */
static tarn_status read_header(struct tn_wav_stream *s, tarn_error *err)
{
    unsigned char chunk[CHUNK + 4];
    tarn_status status = take_all(s, chunk, sizeof chunk, err);

    if (status == TARN_OK &&
        (memcmp(chunk, "RIFF", 4) != 0 || memcmp(chunk + CHUNK, "WAVE", 4) != 0))
        return refuse(s, err);
    while (status == TARN_OK && (status = take_all(s, chunk, CHUNK, err)) == TARN_OK) {
        const size_t size = number(chunk + 4, 4);

        if (memcmp(chunk, "data", 4) == 0) {
            s->left = size == 0 || size == UINT32_MAX ? UINT64_MAX : size;
            return s->width > 0 ? TARN_OK : refuse(s, err);
        }
        if (memcmp(chunk, "fmt ", 4) == 0 && s->width == 0)
            status = read_format(s, size, err);
        else
            status = pass_over(s, (uint64_t)size + size % 2, err);
    }
    return status;
}

tarn_status tn_wav_stream_open(struct tn_wav_stream *stream, int descriptor, size_t raw_rate,
                               const char *name, tarn_error *err)
{
    *stream = (struct tn_wav_stream){.descriptor = descriptor, .name = name};
    if (raw_rate == 0)
        return read_header(stream, err);
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
    const uint32_t top = (uint32_t)(tn_little_endian(at, width) << (8 * (4 - width)));
    const uint32_t value = width == 1 ? top ^ UINT32_C(0x80000000) : top;
    int32_t number;

    memcpy(&number, &value, sizeof number);
    return (float)((double)number / 2147483648.0);
}

static float floating(const unsigned char *at, size_t width)
{
    float narrow;
    double wide;

    if (width == sizeof narrow) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, at, sizeof wide);
    return (float)wide;
}

tarn_status tn_wav_stream_read(struct tn_wav_stream *stream, float *samples, size_t *got,
                               size_t frames, tarn_error *err)
{
    const size_t frame = stream->width * stream->channels;
    unsigned char piece[PIECE];
    size_t bytes = frame;

    for (*got = 0; *got < frames && bytes > 0;) {
        const size_t room = tn_min(frames - *got, PIECE / frame) * frame;

        bytes = stream->left < room ? (size_t)stream->left / frame * frame : room;
        if (!tn_read_all(stream->descriptor, piece, bytes, &bytes))
            return tn_fail_errno(err, stream->name);
        bytes -= bytes % frame; /* the end may be within one */
        for (size_t i = 0; i < bytes / stream->width; i++)
            samples[*got * stream->channels + i] = (stream->is_float ? floating : integer)(
                piece + i * stream->width, stream->width);
        *got += bytes / frame;
        stream->left -= stream->left < UINT64_MAX ? bytes : 0;
    }
    return TARN_OK;
}
