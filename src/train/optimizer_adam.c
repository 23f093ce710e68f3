/* SPDX-License-Identifier: MIT */
/* optimizer_adam.c - Adam (Kingma and Ba 2015) and its kin.
 *
 *   m  = beta1 m + (1 - beta1) g                    v = beta2 v + (1 - beta2) g^2
 *   w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * adam adds decay w, the gradient of decay |w|^2 / 2, to g; adamw (Loshchilov and Hutter 2019)
 * subtracts rate decay w from w instead, apart from the gradient.
 *
 * radam, rectified Adam (Liu et al. 2020), with which the paper trains, decays as adamw and
 * replaces the quotient:
 *
 *   rho    = 2 / (1 - beta2) - 1
 *   rho_t  = rho - 2 t beta2^t / (1 - beta2^t)      how many gradients v is worth
 *   r_t    = sqrt((rho_t - 4)(rho_t - 2) rho / ((rho - 4)(rho - 2) rho_t))
 *   s_t    = r_t sqrt(1 - beta2^t) / (sqrt(v) + eps)  if rho_t > 5, else 1
 *   w     -= rate decay w + rate s_t m / (1 - beta1^t)
 *
 * The variance of 1 / sqrt(v) is finite from rho_t > 4 on, which is the article's line; its
 * authors' program and PyTorch both wait for 5, as is done here: with beta2 = 0.999 the first
 * rectified update is the sixth. Before it PyTorch and this take the plain mean of gradients;
 * the authors' program can be told to leave the weights alone instead. eps is added to the root
 * of v before its bias is corrected, after it in Adam.
 *
 * All three are the seven numbers of struct tn_update; one loop (kernel_body_update.h) does the
 * rest. */
#include <math.h>

#include "train/optimizer.h"

static const double rho_least = 5.0;

enum { BETA1, BETA2, EPS, DECAY };

/* `what` says what decay is, and `initial` its default. */
#define OPTIONS(what, initial)                                                                 \
    (const tarn_option_info[])                                                                 \
    {                                                                                          \
        [BETA1] = {"beta1", "decay rate of the first moment", 0.0, 0.9999, 0.9, false, NULL},  \
        [BETA2] = {"beta2", "decay rate of the second moment", 0.0, 0.999999, 0.999, false,    \
                   NULL},                                                                      \
        [EPS] = {"eps", "added to the denominator", 1e-12, 1.0, 1e-8, false, NULL},            \
        [DECAY] = {"decay", what, 0.0, 1.0, initial, false, NULL}, {0},                        \
    }

/* 1 - beta^t, the factor by which m and v are too small after t updates from zero: exact also
 * where beta is near 1. */
static double bias(double beta, uint64_t t)
{
    return -expm1((double)t * log(beta)); /* log 0 = -inf: 1 */
}

/* Adam's numbers, without decay. */
static struct tn_update numbers_of(const struct tn_optimizer_step *step)
{
    const double *const value = step->options->value;

    return (struct tn_update){
        .gain1 = (float)(1.0 - value[BETA1]),
        .gain2 = (float)(1.0 - value[BETA2]),
        .step = (float)(step->rate / bias(value[BETA1], step->t)),
        .root = (float)(1.0 / sqrt(bias(value[BETA2], step->t))),
        .eps = (float)value[EPS],
    };
}

static void update_piece(const struct tn_optimizer_step *step, const void *numbers, float scale,
                         size_t from, size_t count)
{
    step->host->kernels->update(step->w + from, step->moments[0] + from,
                                step->moments[1] + from, step->g + from, scale, numbers, count);
}

static void adam(const struct tn_optimizer_step *step)
{
    struct tn_update by = numbers_of(step);

    by.l2 = (float)step->options->value[DECAY];
    tn_optimizer_pieces(step, update_piece, &by);
}

static void adamw(const struct tn_optimizer_step *step)
{
    struct tn_update by = numbers_of(step);

    by.shrink = (float)(step->rate * step->options->value[DECAY]);
    tn_optimizer_pieces(step, update_piece, &by);
}

/* r_t, or 0 where v is worth too little. */
static double rectification(double beta2, uint64_t t)
{
    const double corrected = bias(beta2, t), rho = 2.0 / (1.0 - beta2) - 1.0;
    const double rho_t = rho - 2.0 * (double)t * (1.0 - corrected) / corrected;

    if (!(rho_t > rho_least))
        return 0.0;
    return sqrt((rho_t - 4.0) * (rho_t - 2.0) * rho / ((rho - 4.0) * (rho - 2.0) * rho_t));
}

static void radam(const struct tn_optimizer_step *step)
{
    const double *const value = step->options->value;
    const double r = rectification(value[BETA2], step->t);
    struct tn_update by = numbers_of(step);

    by.shrink = (float)(step->rate * value[DECAY]);
    if (r > 0.0) {
        by.step = (float)(step->rate / bias(value[BETA1], step->t) * r *
                          sqrt(bias(value[BETA2], step->t)));
        by.root = 1.0f;
    } else { /* m alone: a denominator of 1 */
        by.root = 0.0f;
        by.eps = 1.0f;
    }
    tn_optimizer_pieces(step, update_piece, &by);
}

const struct tn_optimizer_row tn_optimizer_adam = {
    .about = {"adam", "Adam; weight decay is added to the gradient",
              OPTIONS("weight decay, added to the gradient", 0.0)},
    .moments = "mv",
    .update = adam,
};
const struct tn_optimizer_row tn_optimizer_adamw = {
    .about = {"adamw", "Adam with decoupled weight decay",
              OPTIONS("weight decay per update, times the learning rate", 0.01)},
    .moments = "mv",
    .update = adamw,
};
const struct tn_optimizer_row tn_optimizer_radam = {
    .about = {"radam", "rectified Adam, as in the paper, with decoupled weight decay",
              OPTIONS("weight decay per update, times the learning rate", 0.01)},
    .moments = "mv",
    .update = radam,
};
