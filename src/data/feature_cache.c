/* SPDX-License-Identifier: MIT */
/* feature_cache.c - an entry is a head of eight 64-bit numbers in the machine's order, which
 * the first of them shows, and count x 40 floats. */
#define _XOPEN_SOURCE 700
#define _FILE_OFFSET_BITS 64
#include "data/feature_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <zlib.h>

#include <sha2.h>

#include "base/number.h"
#include "base/written.h"
#include "file/file_bytes.h"
#include "file/file_writer.h"
#include "file/paths.h"
#include "file/text_buffer.h"

static const uint64_t magic = UINT64_C(0x316c656d6e726174); /* "tarnmel1" where low is first */

enum { HASH_DIGITS = 32, FRAME_BYTES = TN_MEL_BANDS * sizeof(float) };

struct head {
    uint64_t magic;
    uint64_t size, time; /* of the audio file; nanoseconds */
    uint64_t count, samples, rate;
    double speed;
    uint64_t check; /* CRC-32 of everything else */
};

/* ---- Names -------------------------------------------------------------- */

tarn_status tn_feature_cache_open(struct tn_feature_cache *cache, const char *folder,
                                  tarn_error *err)
{
    *cache = (struct tn_feature_cache){0};
    if (!folder)
        return TARN_OK;
    const tarn_status status = tn_make_folder(folder, err);

    if (status != TARN_OK)
        return status;
    cache->folder = strdup(folder);
    if (!cache->folder)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    return TARN_OK;
}

void tn_feature_cache_close(struct tn_feature_cache *cache)
{
    free(cache->folder);
    *cache = (struct tn_feature_cache){0};
}

/* free() it; NULL if the audio file is not there, which whoever reads it will say. */
static char *entry_of(const struct tn_feature_cache *cache, const char *path, double speed)
{
    char *const full = realpath(path, NULL), *entry = NULL;
    char speed_text[TN_NUMBER_TEXT], hash[SHA256_DIGEST_STRING_LENGTH];
    SHA2_CTX context;

    if (full) {
        tn_number_rounded(speed_text, speed, 17);
        SHA256Init(&context);
        SHA256Update(&context, (const uint8_t *)tn_features_version,
                     strlen(tn_features_version) + 1);
        SHA256Update(&context, (const uint8_t *)speed_text, strlen(speed_text) + 1);
        SHA256Update(&context, (const uint8_t *)full, strlen(full));
        SHA256End(&context, hash);
        TN_WRITTEN(hash, sizeof hash);
        entry = tn_text_new("%s/%.*s.mel", cache->folder, HASH_DIGITS, hash);
    }
    free(full);
    return entry;
}

static bool describe(struct head *head, const char *path, double speed)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return false;
    *head = (struct head){.magic = magic, .size = (uint64_t)about.st_size, .speed = speed};
    head->time =
        (uint64_t)about.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)about.st_mtim.tv_nsec;
    return true;
}

static uint64_t check_of(const struct head *head, const void *data)
{
    struct head zero = *head;

    zero.check = 0;
    return crc32_z(crc32_z(0, (const unsigned char *)&zero, sizeof zero), data,
                   (size_t)head->count * FRAME_BYTES);
}

/* ---- Entries ------------------------------------------------------------ */

/* Batches count frames by samples and rate, so that these must tell as many as there are. */
static bool counts_fit(const struct head *head)
{
    return head->rate >= TN_AUDIO_RATE_LEAST && head->rate <= TN_AUDIO_RATE_MOST &&
           head->samples < UINT64_C(1) << 53 &&
           tn_features_frames(head->samples, (size_t)head->rate, head->speed) == head->count;
}

/* The head of an entry that is of this audio file, whole and undamaged. */
static bool read_head(struct head *head, const struct tn_bytes *bytes,
                      const struct head *expected, size_t most)
{
    if (bytes->size < sizeof *head)
        return false;
    memcpy(head, bytes->data, sizeof *head);
    const size_t rest = bytes->size - sizeof *head;

    return head->magic == magic && head->size == expected->size &&
           head->time == expected->time && head->speed == expected->speed &&
           head->count <= most && head->count == rest / FRAME_BYTES &&
           rest % FRAME_BYTES == 0 && counts_fit(head) &&
           head->check == check_of(head, bytes->data + sizeof *head);
}

static bool load(struct tn_frames *frames, const char *entry, const struct head *expected,
                 size_t most)
{
    struct tn_bytes bytes;
    struct head head;

    *frames = (struct tn_frames){0};
    if (tn_bytes_read(&bytes, entry, SIZE_MAX / 2, NULL) == TARN_OK &&
        read_head(&head, &bytes, expected, most) &&
        (frames->data = malloc(bytes.size - sizeof head + 1)) != NULL) {
        memcpy(frames->data, bytes.data + sizeof head, bytes.size - sizeof head);
        frames->count = frames->room = (size_t)head.count;
        frames->samples = head.samples;
        frames->rate = (size_t)head.rate;
    }
    tn_bytes_free(&bytes);
    return frames->data != NULL;
}

static tarn_status store(const struct tn_frames *frames, const char *entry, struct head head)
{
    struct tn_file_writer writer;
    tarn_status status;

    head.count = frames->count;
    head.samples = frames->samples;
    head.rate = frames->rate;
    head.check = check_of(&head, frames->data);
    if ((status = tn_file_writer_open(&writer, entry, NULL)) == TARN_OK &&
        (status = tn_file_writer_put(&writer, &head, sizeof head, NULL)) == TARN_OK &&
        (status = tn_file_writer_put(&writer, frames->data, frames->count * FRAME_BYTES,
                                     NULL)) == TARN_OK)
        status = tn_file_writer_commit_soon(&writer, NULL);
    return status;
}

/* The audio file is examined before it is read: if it changes meanwhile, the entry is
 * older. */
tarn_status tn_feature_cache_read(struct tn_feature_cache *cache, struct tn_frames *frames,
                                  const char *path, double speed, size_t most, tarn_error *err)
{
    char *const entry = cache->folder ? entry_of(cache, path, speed) : NULL;
    struct head head;
    tarn_status status = TARN_OK;

    if (!entry || !describe(&head, path, speed)) {
        status = tn_features_read(frames, path, speed, most, err);
    } else if (load(frames, entry, &head, most)) {
        cache->found++;
    } else if ((status = tn_features_read(frames, path, speed, most, err)) == TARN_OK) {
        cache->made++;
        cache->lost += store(frames, entry, head) != TARN_OK;
    }
    free(entry);
    return status;
}
