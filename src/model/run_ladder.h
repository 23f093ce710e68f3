/* SPDX-License-Identifier: MIT */
/* run_ladder.h - runs of several lengths in one memory, for batches of frames that are not
 * equally long: what is padded costs as much as what is there.
 *
 * The longest takes T frames, each other one a sixteenth less than the one before it. All are
 * planned at once, so that nothing is allocated in use; one of them is used at a time. */
#ifndef TN_RUN_LADDER_H
#define TN_RUN_LADDER_H

#include "model/run.h"

enum { TN_RUNGS = 40 }; /* the shortest has a twelfth of the frames of the longest */

struct tn_ladder {
    tarn_run *runs[TN_RUNGS]; /* from the longest down */
    size_t count, bytes;
    void *memory;
    const struct tn_host *host;
};

/* Of one run, or `rungs` at most; the host must live as long as the ladder. On failure it is
 * empty. */
tarn_status tn_ladder_create(struct tn_ladder *ladder, const tarn_model *model,
                             const struct tn_run_desc *desc, size_t rungs,
                             const struct tn_host *host, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_ladder_free(struct tn_ladder *ladder);

/* The shortest that takes T symbols or frames; the longest if none does. */
tarn_run *tn_ladder_run(const struct tn_ladder *ladder, size_t T);

#endif
