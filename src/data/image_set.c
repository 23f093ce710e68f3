/* SPDX-License-Identifier: MIT */
#include "data/image_set.h"

#include <stdlib.h>
#include <string.h>

#include "data/batch.h"
#include "file/paths.h"
#include "tarn/image.h"

/* ---- Folders that have parts of their own ------------------------------- */

static bool is_training_batch(const char *name)
{
    const size_t length = strlen(name);

    return strncmp(name, "data_batch_", 11) == 0 && length > 15 &&
           strcmp(name + length - 4, ".bin") == 0;
}

static bool is_test_batch(const char *name)
{
    return strcmp(name, "test_batch.bin") == 0;
}

static bool is_mnist(const char *name, const char *part)
{
    const size_t length = strlen(part);

    return strncmp(name, part, length) == 0 && (!name[length] || !strcmp(name + length, ".gz"));
}

static bool is_mnist_training(const char *name)
{
    return is_mnist(name, "train-images-idx3-ubyte") ||
           is_mnist(name, "train-images.idx3-ubyte");
}

static bool is_mnist_test(const char *name)
{
    return is_mnist(name, "t10k-images-idx3-ubyte") || is_mnist(name, "t10k-images.idx3-ubyte");
}

static const struct layout {
    bool (*wanted[2])(const char *name); /* by split */
    tn_images_parser *parse;
    size_t files; /* at most: MNIST may be there twice, plain and as .gz */
} layouts[] = {
    {{is_mnist_training, is_mnist_test}, tn_images_parse, 1},
    {{is_training_batch, is_test_batch}, tn_cifar_parse, SIZE_MAX},
};

/* A part that the folder does not have stays empty. */
static tarn_status read_part(struct tn_images *images, const struct layout *layout,
                             enum tn_split split, const char *folder,
                             const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_paths paths = {0};
    tarn_status status = tn_paths_in(&paths, folder, layout->wanted[split], err);

    if (status == TARN_OK && paths.count > 0)
        status = tn_images_read_files(images, paths.path, tn_min(paths.count, layout->files),
                                      layout->parse, allocator, err);
    tn_paths_free(&paths);
    return status;
}

/* The first layout of which the folder has something. */
static tarn_status read_layouts(struct tn_images images[2], const char *folder,
                                const tarn_allocator *allocator, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0] && status == TARN_OK; i++) {
        for (int split = 0; split < 2 && status == TARN_OK; split++)
            status = read_part(&images[split], &layouts[i], (enum tn_split)split, folder,
                               allocator, err);
        if (images[TN_TRAINING].pixels || images[TN_VALIDATION].pixels)
            break;
    }
    return status;
}

/* ---- Life --------------------------------------------------------------- */

static void set_part(struct tn_image_set *set, enum tn_split split, size_t from, size_t first,
                     size_t count)
{
    set->part[split] = tn_images_at(&set->images[from], first);
    set->count[split] = count;
}

/* One file's images; both parts have one at least, or validation has all. */
static tarn_status split_file(struct tn_image_set *set, const char *path, double validation,
                              tarn_error *err)
{
    const size_t count = set->images[0].count;
    const size_t kept = tn_min(count, (size_t)(validation * (double)count));

    if (kept == 0 || (kept == count && validation < 1.0))
        return tn_fail_path(err, TARN_EINVAL, path,
                            "has %zu images, %zu of them for validation; expected at least 1 "
                            "for validation and 1 for training",
                            count, kept);
    set_part(set, TN_TRAINING, 0, 0, count - kept);
    set_part(set, TN_VALIDATION, 0, count - kept, kept);
    return TARN_OK;
}

static tarn_status join_parts(struct tn_image_set *set, const char *path, double validation,
                              tarn_error *err)
{
    const struct tn_images *const a = &set->images[TN_TRAINING];
    const struct tn_images *const b = &set->images[TN_VALIDATION];

    if (!a->pixels && validation < 1.0)
        return tn_fail_path(err, TARN_EINVAL, path,
                            "has only validation images; expected training images too, or a "
                            "validation fraction of 1");
    if (a->pixels &&
        (a->height != b->height || a->width != b->width || a->channels != b->channels))
        return tn_fail_path(
            err, TARN_EFORMAT, path,
            "validation images are %zu x %zu; expected %zu x %zu, like the training images",
            b->height, b->width, a->height, a->width);
    if (a->pixels)
        set_part(set, TN_TRAINING, TN_TRAINING, 0, a->count);
    set_part(set, TN_VALIDATION, TN_VALIDATION, 0, b->count);
    return TARN_OK;
}

static tarn_status read_files(struct tn_image_set *set, const char *path,
                              const tarn_allocator *allocator, tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (tn_is_folder(path))
        status = read_layouts(set->images, path, allocator, err);
    if (status == TARN_OK && !set->images[0].pixels && !set->images[1].pixels)
        status = tn_images_read(&set->images[0], path, allocator, err);
    return status;
}

