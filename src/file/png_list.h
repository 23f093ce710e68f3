/* SPDX-License-Identifier: MIT */
/* png_list.h - many PNG files, all of one size and all grey or all colour: a folder's, or those
 * that a list names. */
#ifndef TN_PNG_LIST_H
#define TN_PNG_LIST_H

#include "file/images.h"

tarn_status tn_png_folder_read(struct tn_images *images, const char *folder,
                               const tarn_allocator *allocator, tarn_error *err);
tarn_status tn_png_list_read(struct tn_images *images, const char *list,
                             const tarn_allocator *allocator, tarn_error *err);

#endif
