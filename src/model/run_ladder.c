/* SPDX-License-Identifier: MIT */
#include "model/run_ladder.h"

void tn_ladder_free(struct tn_ladder *ladder)
{
    for (size_t i = 0; i < ladder->count; i++)
        tarn_run_free(ladder->runs[i]);
    if (ladder->host)
        tn_release(&ladder->host->allocator, ladder->memory);
    *ladder = (struct tn_ladder){0};
}

static tarn_status plan(struct tn_ladder *ladder, const tarn_model *model,
                        const struct tn_run_desc *desc, size_t rungs, tarn_error *err)
{
    struct tn_run_desc rung = *desc;
    tarn_status status = TARN_OK;

    rung.unplaced = true;
    for (size_t i = 0; i < tn_min(rungs, TN_RUNGS) && status == TARN_OK; i++) {
        status = tn_run_create(&ladder->runs[i], model, &rung, ladder->host, err);
        if (status == TARN_OK) {
            ladder->count++;
            ladder->bytes = tn_max(ladder->bytes, ladder->runs[i]->bytes);
        }
        if (rung.N == 1)
            break;
        rung.N -= tn_max(1, rung.N / 16);
    }
    return status;
}

/* What all share, and the positions. */
static tarn_status place(struct tn_ladder *ladder, tarn_error *err)
{
    const size_t shared = ladder->bytes;
    struct tn_arena arena = tn_arena_over(NULL);

    tn_arena_take(&arena, shared, 1);
    tn_run_positions(ladder->runs[0], &arena);
    ladder->bytes = tn_arena_bytes(&arena);
    ladder->memory =
        ladder->bytes < SIZE_MAX ? tn_allocate(&ladder->host->allocator, ladder->bytes) : NULL;
    if (!ladder->memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for %zu sequences of %zu positions: %.1f GB; reduce "
                       "batch or length",
                       ladder->runs[0]->B, ladder->runs[0]->N, (double)ladder->bytes * 1e-9);
    arena = tn_arena_over(ladder->memory);
    void *const memory = tn_arena_take(&arena, shared, 1);
    float *const positions = tn_run_positions(ladder->runs[0], &arena);

    for (size_t i = 0; i < ladder->count; i++)
        tn_run_place(ladder->runs[i], memory, positions);
    return TARN_OK;
}

tarn_status tn_ladder_create(struct tn_ladder *ladder, const tarn_model *model,
                             const struct tn_run_desc *desc, size_t rungs,
                             const struct tn_host *host, tarn_error *err)
{
    *ladder = (struct tn_ladder){.host = host};
    tarn_status status = plan(ladder, model, desc, rungs, err);

    if (status == TARN_OK)
        status = place(ladder, err);
    if (status != TARN_OK)
        tn_ladder_free(ladder);
    return status;
}

tarn_run *tn_ladder_run(const struct tn_ladder *ladder, size_t T)
{
    size_t i = ladder->count - 1;

    while (i > 0 && ladder->runs[i]->T < T)
        i--;
    return ladder->runs[i];
}
