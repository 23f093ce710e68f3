/* SPDX-License-Identifier: MIT */
/* pth.h - files of torch.save(): a pickle that describes tensors, and their storages.
 *
 *     since 1.6   a zip archive, stored:   NAME/data.pkl   the pickle
 *                                          NAME/data/KEY   a storage, little-endian
 *     before      one file: magic, version and system as pickles, the pickle, the keys as a
 *                 pickle, then for each key its numbers, the count of them (8 bytes) first
 *
 * Tensors in dicts within dicts are named by all keys, a dot between them, in the order in
 * which they were saved; numbers and texts of the outer two dicts are the metadata. Everything
 * else in the file is skipped. Tensors that share a storage, or are not contiguous, are
 * read as they are meant. */
#ifndef TN_PTH_H
#define TN_PTH_H

#include "file/safetensors.h"

struct tn_zip;
struct tn_zip_entry;
struct tn_pickle;

/* The pickle of an archive; NULL: it is not torch's. */
const struct tn_zip_entry *tn_pth_pickle(const struct tn_zip *zip);

/* From an archive that was unpacked and has this pickle; it is empty if all is well. `name`
 * stands for the path in messages. */
tarn_status tn_pth_parse_zip(struct tn_safetensors *out, struct tn_zip *zip,
                             const struct tn_zip_entry *entry, const char *name,
                             tarn_error *err);

/* Whether this is of the format before 1.6, and reading it: the memory moves into *out if all
 * is well and stays the caller's if not. */
bool tn_is_old_pth(const struct tn_bytes *bytes);
tarn_status tn_pth_parse_old(struct tn_safetensors *out, struct tn_bytes *bytes,
                             const char *name, tarn_error *err);

/* Both end here: the tensors that a pickle names. An entry of `storages` is named `prefix` and
 * a storage's key, and lies within `bytes`, which move as above. */
tarn_status tn_pth_make(struct tn_safetensors *out, struct tn_bytes *bytes,
                        const struct tn_pickle *pickle, const struct tn_zip *storages,
                        const char *prefix, const char *name, tarn_error *err);

#endif
