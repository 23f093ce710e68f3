/* SPDX-License-Identifier: MIT */
/* ctc_align.c - how likely given labels are, and where they begin in their best path.
 *
 * States are numbered 0 .. 2 L, even ones are blanks. With log-probabilities y,
 *
 *     v_s(t) = y_s(t) + max of v_s(t-1), v_(s-1)(t-1), and v_(s-2)(t-1) where the labels of
 *              s and s - 2 differ
 *
 * and the path is read off backwards. As in ctc.c, every K-th frame is kept and the steps
 * between two of them are formed again. */
#include <math.h>

#include "layer/ctc.h"
#include "layer/ctc_decode.h"

static const double none = -(double)INFINITY;

/* ---- all paths ---------------------------------------------------------- */

static struct tn_ctc alone(const struct tn_ctc_frames *frames, size_t T)
{
    return (struct tn_ctc){frames->kernels, 1, 1, T, frames->S};
}

size_t tn_ctc_score_scratch(const struct tn_ctc_frames *frames)
{
    const struct tn_ctc ctc = alone(frames, frames->N);

    return tn_ctc_scratch_size(&ctc);
}

double tn_ctc_score(const struct tn_ctc_frames *frames, const float *x, size_t T,
                    const int32_t *labels, size_t count, void *scratch)
{
    const struct tn_ctc ctc = alone(frames, T);
    double loss;

    tn_ctc_loss(&(struct tn_ctc_call){.ctc = &ctc,
                                      .losses = &loss,
                                      .x = x,
                                      .labels = labels,
                                      .counts = &count,
                                      .scratch = scratch});
    return -loss;
}

/* ---- the best path ------------------------------------------------------ */

struct work {
    double *sums;         /* log of the sum of exps, a frame */
    double *kept, *turns; /* v: of every K-th frame; of two */
    unsigned char *steps; /* of K frames: how many states back the path was */
    size_t K, states;
};

static struct work lay_out(size_t N, struct tn_arena *arena)
{
    struct work work = {.K = tn_ctc_kept_apart(N), .states = 2 * N + 1};

    work.sums = tn_arena_alloc(arena, N, sizeof *work.sums);
    work.kept = tn_arena_alloc(arena, N / work.K + 1, work.states * sizeof *work.kept);
    work.turns = tn_arena_alloc(arena, 2, work.states * sizeof *work.turns);
    work.steps = tn_arena_alloc(arena, work.K, work.states);
    return work;
}

size_t tn_ctc_align_scratch(const struct tn_ctc_frames *frames)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(frames->N, &arena);
    return tn_arena_bytes(&arena);
}

struct path {
    struct work work;
    const float *x;
    const int32_t *labels;
    size_t T, S, L;
};

/* The maximum is taken of floats as they are: gcc 12 for aarch64 stops with an internal error
 * at a maximum of floats widened to double. */
double tn_ctc_log_sum(const float *x, size_t S)
{
    float most = -INFINITY;
    double sum = 0.0;

    for (size_t k = 0; k < S; k++)
        most = fmaxf(most, x[k]);
    for (size_t k = 0; k < S; k++)
        sum += exp((double)x[k] - (double)most);
    return (double)most + log(sum);
}

static double log_y(const struct path *p, size_t t, size_t s)
{
    const size_t symbol = s % 2 ? (size_t)p->labels[s / 2] : 0;

    return (double)p->x[t * p->S + symbol] - p->work.sums[t];
}

static bool skips(const struct path *p, size_t s)
{
    return s % 2 && s > 1 && p->labels[s / 2] != p->labels[s / 2 - 1];
}

/* Before the first frame a path stands in state 0, from which it may stay or take the first
 * label. */
static void step(const struct path *p, double *to, const double *from, unsigned char *steps,
                 size_t t)
{
    for (size_t s = 0; s < 2 * p->L + 1; s++) {
        size_t back = 0;

        for (size_t i = 1; i <= tn_min(s, skips(p, s) ? 2 : 1); i++)
            back = from[s - i] > from[s - back] ? i : back;
        to[s] = from[s - back] + log_y(p, t, s);
        if (steps)
            steps[s] = (unsigned char)back;
    }
}

/* Returns v after the last frame. */
static const double *run_forward(const struct path *p)
{
    const size_t states = p->work.states;
    double *at = p->work.kept;

    for (size_t s = 0; s < 2 * p->L + 1; s++)
        at[s] = s == 0 ? 0.0 : none;
    for (size_t t = 0; t < p->T; t++) {
        double *const to = (t + 1) % p->work.K == 0
                               ? p->work.kept + (t + 1) / p->work.K * states
                               : p->work.turns + t % 2 * states;

        p->work.sums[t] = tn_ctc_log_sum(p->x + t * p->S, p->S);
        step(p, to, at, NULL, t);
        at = to;
    }
    return at;
}

/* The path over frames from .. to - 1, that ends in state s; returns the state before
 * `from`. */
static size_t read_back(const struct path *p, struct tn_ctc_symbol *symbols, size_t from,
                        size_t to, size_t s)
{
    const size_t states = p->work.states;
    const double *at = p->work.kept + from / p->work.K * states;

    for (size_t t = from; t < to; t++) {
        double *const next = p->work.turns + t % 2 * states;

        step(p, next, at, p->work.steps + (t - from) * states, t);
        at = next;
    }
    for (size_t t = to; t-- > from;) {
        if (s % 2) {
            struct tn_ctc_symbol *const symbol = &symbols[s / 2];

            symbol->frame = t;
            symbol->confidence = fmax(symbol->confidence, exp(log_y(p, t, s)));
        }
        s -= p->work.steps[(t - from) * states + s];
    }
    return s;
}

double tn_ctc_align(const struct tn_ctc_frames *frames, struct tn_ctc_symbol *symbols,
                    const float *x, size_t T, const int32_t *labels, size_t count,
                    void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    const struct path p = {lay_out(frames->N, &arena), x, labels, T, frames->S, count};

    for (size_t i = 0; i < count; i++)
        symbols[i] = (struct tn_ctc_symbol){.symbol = labels[i]};
    if (tn_ctc_needs(labels, count) > T)
        return none;
    const double *const end = run_forward(&p);
    size_t s = count > 0 && end[2 * count - 1] > end[2 * count] ? 2 * count - 1 : 2 * count;
    const double best = end[s];

    for (size_t block = tn_blocks(T, p.work.K); best > none && block-- > 0;)
        s = read_back(&p, symbols, block * p.work.K, tn_min(T, (block + 1) * p.work.K), s);
    return best;
}
