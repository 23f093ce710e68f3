/* SPDX-License-Identifier: MIT */
/* image_bytes.c - whatever stands in a file must end in images whose pixels are all there or in
 * a sentence, and in no more memory than the file can fill. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "file/images.h"
#include "support/fuzzing.h"

/* 1032 bytes of pixels for a byte of deflate, and 24 for a pixel of one bit with a palette. */
static size_t most;

static void *allocate(void *context, size_t bytes)
{
    (void)context;
    need(bytes <= most);
    return malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tarn_allocator allocator = {allocate, release, NULL};
    struct tn_images images;
    struct tn_bytes bytes;
    tarn_error err = {TARN_OK, ""};
    unsigned sum = 0;

    most = 1032 * 24 * size;
    need(tn_bytes_allocate(&bytes, size, NULL) == TARN_OK);
    if (size > 0)
        memcpy(bytes.data, data, size);
    if (tn_images_parse(&images, &bytes, "fuzz", &allocator, &err) == TARN_OK) {
        need(images.channels == 1 || images.channels == 3);
        for (size_t i = 0; i < images.count; i++)
            for (size_t k = 0; k < tn_images_size(&images); k++)
                sum += tn_images_at(&images, i)[k];
        need(sum != 1 || images.count > 0);
    } else {
        need(images.pixels == NULL && *err.text && memchr(err.text, '\0', sizeof err.text));
    }
    tn_images_free(&images);
    tn_bytes_free(&bytes);
    return 0;
}
