/* SPDX-License-Identifier: MIT */
/* speech_folder.h - folders of made-up speech, with folders in them. */
#ifndef SPEECH_FOLDER_H
#define SPEECH_FOLDER_H

#include "support/folder.h"

/* A text file in the folder; folders in its name are made. */
void text_put(const struct folder *folder, const char *name, const char *text);

/* Folders in a name are made. */
void folders_make(const struct folder *folder, const char *name);

/* Removes it with all that is in it. */
void tree_close(struct folder *folder);

/* train.tsv with `training` utterances, test.tsv with `test`, of `speakers` speakers, with WAV
 * files of 0.2 to 0.2 + `spread` seconds. Phones are drawn from AA, B, CH. */
void speech_folder_fill(const struct folder *folder, size_t training, size_t test,
                        size_t speakers, double spread);

#endif
