/* SPDX-License-Identifier: MIT */
/* npz.h - NumPy's files of arrays: a zip archive with NAME.npy for each, stored or deflated.
 *
 *     NAME.npy    "\x93NUMPY", version, length, {'descr': '<f4', 'fortran_order': False,
 *                 'shape': (2, 3), } padded with blanks, then the numbers
 *     NAME.json.npy
 *                 a text of the metadata, its bytes as an array of uint8: every member is an
 *                 array, so that programs may go over all of them
 *     NAME.json   the same in older files of tarn: read, no longer written */
#ifndef TN_NPZ_H
#define TN_NPZ_H

#include "file/safetensors.h"

struct tn_zip;

/* From an archive that was unpacked, which is empty if all is well. `name` stands for the path
 * in messages. */
tarn_status tn_npz_parse_zip(struct tn_safetensors *out, struct tn_zip *zip, const char *name,
                             tarn_error *err);

/* As tn_safetensors_write(). BF16, which NumPy does not have, is refused. */
tarn_status tn_npz_write(const char *path, const struct tn_safetensor *tensors, size_t n,
                         const struct tn_safetensors_entry *metadata, size_t entries,
                         tarn_error *err);

#endif
