/* SPDX-License-Identifier: MIT */
/* head_logistic.c - symbols are values placed evenly on [-1, 1], and the outputs a mixture of
 * logistics over them (Salimans et al. 2017): K logits of weights, K means, K log-scales.
 *
 *     x_t = -1 + 2 t / (S - 1)     h = 1 / (S - 1)     s_k = exp(max(log-scale_k, -7))
 *     p(t) = sum_k softmax(logits)_k
 *                  [sigma((x_t + h - m_k) / s_k) - sigma((x_t - h - m_k) / s_k)]
 *     loss = -log p(t)
 *
 * where the first sigma of the last symbol is 1 and the second of symbol 0 is 0: the first and
 * the last bin have the tails, and all p sum to 1, since upper edges are the next one's lower
 * edges. Loss and gradient are a kernel's (kernel_body_logistic.h); so are the
 * log-probabilities of all symbols, which are losses.
 *
 * A draw picks logistic k by its weight and then v = m_k + s_k log(u / (1 - u)), u uniform, and
 * gives the symbol whose x is nearest, which is 0 or S - 1 for v beyond them. This is p
 * exactly: v <= y just if u <= sigma((y - m_k) / s_k), so that v falls between the edges
 * x_t - h and x_t + h with the probability in brackets above, below the first upper edge with
 * sigma of it and above the last lower edge with 1 - sigma of it; and the nearest x is x_t just
 * between these edges. An edge itself, at equal distance from two, has probability 0 and goes
 * up.
 *
 * Which symbol is the most probable one is not counted: that needs all S of them for every
 * position, a hundred times the work of the loss, and says little of values that are near each
 * other. */
#include <math.h>
#include <string.h>

#include "layer/head.h"

enum { MIXTURES };   /* options */
enum { PIECE = 64 }; /* rows that are handed to a kernel at a time */
enum { SYMBOLS_MAX = 1 << 16 };

static size_t mixtures(const struct tn_head *head)
{
    return (size_t)head->options.value[MIXTURES];
}

static size_t tile_floats(const struct tn_head *head, const struct tn_rows *r)
{
    return tn_logistics_work(r->kernels, mixtures(head));
}

static void work_size(const struct tn_head *head, const struct tn_rows *r, size_t B,
                      struct tn_arena *arena)
{
    (void)B;
    tn_head_blocks_size(r, tile_floats(head, r), arena);
}

/* ---- loss --------------------------------------------------------------- */

struct piece {
    int32_t symbols[PIECE];
    float weights[PIECE], dloss[PIECE], ratio[PIECE], peak[PIECE];
};

static double loss_at(const struct piece *p, size_t i)
{
    return log((double)p->ratio[i]) - (double)p->peak[i];
}

/* Targets of weight 0 need not be symbols. */
static void read_piece(const struct tn_head_call *call, struct piece *p, size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float weight = call->weights ? call->weights[from + i] : 1.0f;

        p->weights[i] = weight;
        p->dloss[i] = weight * call->scale;
        p->symbols[i] = weight != 0.0f ? call->targets[from + i] : 0;
    }
}

/* Rows of weight 0 are left out, whatever their outputs. */
static void add_piece(const struct tn_head_call *call, struct tn_loss *loss,
                      const struct piece *p, size_t from, size_t n)
{
    const size_t O = call->head->outputs;

    for (size_t i = 0; i < n; i++) {
        const double weight = (double)p->weights[i];

        if (p->weights[i] != 0.0f) {
            loss->loss += weight * loss_at(p, i);
            loss->weight += weight;
        } else if (call->doutputs) {
            memset(call->doutputs + (from + i) * O, 0, O * sizeof(float));
        }
    }
}

static void run_piece(const struct tn_head_call *call, struct tn_loss *loss, float *tile,
                      size_t from, size_t n)
{
    const size_t O = call->head->outputs;
    struct piece p;

    read_piece(call, &p, from, n);
    call->rows->kernels->logistics(&(struct tn_logistics){
        .dx = call->doutputs ? call->doutputs + from * O : NULL,
        .ratio = p.ratio,
        .peak = p.peak,
        .x = call->outputs + from * O,
        .ldx = (ptrdiff_t)O,
        .symbols = p.symbols,
        .dloss = p.dloss,
        .n = n,
        .K = mixtures(call->head),
        .values = call->head->symbols,
        .work = tile,
    });
    add_piece(call, loss, &p, from, n);
}

