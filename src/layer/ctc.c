/* SPDX-License-Identifier: MIT */
/* ctc.c - forward and backward over frames, a sequence at a time.
 *
 * With L labels l_i there are states a_i (label i) and b_i (the blank before it; b_L is after
 * the last). With y of frame t and s_i = 1 where l_i differs from l_(i-1), else 0,
 *
 *     a_i(t) = y_(l_i) (a_i(t-1) + b_i(t-1) + s_i a_(i-1)(t-1))   b_0(-1) = 1, all others 0
 *     b_i(t) = y_0     (b_i(t-1) + a_(i-1)(t-1))                  Z = a_(L-1)(T-1) + b_L(T-1)
 *
 * and a'(t), b'(t), the probability of the frames after t, by the same steps backwards. The
 * share of paths in a state is a a' / Z at every frame; dividing by the sum of all a a' and b
 * b' of the frame, which is Z, rounds less.
 *
 * Only every K-th frame is kept on the way forwards; on the way back the K frames after it are
 * formed again. With K = sqrt N that takes 2 sqrt N frames of memory for half as much work
 * again, and all of it stays in a cache. */
#include "layer/ctc.h"

#include <math.h>
#include <string.h>

/* One thread's memory. Rows of `kept` and `again` are frames of states. */
struct work {
    float *most, *by; /* N: the largest output, 1 / the sum of exps */
    float *exps;      /* S */
    float *kept, *again, *after, *met, *turns;
    float *y_m;   /* emissions of the frames of `again` */
    int32_t *y_e; /* likewise */
    float *posteriors;
    int32_t *symbols, *skips;
};

/* One sequence. */
struct job {
    const struct tn_ctc_call *call;
    const struct tn_kernels *kernels;
    struct work work;
    size_t T, L, W; /* frames, labels, floats of an array of states */
    size_t K;       /* from one frame that is kept to the next */
    const float *x;
    float *dx; /* NULL: not wanted */
    float dloss;
    int32_t least;    /* exponent of an emission */
    int32_t exponent; /* of Z, or one less */
};

size_t tn_ctc_kept_apart(size_t N)
{
    size_t K = 1;

    while (K * K < N)
        K++;
    return K;
}

/* As many labels as frames is the most that can matter. */
static struct work lay_out(const struct tn_ctc *ctc, struct tn_arena *arena)
{
    const size_t N = ctc->N, K = tn_ctc_kept_apart(N), W = tn_ctc_width(ctc->kernels, N);
    const size_t states = 4 * W * sizeof(float);
    struct work work = {0};

    work.most = tn_arena_floats(arena, N);
    work.by = tn_arena_floats(arena, N);
    work.exps = tn_arena_floats(arena, ctc->S);
    work.kept = tn_arena_alloc(arena, N / K + 1, states);
    work.again = tn_arena_alloc(arena, K, states);
    work.after = tn_arena_alloc(arena, 1, states);
    work.met = tn_arena_alloc(arena, 1, states);
    work.turns = tn_arena_alloc(arena, 2, states);
    work.y_m = tn_arena_alloc(arena, K, W * sizeof(float));
    work.y_e = tn_arena_alloc(arena, K, W * sizeof(int32_t));
    work.posteriors = tn_arena_floats(arena, W);
    work.symbols = tn_arena_alloc(arena, W, sizeof(int32_t));
    work.skips = tn_arena_alloc(arena, W, sizeof(int32_t));
    return work;
}

static size_t thread_bytes(const struct tn_ctc *ctc)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(ctc, &arena);
    return tn_arena_bytes(&arena);
}

size_t tn_ctc_scratch_size(const struct tn_ctc *ctc)
{
    struct tn_arena arena = tn_arena_over(NULL);

    tn_arena_alloc(&arena, ctc->B, sizeof(size_t));
    tn_arena_alloc(&arena, tn_min(ctc->threads, ctc->B), thread_bytes(ctc));
    return tn_arena_bytes(&arena);
}

size_t tn_ctc_needs(const int32_t *labels, size_t count)
{
    size_t frames = count;

    for (size_t i = 1; i < count; i++)
        frames += labels[i] == labels[i - 1];
    return frames;
}

/* ---- states ------------------------------------------------------------- */

/* Frame number i of a row of frames. */
static struct tn_ctc_states states_at(const struct job *job, float *frames, size_t i)
{
    const size_t W = job->W, lanes = job->kernels->lanes;
    float *const at = frames + i * 4 * W + lanes;

    return (struct tn_ctc_states){{at, (int32_t *)(void *)(at + W)},
                                  {at + 2 * W, (int32_t *)(void *)(at + 3 * W)}};
}

