/* SPDX-License-Identifier: MIT */
/* image_public.c - the images that a model is tried on, for programs. */
#include <stdlib.h>

#include "data/image_set.h"
#include "tarn/image.h"

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
