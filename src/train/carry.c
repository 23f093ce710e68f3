/* SPDX-License-Identifier: MIT */
#include "train/carry.h"

#include <inttypes.h>
#include <string.h>

#include "model/body.h"

tarn_status tn_carry_init(struct tn_carry *carry, const tarn_run *run, size_t parts,
                          tarn_error *err)
{
    const tarn_config *const config = &run->model->arch.config;

    *carry = (struct tn_carry){.part_bytes = tn_run_states_size(run), .length = run->N};
    carry->bytes = parts * carry->part_bytes;
    if (config->frames > 0 || run->model->arch.head.row->sequence)
        return tn_fail(err, TARN_EINVAL,
                       "carry needs a model that predicts a symbol at each position");
    if (config->positions > 0)
        return tn_fail(err, TARN_EINVAL,
                       "carry: streams would outrun the %zu learned positions; use position "
                       "'concat', 'add' or 'none'",
                       config->positions);
    if (carry->bytes == 0)
        return tn_fail(err, TARN_EINVAL,
                       "carry needs states of constant size, which body '%s' with attention "
                       "'%.40s' does not have; use linear attention",
                       config->body, config->attention);
    return TARN_OK;
}

void tn_carry_lay_out(struct tn_carry *carry, struct tn_arena *arena)
{
    for (size_t i = 0; i < 3; i++)
        carry->blocks[i] = tn_arena_alloc(arena, carry->bytes, 1);
}

tarn_status tn_carry_check(const struct tn_carry *carry, const tarn_batch *batches,
                           size_t count, tarn_error *err)
{
    uint64_t reached = carry->position;

    for (size_t i = 0; i < count; i++) {
        const uint64_t position = batches[i].position;

        if (carry->bytes == 0 && position != 0)
            return tn_fail(err, TARN_EINVAL,
                           "position is %" PRIu64 "; it must be 0 unless the trainer carries "
                           "states from batch to batch",
                           position);
        if (carry->bytes > 0 && batches[i].lengths)
            return tn_fail(err, TARN_EINVAL,
                           "lengths must be NULL when states are carried from batch to batch");
        if (position != 0 && position != reached)
            return tn_fail(err, TARN_EINVAL,
                           "position is %" PRIu64 "; it must be 0, to start anew, or %" PRIu64
                           ", where the last batch ended",
                           position, reached);
        reached = position + carry->length;
    }
    return TARN_OK;
}

void tn_carry_begin(struct tn_carry *carry)
{
    carry->reached = carry->position;
    carry->last = 0;
}

struct tn_run_states tn_carry_next(struct tn_carry *carry, uint64_t position, size_t part)
{
    const size_t from = position == 0 && carry->last == 0 ? 1 : carry->last;
    const size_t to = from == 1 ? 2 : 1, offset = part * carry->part_bytes;

    if (position == 0)
        memset(carry->blocks[from] + offset, 0, carry->part_bytes);
    carry->last = to;
    carry->reached = position + carry->length;
    return (struct tn_run_states){position, carry->blocks[from] + offset,
                                  carry->blocks[to] + offset};
}

void tn_carry_clear(struct tn_carry *carry, const tarn_run *run)
{
    for (size_t at = 0; at < carry->bytes; at += carry->part_bytes)
        run->model->arch.body->clear_states(run, carry->blocks[carry->last] + at,
                                            carry->reached);
}

void tn_carry_apply(struct tn_carry *carry)
{
    char *const before = carry->blocks[0];

    carry->blocks[0] = carry->blocks[carry->last];
    carry->blocks[carry->last] = before;
    carry->position = carry->reached;
    carry->last = 0;
}