static tarn_status arrange(struct tn_image_set *set, const char *path, double validation,
                           tarn_error *err)
{
    const bool two = set->images[TN_VALIDATION].pixels != NULL;
    const struct tn_images *const any = &set->images[two];
    const tarn_status status =
        two ? join_parts(set, path, validation, err) : split_file(set, path, validation, err);

    set->height = any->height;
    set->width = any->width;
    set->channels = any->channels;
    if (status == TARN_OK && tn_images_size(any) < 2)
        return tn_fail_path(err, TARN_EINVAL, path,
                            "has images of 1 byte; expected at least 2");
    return status;
}

tarn_status tn_image_set_read(struct tn_image_set *set, const char *path, double validation,
                              uint64_t seed, const tarn_allocator *allocator, tarn_error *err)
{
    tarn_status status = tn_validation_check(validation, "images", err);

    *set = (struct tn_image_set){.seed = seed};
    if (status == TARN_OK && (status = read_files(set, path, allocator, err)) == TARN_OK)
        status = arrange(set, path, validation, err);
    if (status != TARN_OK)
        tn_image_set_free(set);
    return status;
}

void tn_image_set_free(struct tn_image_set *set)
{
    tn_images_free(&set->images[0]);
    tn_images_free(&set->images[1]);
    *set = (struct tn_image_set){0};
}

/* ---- Use ---------------------------------------------------------------- */

static size_t image_size(const struct tn_image_set *set)
{
    return set->height * set->width * set->channels;
}

size_t tn_image_set_length(const struct tn_image_set *set)
{
    return image_size(set) - 1;
}

size_t tn_image_set_batches(const struct tn_image_set *set, size_t B)
{
    return tn_blocks(set->count[TN_VALIDATION], B);
}

const unsigned char *tn_image_set_image(const struct tn_image_set *set, enum tn_split split,
                                        size_t i)
{
    return set->part[split] + i * image_size(set);
}

/* Image number `place` of training, which never ends: its epoch's permutation says which
 * it is. */
static size_t shuffled(const struct tn_image_set *set, uint64_t place)
{
    const size_t count = set->count[TN_TRAINING];
    struct tn_random random;

    tn_batch_random(&random, set->seed, TN_TRAINING, place / count, 0);
    return tn_shuffle(tn_random_bits(&random), count, (size_t)(place % count));
}

static void fill_image(const struct tn_image_set *set, struct tn_batch *batch, size_t b,
                       enum tn_split split, size_t i)
{
    const unsigned char *const image = tn_image_set_image(set, split, i);
    const size_t first = b * batch->N;

    for (size_t n = 0; n < batch->N; n++) {
        batch->inputs[first + n] = image[n];
        batch->targets[first + n] = image[n + 1];
        batch->weights[first + n] = 1.0f;
    }
}

void tn_image_set_fill(const struct tn_image_set *set, struct tn_batch *batch,
                       enum tn_split split, uint64_t index)
{
    for (size_t b = 0; b < batch->B; b++) {
        const uint64_t place = index * batch->B + b; /* after 2^64 images all over again */

        if (split == TN_TRAINING && set->count[split] > 0)
            fill_image(set, batch, b, split, shuffled(set, place));
        else if (split == TN_VALIDATION && index < tn_image_set_batches(set, batch->B) &&
                 place < set->count[split])
            fill_image(set, batch, b, split, (size_t)place);
        else
            tn_batch_clear(batch, b);
    }
}

/* ---- For programs ------------------------------------------------------- */

struct tarn_images {
    struct tn_image_set set;
};

tarn_status tarn_images_open(tarn_images **images, const char *path, tarn_error *err)
{
    tarn_status status;

    if (!images || !path)
        return tn_fail(err, TARN_EINVAL, "images and path must not be NULL");
    *images = calloc(1, sizeof **images);
    if (!*images)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for images");
    if ((status = tn_image_set_read(&(*images)->set, path, 1.0, 0, NULL, err)) != TARN_OK) {
        free(*images);
        *images = NULL;
    }
    return status;
}

void tarn_images_free(tarn_images *images)
{
    if (images)
        tn_image_set_free(&images->set);
    free(images);
}

size_t tarn_images_count(const tarn_images *images)
{
    return images->set.count[TN_VALIDATION];
}

tarn_image_size tarn_images_size(const tarn_images *images)
{
    const struct tn_image_set *const set = &images->set;

    return (tarn_image_size){set->height, set->width, set->channels};
}

const unsigned char *tarn_images_at(const tarn_images *images, size_t i)
{
    return i < tarn_images_count(images) ? tn_image_set_image(&images->set, TN_VALIDATION, i)
                                         : NULL;
}
