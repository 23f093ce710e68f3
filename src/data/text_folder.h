/* SPDX-License-Identifier: MIT */
/* text_folder.h - the text files of a folder as one text. */
#ifndef TN_TEXT_FOLDER_H
#define TN_TEXT_FOLDER_H

#include "file/file_bytes.h"
#include "file/paths.h"

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

#endif
