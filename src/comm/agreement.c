/* SPDX-License-Identifier: MIT */
/* agreement.c - what fails for one process fails for all, with the same sentence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/transfer.h"

void tn_outcome_of(struct tn_outcome *outcome, tarn_status status, const tarn_error *err)
{
    *outcome = (struct tn_outcome){.status = (int32_t)status};
    if (status != TARN_OK)
        snprintf(outcome->text, sizeof outcome->text, "%s",
                 err ? err->text : tarn_status_name(status));
}

tarn_status tn_outcomes_agree(const tarn_comm *comm, const void *all, size_t bytes,
                              tarn_error *err)
{
    for (size_t i = 0; i < tn_comm_size(comm); i++) {
        struct tn_outcome outcome;

        memcpy(&outcome, (const char *)all + i * bytes, sizeof outcome);
        if (outcome.status == TARN_OK)
            continue;
        const tarn_status status = (tarn_status)outcome.status;

        return i == 0 ? tn_fail(err, status, "%s", outcome.text)
                      : tn_fail(err, status, "rank %zu: %.230s", i, outcome.text);
    }
    return TARN_OK;
}

tarn_status tn_comm_agree(const tarn_comm *comm, tarn_status status, enum tn_patience patience,
                          tarn_error *err)
{
    if (tn_comm_size(comm) == 1 || status == TARN_ERANK)
        return status;
    struct tn_outcome *const all = calloc(comm->size, sizeof *all);

    if (!all)
        return tn_fail(err, TARN_ERANK, "not enough memory for %zu ranks", comm->size);
    tn_outcome_of(&all[comm->rank], status, err);
    status = tn_comm_gather(comm, all, sizeof *all, patience, err);
    if (status == TARN_OK)
        status = tn_outcomes_agree(comm, all, sizeof *all, err);
    free(all);
    return status;
}
