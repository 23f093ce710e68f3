/* SPDX-License-Identifier: MIT */
/* text_set.h - the bytes of any file, or of the text files in a folder, each a symbol.
 *
 *     0                        training                 size
 *     | windows anywhere       | windows one by one     |
 *
 * A window is N + 1 bytes: all but the last are inputs, all but the first are targets.
 *
 * With `carry` the training part is cut into B streams of equal length, and each sequence of a
 * batch is the next window of its stream; at their end all streams start anew. */
#ifndef TN_TEXT_SET_H
#define TN_TEXT_SET_H

#include "data/batch.h"
#include "file/file_bytes.h"
#include "file/paths.h"

enum { TN_TEXT_SYMBOLS = 256 };

/* All files in a folder and in the folders below it, in the order of the bytes of their paths,
 * with a newline between one and the next. Left out are empty files, names that begin with a
 * dot, links to folders, and what is neither file nor folder.
 *
 * A file with a zero byte is not text: it is added to `skipped`, or a failure if `strict`. So
 * is a file that cannot be read, and a folder without text. On failure *text is empty;
 * `skipped`, which is empty at first, is to be freed in any case. */
tarn_status tn_text_folder_read(struct tn_bytes *text, struct tn_paths *skipped,
                                const char *folder, bool strict, tarn_error *err);

extern const char tn_text_folder_reason[]; /* why a file was skipped */

struct tn_text_set {
    struct tn_bytes bytes;
    struct tn_paths skipped; /* files of a folder that are not text */
    size_t training;         /* bytes of the training part */
    size_t N;
    uint64_t seed;
    bool carry;
};

/* A file, or a folder, see tn_text_folder_read(), as is `strict`. The last `validation` (above
 * 0, up to 1) of the text is the validation part; with 1 there is nothing to train on. Refuses
 * texts whose training part has no window, or whose validation part has no byte to predict. On
 * failure *set is empty. */
tarn_status tn_text_set_read(struct tn_text_set *set, const char *path, size_t N,
                             double validation, uint64_t seed, bool strict, tarn_error *err);

/* Whether the training part has a window for each of B streams. */
bool tn_text_set_carries(const struct tn_text_set *set, size_t B);

/* Leaves it empty; accepts what is empty. */
void tn_text_set_free(struct tn_text_set *set);

/* Batches of B that validation takes: its windows follow each other without overlap, so that
 * every byte but the first, which nothing precedes, is predicted once. */
size_t tn_text_set_batches(const struct tn_text_set *set, size_t B);

/* batch->N is the set's. What lies past the end has weight 0. */
void tn_text_set_fill(const struct tn_text_set *set, struct tn_batch *batch,
                      enum tn_split split, uint64_t index);

#endif