static void clear_wide(struct tn_wide wide, size_t W, size_t lanes)
{
    memset(wide.m - lanes, 0, W * sizeof(float));
    for (size_t i = 0; i < W; i++)
        (wide.e - lanes)[i] = TN_WIDE_NONE;
}

static void clear_frames(const struct job *job, float *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct tn_ctc_states states = states_at(job, frames, i);

        clear_wide(states.labels, job->W, job->kernels->lanes);
        clear_wide(states.blanks, job->W, job->kernels->lanes);
    }
}

static void set_one(struct tn_wide wide, size_t i)
{
    wide.m[i] = 1.0f;
    wide.e[i] = 0;
}

static struct tn_wide emissions_at(const struct job *job, size_t i)
{
    return (struct tn_wide){job->work.y_m + i * job->W, job->work.y_e + i * job->W};
}

static struct tn_wide emit(const struct job *job, size_t t, size_t slot)
{
    const struct tn_wide y = emissions_at(job, slot);

    job->kernels->ctc_emit(y, job->x + t * job->call->ctc->S, job->work.symbols, job->L + 1,
                           job->work.most[t], job->work.by[t], job->least);
    return y;
}

/* ---- a sequence --------------------------------------------------------- */

/* The blank's emission stands after those of the labels. */
static void read_labels(const struct job *job, const int32_t *labels)
{
    int32_t *const skips = job->work.skips;

    memset(skips, 0, job->W * sizeof *skips);
    for (size_t i = 0; i < job->L; i++) {
        job->work.symbols[i] = labels[i];
        skips[i] = i > 0 && labels[i] != labels[i - 1] ? -1 : 0;
    }
    job->work.symbols[job->L] = 0;
}

/* False if some output is not a number, or infinite. */
static bool read_outputs(const struct job *job)
{
    const size_t S = job->call->ctc->S;
    bool numbers = true;

    for (size_t t = 0; t < job->T; t++) {
        const float *const x = job->x + t * S;
        const float most = job->kernels->max(x, S);
        const float sum = job->kernels->exp_sum(job->work.exps, x, most, S);

        job->work.most[t] = most;
        job->work.by[t] = 1.0f / sum;
        numbers = numbers && sum > 0.0f && sum < INFINITY;
    }
    return numbers;
}

/* -log Z, from the states after the last frame. */
static double close_up(struct job *job, struct tn_ctc_states end)
{
    const size_t L = job->L;
    const float label = L > 0 ? end.labels.m[L - 1] : 0.0f, blank = end.blanks.m[L];
    const int32_t label_e = L > 0 ? end.labels.e[L - 1] : TN_WIDE_NONE,
                  blank_e = end.blanks.e[L];
    const int32_t most = label_e > blank_e ? label_e : blank_e;
    const double sum =
        ldexp((double)label, label_e - most) + ldexp((double)blank, blank_e - most);

    job->exponent = most;
    return sum > 0.0 ? -(log(sum) + most * log(2.0)) : (double)INFINITY;
}

static double run_forward(struct job *job)
{
    const size_t K = job->K;
    struct tn_ctc_states at = states_at(job, job->work.kept, 0);

    clear_frames(job, job->work.kept, job->T / K + 1);
    clear_frames(job, job->work.turns, 2);
    set_one(at.blanks, 0);
    for (size_t t = 0; t < job->T; t++) {
        const struct tn_ctc_states to = (t + 1) % K == 0
                                            ? states_at(job, job->work.kept, (t + 1) / K)
                                            : states_at(job, job->work.turns, t % 2);

        job->kernels->ctc_forward(to, at, emit(job, t, 0), job->work.skips, job->L);
        at = to;
    }
    return close_up(job, at);
}

/* dx of frame t, whose x is not needed any more. */
static void write_gradient(const struct job *job, size_t t, struct tn_ctc_states before,
                           struct tn_ctc_states after)
{
    const size_t S = job->call->ctc->S;
    const float *const x = job->x + t * S, *const posteriors = job->work.posteriors;
    float *const dx = job->dx + t * S, sums[2];

    job->kernels->ctc_posteriors(job->work.posteriors, sums, before, after, job->exponent,
                                 job->L);
    job->kernels->exp_sum(dx, x, job->work.most[t], S);
    job->kernels->scale(dx, dx, job->dloss * job->work.by[t], S);
    const float by = job->dloss / sums[1];

    dx[0] -= by * sums[0];
    for (size_t i = 0; i < job->L; i++)
        dx[job->work.symbols[i]] -= by * posteriors[i];
}

