/* SPDX-License-Identifier: MIT */
/* image_set.h - images as sequences of bytes, row by row, each pixel's channels in turn.
 *
 * Of the n = height x width x channels bytes of an image, all but the last are inputs and all
 * but the first are targets, as the authors have it: N = n - 1 positions, each of which
 * counts. */
#ifndef TN_IMAGE_SET_H
#define TN_IMAGE_SET_H

#include "data/batch.h"
#include "file/images.h"

enum { TN_IMAGE_SYMBOLS = 256 };

/* Indexed by enum tn_split. */
struct tn_image_set {
    struct tn_images images[2]; /* the second is empty where both parts are of one file */
    const unsigned char *part[2];
    size_t count[2];
    size_t height, width, channels;
    uint64_t seed;
};

/* A path as tn_images_read() takes it, of which the last `validation` (above 0, up to 1) is the
 * validation part; with 1 there is nothing to train on. Two kinds of folders have a validation
 * part of their own, and the fraction is ignored:
 *
 *     MNIST       train-images-idx3-ubyte and t10k-images-idx3-ubyte, each plain or as .gz
 *     CIFAR-10    data_batch_*.bin and test_batch.bin
 *
 * If only the first is there, it is split like a file; if only the second, `validation` must be
 * 1. NULL for the allocator means malloc;
 * it must outlive the set. On failure *set is empty. */
tarn_status tn_image_set_read(struct tn_image_set *set, const char *path, double validation,
                              uint64_t seed, const tarn_allocator *allocator, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_image_set_free(struct tn_image_set *set);

/* N. */
size_t tn_image_set_length(const struct tn_image_set *set);

/* Batches of B that validation takes, each image once and in order. */
size_t tn_image_set_batches(const struct tn_image_set *set, size_t B);

/* batch->N is the set's. Training goes over all images in an order that seed and epoch give,
 * then over all again; a batch may hold the end of one epoch and the start of the next. What
 * lies past the end of validation has weight 0. */
void tn_image_set_fill(const struct tn_image_set *set, struct tn_batch *batch,
                       enum tn_split split, uint64_t index);

/* Bytes of image i < set->count[split], in the order of the files. */
const unsigned char *tn_image_set_image(const struct tn_image_set *set, enum tn_split split,
                                        size_t i);

#endif
