/* SPDX-License-Identifier: MIT */
#include "kernel/held.h"

enum {
    /* Of a piece of the sum. A panel of b that was packed for this product alone takes half of
     * the first cache. One that is held passes through it: few rows are multiplied with it, and
     * to add another piece to c costs more than reading the panel from the second cache. */
    DEPTH = 256,
    DEPTH_HELD = 1024,
    STEPS = 16 /* of a panel that are narrowed at a time */
};

bool tn_held(const struct tn_matmul_desc *desc)
{
    return desc->held && (desc->elements == TN_F32 || desc->wide_a);
}

/* ---- Layout ------------------------------------------------------------- */

size_t tn_held_piece(const struct tn_matmul *plan)
{
    const size_t k = plan->desc.k, depth = plan->desc.held ? DEPTH_HELD : DEPTH;

    return tn_blocks(k, tn_blocks(k, depth));
}

size_t tn_held_width(const struct tn_matmul *plan)
{
    return tn_round_up(plan->desc.n, tn_panel_size(plan->host->kernels, true));
}

size_t tn_held_at(const struct tn_matmul *plan, size_t col, size_t p, size_t depth)
{
    return p * tn_held_width(plan) + col * depth;
}

size_t tn_held_size(const struct tn_matmul *plan)
{
    const size_t element = plan->desc.elements == TN_BF16 ? sizeof(uint16_t) : sizeof(float);

    return tn_held(&plan->desc) ? plan->desc.k * tn_held_width(plan) * element : 0;
}

/* ---- Panels ------------------------------------------------------------- */

static size_t panels_across(const struct tn_matmul *plan)
{
    return tn_panels(plan->host->kernels, true, plan->desc.n);
}

size_t tn_held_panels(const struct tn_matmul *plan)
{
    return panels_across(plan) * tn_blocks(plan->desc.k, tn_held_piece(plan));
}

struct panel {
    size_t col, cols, p, depth;
    size_t at; /* elements before it */
};

static struct panel panel_of(const struct tn_matmul *plan, size_t index)
{
    const size_t across = panels_across(plan), wide = tn_panel_size(plan->host->kernels, true);
    const size_t k = plan->desc.k, piece = tn_held_piece(plan);
    struct panel panel = {.col = index % across * wide, .p = index / across * piece};

    panel.cols = tn_min(wide, plan->desc.n - panel.col);
    panel.depth = tn_min(piece, k - panel.p);
    panel.at = tn_held_at(plan, panel.col, panel.p, panel.depth);
    return panel;
}

/* `steps` of the sum from p on, of a panel's columns. */
static void pack_steps(const struct tn_matmul *plan, float *to, const float *b,
                       const struct panel *panel, size_t p, size_t steps)
{
    const struct tn_matmul_desc *const d = &plan->desc;

    plan->host->kernels->pack(
        to, true, d->transpose_b ? b + panel->col * d->ldb + p : b + p * d->ldb + panel->col,
        (ptrdiff_t)d->ldb, !d->transpose_b, panel->cols, steps);
}

void tn_held_pack(const struct tn_matmul *plan, float *all, const float *b, size_t index)
{
    const struct panel panel = panel_of(plan, index);

    pack_steps(plan, all + panel.at, b, &panel, panel.p, panel.depth);
}

/* ---- Holding ------------------------------------------------------------ */

struct job {
    const struct tn_matmul *plan;
    void *held;
    const float *from;
    float *to;
};

static void hold_panel(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;

    (void)thread;
    tn_held_pack(job->plan, job->held, job->from, index);
}

static void hold_panel_narrow(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct panel panel = panel_of(job->plan, index);
    const size_t wide = tn_panel_size(job->plan->host->kernels, true);
    float wide_steps[STEPS * 2 * TN_LANES_MOST];
    uint16_t *to = (uint16_t *)job->held + panel.at;

    (void)thread;
    for (size_t done = 0, steps; done < panel.depth; done += steps, to += steps * wide) {
        steps = tn_min(STEPS, panel.depth - done);
        pack_steps(job->plan, wide_steps, job->from, &panel, panel.p + done, steps);
        job->plan->host->kernels->narrow_panel(to, wide_steps, steps);
    }
}

void tn_held_hold(const struct tn_matmul *plan, void *held, const float *b)
{
    tn_parallel(plan->host->threads, tn_held_panels(plan),
                plan->desc.elements == TN_BF16 ? hold_panel_narrow : hold_panel,
                &(struct job){plan, held, b, NULL});
}

static void widen_panel(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct panel panel = panel_of(job->plan, index);

    (void)thread;
    job->plan->host->kernels->widen_panel(job->to + panel.at,
                                          (const uint16_t *)job->held + panel.at, panel.depth);
}

void tn_held_widen(const struct tn_matmul *plan, float *all, const void *held)
{
    tn_parallel(plan->host->threads, tn_held_panels(plan), widen_panel,
                &(struct job){plan, (void *)(uintptr_t)held, NULL, all});
}
