/* SPDX-License-Identifier: MIT */
#include "skipped.h"

#include <stdio.h>

void skipped_tell(const tarn_skipped *skipped)
{
    char file[TARN_PATH_SIZE], reason[512];

    tarn_printable(file, sizeof file, skipped->file);
    tarn_printable(reason, sizeof reason, skipped->reason);
    if (skipped->line > 0)
        fprintf(stderr, "skipped %s:%zu: %s\n", file, skipped->line, reason);
    else
        fprintf(stderr, "skipped %s: %s\n", file, reason);
}
