/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "data/text_set.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tarn/data.h"

/* ---- Folders ------------------------------------------------------------ */

const char tn_text_folder_reason[] = "contains a zero byte, so it is not a text file";

static const size_t most = SIZE_MAX / 2;

static bool not_hidden(const char *name)
{
    return name[0] != '.';
}

/* Bytes of all files, and of the newlines between them. */
static tarn_status measure(size_t *size, const struct tn_paths *files, tarn_error *err)
{
    struct stat about;

    *size = 0;
    for (size_t i = 0; i < files->count; i++) {
        const char *const path = files->path[i];

        if (stat(path, &about) != 0)
            return tn_fail_errno(err, path);
        if ((uintmax_t)about.st_size >= most - *size)
            return tn_fail_path(err, TARN_EIO, path, "has %ju bytes, more than fit in memory",
                                (uintmax_t)about.st_size);
        *size += (size_t)about.st_size + 1;
    }
    return TARN_OK;
}

/* Appends one file to the first *used bytes. */
static tarn_status append(struct tn_bytes *text, size_t *used, struct tn_paths *skipped,
                          const char *path, bool strict, tarn_error *err)
{
    const size_t newline = *used > 0 ? 1 : 0;
    struct tn_bytes one;
    tarn_status status = tn_bytes_read(&one, path, most, err);

    if (status == TARN_OK && memchr(one.data, '\0', one.size)) {
        status = strict ? tn_fail_path(err, TARN_EFORMAT, path, "%s", tn_text_folder_reason)
                        : tn_paths_add(skipped, path, err);
    } else if (status == TARN_OK && newline + one.size > text->size - *used) {
        status = tn_fail_path(err, TARN_EIO, path, "was changed while it was read");
    } else if (status == TARN_OK && one.size > 0) {
        memcpy(text->data + *used, "\n", newline);
        memcpy(text->data + *used + newline, one.data, one.size);
        *used += newline + one.size;
    }
    tn_bytes_free(&one);
    return status;
}

static tarn_status join(struct tn_bytes *text, struct tn_paths *skipped,
                        const struct tn_paths *files, bool strict, tarn_error *err)
{
    size_t size, used = 0;
    tarn_status status = measure(&size, files, err);

    if (status == TARN_OK)
        status = tn_bytes_allocate(text, size, err);
    for (size_t i = 0; i < files->count && status == TARN_OK; i++)
        status = append(text, &used, skipped, files->path[i], strict, err);
    text->size = used;
    return status;
}

