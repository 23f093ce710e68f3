/* SPDX-License-Identifier: MIT */
/* cifar.h - CIFAR-10's binary files: records of a label and 3 planes of 32 x 32 bytes, red,
 * green, blue, which become r, g, b, r, g, b, ... */
#ifndef TN_CIFAR_H
#define TN_CIFAR_H

#include "file/images.h"

enum { TN_CIFAR_SIDE = 32, TN_CIFAR_RECORD = 1 + 3 * TN_CIFAR_SIDE * TN_CIFAR_SIDE };

/* A number of whole records, with labels that CIFAR-10 has. Records have no other mark. */
bool tn_is_cifar(const struct tn_bytes *bytes);

tarn_status tn_cifar_parse(struct tn_images *images, const struct tn_bytes *bytes,
                           const char *path, const tarn_allocator *allocator, tarn_error *err);

/* The images of several files, one behind the other. */
tarn_status tn_cifar_read(struct tn_images *images, const char *const *paths, size_t count,
                          const tarn_allocator *allocator, tarn_error *err);

#endif
