/* SPDX-License-Identifier: MIT */
#include "data/text_set.h"

/* ---- Life --------------------------------------------------------------- */

static tarn_status check_arguments(size_t N, double validation, tarn_error *err)
{
    if (N < 1 || N >= SIZE_MAX / 2)
        return tn_fail(err, TARN_EINVAL, "length is %zu; it must be at least 1", N);
    if (!(validation > 0.0 && validation <= 1.0)) /* no number compares */
        return tn_fail(
            err, TARN_EINVAL,
            "validation is %g; it must be a fraction of the text above 0 and up to 1",
            validation);
    return TARN_OK;
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

static tarn_status read_text(struct tn_text_set *set, const char *path, bool strict,
                             tarn_error *err)
{
    return tn_is_folder(path)
               ? tn_text_folder_read(&set->bytes, &set->skipped, path, strict, err)
               : tn_bytes_read(&set->bytes, path, SIZE_MAX / 2, err);
}

tarn_status tn_text_set_read(struct tn_text_set *set, const char *path, size_t N,
                             double validation, uint64_t seed, bool strict, tarn_error *err)
{
    tarn_status status = check_arguments(N, validation, err);

    *set = (struct tn_text_set){.N = N, .seed = seed};
    if (status == TARN_OK && (status = read_text(set, path, strict, err)) == TARN_OK) {
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
