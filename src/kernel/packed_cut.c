/* SPDX-License-Identifier: MIT */
/* packed_cut.c - c is cut into rectangles. Few rows of a are read in place, and a rectangle has
 * as many columns as 64 KB of weights. Where rows are more, all threads pack a before the
 * product, and a rectangle is one panel of b wide. Where they are many, each rectangle packs
 * its rows of a. Where m and n are small and the sum is long, as in the gradient of a layer's
 * weights, the sum is cut into slices instead: each makes a c of its own from what it packs
 * itself, and these are added in order. */
#include "kernel/packed_cut.h"

enum {
    FEW_ROWS = 16,       /* up to here reading weights is the work; see docs/decisions.md */
    FEW_BYTES = 1 << 16, /* of weights that a rectangle of few rows reads, about */
    FEW_PANELS = 4,      /* that a row takes side by side */
    ROWS_SLICED = 256,   /* where each packs b for itself */
    COLS_MIN = 256,      /* narrower ones pack more than they multiply */
    PIECES_SHORT = 4,    /* of a sum that is not long */
    TASKS_WANTED = 16    /* so many threads find work */
};

/* Rows of about equal number, `most` at most but for the last panel. */
static void cut_rows(struct tn_packed_cut *cut, const struct tn_matmul *plan, size_t m,
                     size_t most)
{
    cut->rows = tn_round_up(tn_blocks(m, tn_blocks(m, most)), plan->host->kernels->panel_rows);
    cut->down = tn_blocks(m, cut->rows);
}

static void cut_cols(struct tn_packed_cut *cut, const struct tn_matmul *plan, size_t cols)
{
    cut->cols = cols;
    cut->across = tn_blocks(plan->desc.n, cols);
}

static size_t few_cols(const struct tn_matmul *plan)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const size_t group = FEW_PANELS * tn_panel_size(plan->host->kernels, true);
    const size_t most = tn_max(FEW_BYTES / (d->k * tn_element_size(d->elements)), group);

    return tn_round_up(tn_blocks(d->n, tn_blocks(d->n, most)), group);
}

/* Where rows are many, or both sides few: halves the columns while that gives another thread
 * work, then slices the sum. */
static void cut_many(struct tn_packed_cut *cut, const struct tn_matmul *plan)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const size_t k = tn_packed_steps(plan), pieces = tn_blocks(k, cut->piece);
    const size_t wide = tn_panel_size(plan->host->kernels, true);

    cut->packing = TN_EACH;
    while (cut->down * cut->across < TASKS_WANTED && cut->cols > COLS_MIN)
        cut_cols(cut, plan, tn_round_up((cut->cols + 1) / 2, wide));
    if (cut->down * cut->across < TASKS_WANTED && pieces > 1) {
        cut_rows(cut, plan, d->m, ROWS_SLICED);
        cut->slices = tn_blocks(TASKS_WANTED, cut->down * cut->across);
    }
    cut->depth = tn_blocks(pieces, cut->slices) * cut->piece;
    cut->slices = tn_blocks(k, cut->depth);
}

struct tn_packed_cut tn_packed_cut_for(const struct tn_matmul *plan, size_t m)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const size_t piece = tn_packed_piece(plan);
    struct tn_packed_cut cut = {.slices = 1,
                                .piece = piece,
                                .depth = tn_packed_steps(plan),
                                .width = tn_packed_width(plan),
                                .packing = TN_TOGETHER};
    const bool short_sum = tn_blocks(tn_packed_steps(plan), piece) <= PIECES_SHORT;

    cut_rows(&cut, plan, m, TN_CUT_ROWS);
    if (m <= FEW_ROWS && !d->transpose_a && !tn_matmul_rounds(d)) {
        cut.packing = TN_IN_PLACE;
        cut_cols(&cut, plan, few_cols(plan));
    } else if (d->packed || (cut.down < TASKS_WANTED && short_sum)) {
        cut_cols(&cut, plan, tn_panel_size(plan->host->kernels, true));
    } else {
        cut_cols(&cut, plan, cut.width);
        cut_many(&cut, plan);
    }
    return cut;
}