tarn_status tn_text_folder_read(struct tn_bytes *text, struct tn_paths *skipped,
                                const char *folder, bool strict, tarn_error *err)
{
    struct tn_paths files = {0};
    tarn_status status = tn_paths_below(&files, folder, not_hidden, err);

    *text = (struct tn_bytes){0};
    if (status == TARN_OK)
        status = join(text, skipped, &files, strict, err);
    if (status == TARN_OK && text->size == 0)
        status = tn_fail_path(err, TARN_EIO, folder,
                              "contains no text, in %zu files; expected a folder of text files",
                              files.count);
    if (status != TARN_OK)
        tn_bytes_free(text);
    tn_paths_free(&files);
    return status;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status check_arguments(size_t N, double validation, tarn_error *err)
{
    if (N < 1 || N >= SIZE_MAX / 2)
        return tn_fail(err, TARN_EINVAL, "length is %zu; it must be at least 1", N);
    return tn_validation_check(validation, "text", err);
}

static tarn_status check_sizes(const struct tn_text_set *set, const char *path,
                               double validation, tarn_error *err)
{
    const size_t size = set->bytes.size;

    if (validation < 1.0 && set->training < set->N + 1)
        return tn_fail_path(
            err, TARN_EINVAL, path,
            "has %zu bytes, %zu of them for training; expected at least %zu for "
            "a length of %zu",
            size, set->training, set->N + 1, set->N);
    if (size - set->training < 2)
        return tn_fail_path(err, TARN_EINVAL, path,
                            "has %zu bytes, %zu of them for validation; expected at least 2",
                            size, size - set->training);
    return TARN_OK;
}

static tarn_status read_text(struct tn_bytes *text, struct tn_paths *skipped, const char *path,
                             bool strict, tarn_error *err)
{
    return tn_is_folder(path) ? tn_text_folder_read(text, skipped, path, strict, err)
                              : tn_bytes_read(text, path, most, err);
}

tarn_status tn_text_set_read(struct tn_text_set *set, const char *path, size_t N,
                             double validation, uint64_t seed, bool strict, tarn_error *err)
{
    tarn_status status = check_arguments(N, validation, err);

    *set = (struct tn_text_set){.N = N, .seed = seed};
    if (status == TARN_OK &&
        (status = read_text(&set->bytes, &set->skipped, path, strict, err)) == TARN_OK) {
        const size_t size = set->bytes.size;

        set->training = size - tn_min(size, (size_t)(validation * (double)size));
        status = check_sizes(set, path, validation, err);
    }
    if (status != TARN_OK)
        tn_text_set_free(set);
    return status;
}

void tn_text_set_free(struct tn_text_set *set)
{
    tn_bytes_free(&set->bytes);
    tn_paths_free(&set->skipped);
    *set = (struct tn_text_set){0};
}

/* ---- Batches ------------------------------------------------------------ */

/* Bytes of the validation part that are predicted. */
static size_t predicted(const struct tn_text_set *set)
{
    return set->bytes.size - set->training - 1;
}

size_t tn_text_set_batches(const struct tn_text_set *set, size_t B)
{
    return tn_blocks(tn_blocks(predicted(set), set->N), B);
}

/* Sequence b: the window at `begin`, cut to `count` predictions. */
static void fill_window(const struct tn_text_set *set, struct tn_batch *batch, size_t b,
                        size_t begin, size_t count)
{
    const unsigned char *const text = set->bytes.data + begin;
    const size_t first = b * set->N;

    tn_batch_clear(batch, b);
    for (size_t i = 0; i < count; i++) {
        batch->inputs[first + i] = text[i];
        batch->targets[first + i] = text[i + 1];
        batch->weights[first + i] = 1.0f;
    }
}

/* Windows of each of B streams. */
static size_t stream_windows(const struct tn_text_set *set, size_t B)
{
    return set->training > 0 ? (set->training - 1) / B / set->N : 0;
}

bool tn_text_set_carries(const struct tn_text_set *set, size_t B)
{
    return stream_windows(set, B) > 0;
}

static void fill_streams(const struct tn_text_set *set, struct tn_batch *batch, uint64_t index)
{
    const size_t windows = stream_windows(set, batch->B);
    const size_t position = (size_t)(index % windows) * set->N;

    batch->position = position;
    for (size_t b = 0; b < batch->B; b++)
        fill_window(set, batch, b, b * windows * set->N + position, set->N);
}

static void fill_training(const struct tn_text_set *set, struct tn_batch *batch, size_t b,
                          uint64_t index)
{
    struct tn_random random;

    if (set->training < set->N + 1) {
        tn_batch_clear(batch, b); /* validation = 1 */
        return;
    }
    tn_batch_random(&random, set->seed, TN_TRAINING, index, b);
    fill_window(set, batch, b, tn_random_below(&random, set->training - set->N), set->N);
}

static void fill_validation(const struct tn_text_set *set, struct tn_batch *batch, size_t b,
                            uint64_t index)
{
    const size_t windows = tn_blocks(predicted(set), set->N);

    if (index >= tn_text_set_batches(set, batch->B) ||
        (size_t)index * batch->B + b >= windows) {
        tn_batch_clear(batch, b);
        return;
    }
    const size_t begin = ((size_t)index * batch->B + b) * set->N;

    fill_window(set, batch, b, set->training + begin, tn_min(set->N, predicted(set) - begin));
}

void tn_text_set_fill(const struct tn_text_set *set, struct tn_batch *batch,
                      enum tn_split split, uint64_t index)
{
    batch->position = 0;
    if (split == TN_TRAINING && set->carry) {
        fill_streams(set, batch, index);
        return;
    }
    for (size_t b = 0; b < batch->B; b++)
        if (split == TN_TRAINING)
            fill_training(set, batch, b, index);
        else
            fill_validation(set, batch, b, index);
}

/* ---- For programs -------------------------------------------------------- */

tarn_status tarn_text_read(unsigned char **text, size_t *size, const char *path,
                           tarn_error *err)
{
    struct tn_bytes bytes = {0};
    struct tn_paths skipped = {0};

    if (!text || !size)
        return tn_fail(err, TARN_EINVAL, "text and size must not be NULL");
    *text = NULL;
    *size = 0;
    if (!path)
        return tn_fail(err, TARN_EINVAL, "path must not be NULL");
    const tarn_status status = read_text(&bytes, &skipped, path, false, err);

    tn_paths_free(&skipped);
    *text = bytes.data;
    *size = bytes.size;
    return status;
}

void tarn_text_free(unsigned char *text)
{
    free(text);
}
