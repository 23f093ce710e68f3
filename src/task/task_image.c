/* SPDX-License-Identifier: MIT */
/* task_image.c - predict the next byte of an image, row by row, each pixel's channels in turn
 * (4.2).
 *
 * Of an image's n = height x width x channels bytes the first is given and N = n - 1 are
 * predicted. The metric is the mean loss in bits, loss / ln 2, a predicted byte: bits/dim. An
 * image that is drawn from nothing begins with 0, black. Symbols look like numbers.
 *
 * The size is an option of the task, so that a model's configuration knows it: whoever draws
 * from the model has no data. Where it is 0 it is as the data has it. */
#include <stdio.h>

#include "comm/fingerprint.h"
#include "data/image_set.h"
#include "task/task.h"

enum { HEIGHT, WIDTH, CHANNELS };
enum { SIDE_MOST = 1 << 15, BYTES_MOST = 1 << 30 }; /* what options and settings hold */

static tarn_image_size image(const tarn_task *task)
{
    const double *const value = task->options.value;

    return (tarn_image_size){(size_t)value[HEIGHT], (size_t)value[WIDTH],
                             (size_t)value[CHANNELS]};
}

/* ---- The set ------------------------------------------------------------ */

static bool fits(size_t option, size_t found)
{
    return option == 0 || option == found;
}

static tarn_status check_size(const tarn_task *task, const struct tn_image_set *set,
                              const struct tn_task_desc *desc, tarn_error *err)
{
    const tarn_image_size size = image(task);
    const size_t N = tn_image_set_length(set);

    if (!fits(size.height, set->height) || !fits(size.width, set->width) ||
        !fits(size.channels, set->channels))
        return tn_fail(err, TARN_EINVAL,
                       "data: %.80s has images of %zu x %zu x %zu, height x width x channels; "
                       "the task needs %zu x %zu x %zu%s",
                       desc->data, set->height, set->width, set->channels, size.height,
                       size.width, size.channels,
                       size.height && size.width && size.channels ? "" : ", where 0 is any");
    if (set->height > SIDE_MOST || set->width > SIDE_MOST || N >= BYTES_MOST)
        return tn_fail(err, TARN_EINVAL,
                       "data: %.80s has images of %zu x %zu x %zu; sides can be at most %d, "
                       "and an image at most %d bytes",
                       desc->data, set->height, set->width, set->channels, SIDE_MOST,
                       BYTES_MOST);
    if (!fits(desc->length, N))
        return tn_fail(
            err, TARN_EINVAL,
            "length is %zu; it must be 0 or %zu, the bytes of an image without the first",
            desc->length, N);
    return TARN_OK;
}

static void take_size(tarn_task *task, const struct tn_image_set *set)
{
    double *const value = task->options.value;

    value[HEIGHT] = (double)set->height;
    value[WIDTH] = (double)set->width;
    value[CHANNELS] = (double)set->channels;
    task->N = tn_image_set_length(set);
    snprintf(task->spec, sizeof task->spec, "image:height=%zu,width=%zu,channels=%zu",
             set->height, set->width, set->channels);
}

static void close_set(void *set)
{
    tn_image_set_free(set);
}

static tarn_status open_set(tarn_task *task, const struct tn_task_desc *desc, tarn_error *err)
{
    struct tn_image_set *const set = task->set;
    tarn_status status;

    if ((status = tn_image_set_read(set, desc->data, desc->validation, desc->seed, NULL,
                                    err)) == TARN_OK &&
        (status = check_size(task, set, desc, err)) == TARN_OK)
        take_size(task, set);
    return status;
}

static tarn_status fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                        uint64_t index, tarn_error *err)
{
    (void)err;
    tn_image_set_fill(task->set, batch, split, index);
    return TARN_OK;
}

static size_t batches(const tarn_task *task, enum tn_split split, size_t B)
{
    const struct tn_image_set *const set = task->set;

    return split == TN_TRAINING ? tn_blocks(set->count[split], B)
                                : tn_image_set_batches(set, B);
}

static uint64_t hash(const tarn_task *task)
{
    const struct tn_image_set *const set = task->set;
    const size_t bytes = set->height * set->width * set->channels;
    const uint64_t training = tn_hash(bytes, set->part[0], set->count[0] * bytes);

    return tn_hash(training, set->part[1], set->count[1] * bytes);
}

/* ---- The row ------------------------------------------------------------ */

/* The paper's batch and optimizer. Its rate, 1e-4, is for hundreds of epochs; a laptop's few
 * thousand updates learn more from ten times that, falling to a tenth. A validation is of 500
 * images, as all of MNIST's would take longer than the updates between two of them. */
static const struct tn_task_setting settings[] = {
    {"batch", "10"},
    {"steps", "5000"},
    {"optimizer", "radam"},
    {"lr", "0.001"},
    {"schedule", "cosine:warmup=0.02,final=0.1"},
    {"eval_batches", "50"},
    {0},
};

#define SIZE_OPTION(name, most)                                                                \
    {                                                                                          \
        name, name " of the images; 0: taken from the data", 0.0, most, 0.0, true, NULL        \
    }

const struct tn_task_row tn_task_image = {
    .about = {"image", "predict the next byte of an image",
              (const tarn_option_info[]){
                  [HEIGHT] = SIZE_OPTION("height", SIDE_MOST),
                  [WIDTH] = SIZE_OPTION("width", SIDE_MOST),
                  [CHANNELS] = SIZE_OPTION("channels", 3),
                  {0},
              }},
    .reads_data = true,
    .has_length = true,
    .metric = {"bits_per_dim", tn_bits_per_symbol, false},
    .settings = settings,
    .preset = "small",
    .head = "logistic",
    .set = sizeof(struct tn_image_set),
    .open = open_set,
    .close = close_set,
    .symbol_count = TN_IMAGE_SYMBOLS,
    .fill = fill,
    .batches = batches,
    .hash = hash,
    .encode = tn_numbers_encode,
    .decode = tn_number_decode,
    .image = image,
};