/* Frames from .. to - 1, whose states are formed again from those that were kept before
 * them. */
static void run_back(const struct job *job, size_t from, size_t to)
{
    const struct tn_ctc_states after = states_at(job, job->work.after, 0);
    const struct tn_ctc_states met = states_at(job, job->work.met, 0);
    struct tn_ctc_states at = states_at(job, job->work.kept, from / job->K);

    for (size_t t = from; t < to; t++) {
        const struct tn_ctc_states next = states_at(job, job->work.again, t - from);

        job->kernels->ctc_forward(next, at, emit(job, t, t - from), job->work.skips, job->L);
        at = next;
    }
    for (size_t t = to; t-- > from;) {
        write_gradient(job, t, states_at(job, job->work.again, t - from), after);
        job->kernels->ctc_backward(after, met, emissions_at(job, t - from), job->work.skips,
                                   job->L);
    }
}

static void run_backward(const struct job *job)
{
    const struct tn_ctc_states after = states_at(job, job->work.after, 0);

    clear_frames(job, job->work.again, tn_min(job->K, job->T));
    clear_frames(job, job->work.after, 1);
    clear_frames(job, job->work.met, 1);
    set_one(after.blanks, job->L);
    if (job->L > 0)
        set_one(after.labels, job->L - 1);
    for (size_t block = tn_blocks(job->T, job->K); block-- > 0;)
        run_back(job, block * job->K, tn_min(job->T, (block + 1) * job->K));
}

static void clear_rows(const struct job *job, size_t from)
{
    const struct tn_ctc *const ctc = job->call->ctc;

    if (job->dx)
        memset(job->dx + from * ctc->S, 0, (ctc->N - from) * ctc->S * sizeof(float));
}

/* Writes the gradient of the first T rows, unless the loss is not finite. */
static double run_labels(struct job *job, const int32_t *labels)
{
    if (tn_ctc_needs(labels, job->L) > job->T)
        return (double)INFINITY;
    job->W = tn_ctc_width(job->kernels, job->L);
    read_labels(job, labels);
    if (!read_outputs(job))
        return (double)NAN;
    const double loss = run_forward(job);

    if (isfinite(loss) && job->dx)
        run_backward(job);
    return loss;
}

/* ---- all sequences ------------------------------------------------------ */

struct batch {
    const struct tn_ctc_call *call;
    size_t *offsets; /* of each sequence's labels */
    char *works;
    size_t work_bytes;
};

static void run_sequence(void *arg, size_t b, size_t thread)
{
    const struct batch *const batch = arg;
    const struct tn_ctc_call *const call = batch->call;
    const struct tn_ctc *const ctc = call->ctc;
    struct tn_arena arena = tn_arena_over(batch->works + thread * batch->work_bytes);
    const size_t N = ctc->N, least = tn_min((1 << 30) / tn_max(N, 1), 1 << 20);
    struct job job = {
        .call = call,
        .kernels = ctc->kernels,
        .work = lay_out(ctc, &arena),
        .T = call->frames ? call->frames[b] : N,
        .L = call->counts[b],
        .K = tn_ctc_kept_apart(N),
        .x = call->x + b * N * ctc->S,
        .dx = call->dx ? call->dx + b * N * ctc->S : NULL,
        .dloss = call->dloss ? call->dloss[b] : 1.0f,
        .least = -(int32_t)least,
    };
    const bool counts = job.dloss != 0.0f;
    const int32_t *const labels = job.L > 0 ? call->labels + batch->offsets[b] : NULL;

    call->losses[b] = counts ? run_labels(&job, labels) : 0.0;
    clear_rows(&job, counts && isfinite(call->losses[b]) ? job.T : 0);
}

static struct batch open_batch(const struct tn_ctc_call *call)
{
    const struct tn_ctc *const ctc = call->ctc;
    struct tn_arena arena = tn_arena_over(call->scratch);
    struct batch batch = {.call = call, .work_bytes = thread_bytes(ctc)};
    size_t offset = 0;

    batch.offsets = tn_arena_alloc(&arena, ctc->B, sizeof *batch.offsets);
    batch.works = tn_arena_alloc(&arena, tn_min(ctc->threads, ctc->B), batch.work_bytes);
    for (size_t b = 0; b < ctc->B; b++) {
        batch.offsets[b] = offset;
        offset += call->counts[b];
    }
    return batch;
}

void tn_ctc_loss(const struct tn_ctc_call *call)
{
    struct batch batch = open_batch(call);

    tn_parallel(tn_min(call->ctc->threads, call->ctc->B), call->ctc->B, run_sequence, &batch);
}