static void run_rows(const struct tn_head_call *call, struct tn_loss *loss, float *tile,
                     size_t from, size_t to)
{
    for (size_t i = from; i < to; i += PIECE)
        run_piece(call, loss, tile, i, tn_min(PIECE, to - i));
}

static void loss_of(const struct tn_head_call *call, struct tn_loss *loss)
{
    tn_head_blocks_run(call, loss, tile_floats(call->head, call->rows), run_rows);
    loss->correct = (double)NAN;
}

/* ---- choosing ----------------------------------------------------------- */

/* One row of outputs for all symbols, a piece of them at a time. */
static void logits_of(const struct tn_head *head, const struct tn_rows *r, float *logits,
                      const float *outputs, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    float *const tile = tn_arena_floats(&arena, tile_floats(head, r));
    struct piece p;

    for (size_t from = 0; from < head->symbols; from += PIECE) {
        const size_t n = tn_min(PIECE, head->symbols - from);

        for (size_t i = 0; i < n; i++)
            p.symbols[i] = (int32_t)(from + i);
        r->kernels->logistics(&(struct tn_logistics){.ratio = p.ratio,
                                                     .peak = p.peak,
                                                     .x = outputs,
                                                     .symbols = p.symbols,
                                                     .n = n,
                                                     .K = mixtures(head),
                                                     .values = head->symbols,
                                                     .work = tile});
        for (size_t i = 0; i < n; i++)
            logits[from + i] = (float)-loss_at(&p, i);
    }
}

/* In 0 .. 1; 0 if x is not a number. */
static double weight_of(float x, float most)
{
    return x < most ? exp((double)x - (double)most) : x == most ? 1.0 : 0.0;
}

/* The logistic where the sum of weights passes the fraction u of them all; 0 if there are none.
 */
static size_t pick(const float *logits, size_t K, double u)
{
    double all = 0.0, sum = 0.0;
    float most = -INFINITY;

    for (size_t k = 0; k < K; k++)
        most = logits[k] > most ? logits[k] : most;
    for (size_t k = 0; k < K; k++)
        all += weight_of(logits[k], most);
    for (size_t k = 0; k < K; k++)
        if (u * all < (sum += weight_of(logits[k], most)))
            return k;
    return 0;
}

/* Sums are the same twice, so that one passes any fraction below 1. u = 0 gives v = -infinity,
 * and symbol 0; what is not a number gives symbol 0, too. */
static int32_t draw(const struct tn_head *head, const float *outputs, struct tn_random *random)
{
    const size_t K = mixtures(head), k = pick(outputs, K, tn_random_uniform(random));
    const double u = tn_random_uniform(random), last = (double)head->symbols - 1.0;
    const float r = outputs[2 * K + k];
    const double s = exp((double)(r < TN_LOGISTIC_LEAST ? TN_LOGISTIC_LEAST : r));
    const double v = (double)outputs[K + k] + s * (log(u) - log1p(-u));
    const double t = floor((v + 1.0) * 0.5 * last + 0.5);

    return t >= last ? (int32_t)last : t >= 0.0 ? (int32_t)t : 0;
}

/* ---- the row ------------------------------------------------------------ */

static size_t outputs_of(const struct tn_head *head)
{
    return 3 * mixtures(head);
}

const struct tn_head_row tn_head_logistic = {
    .about = {"logistic", "mixture of logistics over ordered values, such as pixels",
              (const tarn_option_info[]){{.name = "mixtures",
                                          .help = "number of logistics, 3 outputs each",
                                          .minimum = 1,
                                          .maximum = 1024,
                                          .initial = 10,
                                          .whole = true},
                                         {0}}},
    .least = 2,
    .most = SYMBOLS_MAX,
    .outputs = outputs_of,
    .work = work_size,
    .loss = loss_of,
    .logits = logits_of,
    .draw = draw,
};
