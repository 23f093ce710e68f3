/* SPDX-License-Identifier: MIT */
#include "kernel/packed_weights.h"

enum {
    /* Of a piece of the sum. A panel of b that was packed for this product alone takes half of
     * the first cache. One that is packed for many passes through it: few rows are multiplied
     * with it, and to add another piece to c costs more than reading the panel from the second
     * cache. */
    DEPTH = 256,
    DEPTH_PACKED = 1024,
    STEPS = 16 /* of a panel that are narrowed at a time */
};

/* ---- Layout ------------------------------------------------------------- */

size_t tn_packed_piece(const struct tn_matmul *plan)
{
    const size_t k = tn_packed_steps(plan), depth = plan->desc.packed ? DEPTH_PACKED : DEPTH;

    return tn_blocks(k, tn_blocks(k, depth));
}

size_t tn_packed_width(const struct tn_matmul *plan)
{
    return tn_round_up(plan->desc.n, tn_panel_size(plan->host->kernels, true));
}

static size_t panels_across(const struct tn_matmul *plan)
{
    return tn_panels(plan->host->kernels, true, plan->desc.n);
}

size_t tn_packed_panels(const struct tn_matmul *plan)
{
    return panels_across(plan) * tn_blocks(tn_packed_steps(plan), tn_packed_piece(plan));
}

struct tn_packed_panel tn_packed_panel_at(const struct tn_matmul *plan, size_t index)
{
    const size_t across = panels_across(plan), wide = tn_panel_size(plan->host->kernels, true);
    const size_t piece = tn_packed_piece(plan);
    struct tn_packed_panel panel = {.col = index % across * wide, .p = index / across * piece};

    panel.cols = tn_min(wide, plan->desc.n - panel.col);
    panel.depth = tn_min(piece, tn_packed_steps(plan) - panel.p);
    panel.at = tn_packed_at(tn_packed_width(plan), panel.col, panel.p, panel.depth);
    return panel;
}

/* ---- Packing once ------------------------------------------------------- */

struct job {
    const struct tn_matmul *plan;
    void *packed;
    const float *b;
};

/* `steps` of the sum from p on, of a panel's columns. */
static void pack_steps(const struct job *job, float *to, const struct tn_packed_panel *panel,
                       size_t p, size_t steps)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t first = d->transpose_b ? panel->col * d->ldb + p : p * d->ldb + panel->col;

    job->plan->host->kernels->pack(to, true, job->b + first, (ptrdiff_t)d->ldb, !d->transpose_b,
                                   panel->cols, steps);
}

static void pack_panel(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_packed_panel panel = tn_packed_panel_at(job->plan, index);

    (void)thread;
    pack_steps(job, (float *)job->packed + panel.at, &panel, panel.p, panel.depth);
}

static void pack_panel_bf16(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_packed_panel panel = tn_packed_panel_at(job->plan, index);
    float wide_steps[STEPS * 2 * TN_LANES_MOST];
    uint16_t *const to = (uint16_t *)job->packed + panel.at;

    (void)thread;
    for (size_t done = 0, steps; done < panel.depth; done += steps) {
        steps = tn_min(STEPS, panel.depth - done);
        pack_steps(job, wide_steps, &panel, panel.p + done, steps);
        job->plan->host->kernels->narrow_panels(to, wide_steps, panel.cols, panel.depth, done,
                                                steps);
    }
}

size_t tn_packed_size(const struct tn_matmul *plan)
{
    return plan->desc.k * tn_packed_width(plan) * tn_element_size(plan->desc.elements);
}

void tn_packed_pack(const struct tn_matmul *plan, void *packed, const float *b)
{
    tn_parallel(plan->host->threads, tn_packed_panels(plan),
                plan->desc.elements == TN_BF16 ? pack_panel_bf16 : pack_panel,
                &(struct job){plan, packed, b});
}
